"""What an analysis is: a question, the tables it needs, the table it answers with, and what it finds in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from tracekit.model.finding import Finding
from tracekit.model.run import RunTables
from tracekit.model.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What a `find` may know besides its own table."""

    steps: int
    """Complete steps per rank (the median over ranks); 0 when the run has none."""
    step_ns: int
    """Median step time; the window's length when the run has no steps. What costs are compared with."""
    ranks: tuple[int, ...]
    """Ranks that were analysed."""
    units: float = 1.0
    """What a rank's totals are divided by to be per step: its complete steps, or more where the recording is longer than
    they are (work before the first step and after the last counts at its own length); 1 without steps."""


def _finds_nothing(_table: pl.DataFrame, _context: Context) -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    """One analysis: one file in ``analyses/``, one line in its registry."""

    table: Table
    """The table it answers with; its name is the analysis' name."""
    needs: tuple[str, ...]
    """Names of the tables that must be there and not empty."""
    compute: Callable[[RunTables], pl.LazyFrame]
    find: Callable[[pl.DataFrame, Context], Sequence[Finding]] = field(default=_finds_nothing)
    codes: tuple[str, ...] = ()
    """Codes that `find` can give."""

    @property
    def name(self) -> str:
        return self.table.name
