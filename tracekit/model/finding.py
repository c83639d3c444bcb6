"""Findings as values: what was found, where, how much it costs, and how sure we are. The texts are in the pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters, by the share of the step that its upper cost is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


class Confidence(StrEnum):
    """How directly the trace shows the cause."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """A measured number with its unit (``ns``, ``bytes``, ``ratio``, ``count``, ``bytes_per_s``)."""

    label: str
    value: float
    unit: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One finding. Costs are nanoseconds per step (of the window, when the run has no steps)."""

    code: str
    """Stable code, ``TK-...``; ``tracekit explain CODE`` prints its page."""
    title: str
    """One sentence with the numbers in it."""
    cause: str = ""
    """One sentence: why, as far as the trace shows it."""
    remedy: str = ""
    """The exact setting to try first."""
    severity: Severity
    confidence: Confidence
    cost_ns: tuple[int, int]
    """[lower, upper] cost per step: what at least, and at most, would be won."""
    share_ratio: float = 0.0
    """The upper cost over the step of the rank that bears it; 0 when the finding has no price."""
    ranks: tuple[int, ...] = ()
    """Ranks concerned; empty means all."""
    evidence: tuple[Quantity, ...] = field(default=())


def severity_of(share_ratio: float) -> Severity:
    """Severity from the upper cost's share of the step: above 10 % high, above 3 % medium, above 1 % low."""
    if share_ratio > 0.10:
        return Severity.HIGH
    if share_ratio > 0.03:
        return Severity.MEDIUM
    return Severity.LOW if share_ratio > 0.01 else Severity.INFO
