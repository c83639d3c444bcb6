"""A loaded run as values: its tables, and nothing that computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTables:
    """The tables of one run. Analyses take this and give tables back."""

    ranks: pl.DataFrame
    """`tables.RANKS`, one row per recording, readable or not."""
    tables: Mapping[str, pl.LazyFrame]
    """``events``, ``collectives``, ``steps``, ``memory``; the runner adds what analyses derived."""

    def __getitem__(self, name: str) -> pl.LazyFrame:
        """The table called *name*; ``KeyError`` names the ones there are."""
        if name == "ranks":
            return self.ranks.lazy()
        try:
            return self.tables[name]
        except KeyError:
            raise KeyError(f"no table {name!r}; there are ranks, {', '.join(self.tables)}") from None

    def __contains__(self, name: object) -> bool:
        return name == "ranks" or name in self.tables

    def with_table(self, name: str, frame: pl.LazyFrame) -> RunTables:
        return replace(self, tables={**self.tables, name: frame})
