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
    """Complete steps of the median rank; 0 when the run has none."""
    step_ns: int
    """Mean step of the median rank; its window when the run has no steps."""
    ranks: tuple[int, ...]
    """Ranks that were analysed."""
    per_rank: pl.DataFrame
    """What a rank's costs are divided by and compared with: [rank, spans, step_ns].

    *spans* are its complete steps, or its recordings where it has none; *step_ns* is their mean length.
    """

    devices: tuple[str, ...] = ()
    """Names of the accelerators, where recorded."""

    @property
    def others(self) -> str:
        """What a rank is compared with."""
        return "the other rank" if len(self.ranks) == 2 else "the median rank"

    def per_step(self, rank: int, total: float) -> float:
        """*total*, a sum over the complete steps of *rank*, for one of them."""
        return total / int(self.per_rank.filter(rank=rank)["spans"].item())


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
