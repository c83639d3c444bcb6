"""A loaded run as values: its tables, and nothing that computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from tracekit.model.records import Sidecar


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTables(Mapping[str, "pl.LazyFrame"]):
    """The tables of one run, by name. Analyses take this and give tables back."""

    ranks: pl.DataFrame
    """`tables.RANKS`, one row per recording, readable or not."""
    tables: Mapping[str, pl.LazyFrame]
    """``events``, ``collectives``, ``steps``, ``pipeline``, ``memory``; the runner adds what analyses derived."""
    sidecars: Mapping[tuple[int, int], Sidecar] = field(default_factory=dict)
    """What tracekit's recorder wrote beside the traces, by rank and window; empty for traces of other recorders."""

    def __getitem__(self, name: str) -> pl.LazyFrame:
        """The table called *name*; ``KeyError`` names the ones there are."""
        if name == "ranks":
            return self.ranks.lazy()
        try:
            return self.tables[name]
        except KeyError:
            raise KeyError(f"no table {name!r}; there are ranks, {', '.join(self.tables)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(("ranks", *self.tables))

    def __len__(self) -> int:
        return 1 + len(self.tables)

    def __contains__(self, name: object) -> bool:
        return name == "ranks" or name in self.tables

    def with_table(self, name: str, frame: pl.LazyFrame) -> RunTables:
        return replace(self, tables={**self.tables, name: frame})
