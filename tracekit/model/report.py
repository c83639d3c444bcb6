"""The report as a value: what `tracekit analyze` has to say, before it is text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tracekit.model.finding import Finding
from tracekit.model.pandas import to_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """An analysis that was not run, and why."""

    analysis: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Everything measured of one run."""

    title: str
    """What was analysed, as the user named it."""
    ranks: pl.DataFrame
    """`tables.RANKS`."""
    tables: Mapping[str, pl.DataFrame]
    """The table of each analysis that ran, by name."""
    findings: tuple[Finding, ...]
    """Findings, dearest first."""
    skipped: tuple[Skipped, ...]
    step_ns: int
    """Mean step of the median rank; its window when the run has no steps."""
    steps: int
    """Complete steps of the median rank; 0 when there are none."""
    step_source: str = ""
    """How the steps were found: ``annotation`` or ``inferred`` (on some rank); empty when there are none."""
    strategy: str = ""
    """How the model is parallelised, in words, where the recorder's sidecars say so."""
    notes: tuple[str, ...] = field(default=())
    """What a person should know of the whole run, a sentence each."""

    def to_pandas(self, table: str) -> pd.DataFrame:
        """The table of the analysis called *table* as a pandas DataFrame. Needs ``tracekit-ml[hta]``."""
        return to_pandas(self.tables[table])

    @property
    def analysed(self) -> pl.DataFrame:
        """The rows of `ranks` that figures are built on."""
        return self.ranks.filter(pl.col("status").is_in(["read", "truncated"]))
