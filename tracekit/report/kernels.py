"""The kernels and kernel classes that take the most device time, over all ranks."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tracekit.model.report import Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One kernel by name, over all ranks."""

    name: str
    kind: str
    """Its class."""
    calls: int
    total_ns: int
    share: float
    """Of the durations of all device events."""


def top_kernels(report: Report, most: int) -> list[Kernel]:
    """The *most* kernels with the largest sum of durations, largest first."""
    table = report.tables.get("kernels")
    if table is None or table.is_empty():
        return []
    whole = max(int(table["total_ns"].sum()), 1)
    sums = table.group_by("name", "class").agg(pl.col("count", "total_ns").sum())
    rows = sums.sort(pl.col("total_ns"), pl.col("name").cast(pl.String), descending=[True, False]).head(most).to_dicts()
    return [
        Kernel(
            name=row["name"],
            kind=row["class"] or "operators",
            calls=row["count"],
            total_ns=row["total_ns"],
            share=row["total_ns"] / whole,
        )
        for row in rows
    ]


def unclassified(report: Report) -> tuple[float, str] | None:
    """The share of durations that kernels of no known class have, and the largest of them; None when there are none."""
    table = report.tables.get("kernel_classes")
    other = table.filter(pl.col("class") == "other").sort("total_ns", descending=True) if table is not None else None
    if table is None or other is None or other.is_empty():
        return None
    return float(other["total_ns"].sum()) / max(int(table["total_ns"].sum()), 1), other["largest"][0][0]


def classes(report: Report, most: int) -> list[tuple[str, float]]:
    """The *most* kernel classes with their shares of the durations of all device events, largest first."""
    table = report.tables.get("kernel_classes")
    if table is None or table.is_empty():
        return []
    whole = max(int(table["total_ns"].sum()), 1)
    sums = (
        table.group_by("class")
        .agg(pl.col("total_ns").sum())
        .sort(pl.col("total_ns"), pl.col("class").cast(pl.String), descending=[True, False])
    )
    return [(kind or "operators", total_ns / whole) for kind, total_ns in sums.head(most).rows()]
