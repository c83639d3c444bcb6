"""What a table is: named, documented, typed columns. Written once here so that every table describes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import polars as pl
from polars.datatypes import DataType, DataTypeClass

DType: TypeAlias = DataType | DataTypeClass


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    dtype: DType
    doc: str
    unit: str = ""
    """Unit of the values: ``ns``, ``bytes``, ``ratio``, ... Empty for names, ids and counts."""
    nullable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table's name, meaning and columns, in order."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema({column.name: column.dtype for column in self.columns})

    def empty(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self.schema)

    def conform(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Select the table's columns in order and cast them to its dtypes; a missing one raises ``ColumnNotFoundError``."""
        return frame.select(pl.col(column.name).cast(column.dtype) for column in self.columns)


TIMELINE = ("rank", "window")
"""The grouping key of everything measured: one recording of one rank. Two files of one rank are two windows."""


def timeline_columns() -> tuple[Column, ...]:
    """The two columns that every per-rank table starts with."""
    return (
        Column(name="rank", dtype=pl.Int32, doc="Global rank of the process or device that was recorded."),
        Column(
            name="window",
            dtype=pl.Int16,
            doc="0 for a rank's first recording; counts up when several files hold separate windows of one rank.",
        ),
    )
