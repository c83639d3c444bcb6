"""What kind of work takes the time?

**Question.** Device time by kernel class: products, attention, normalisation, elementwise, optimizer, communication, ...

**Method.** ``total_ns`` sums durations; ``union_ns`` is the time in which at least one event of the class ran.

**When it misleads.** Classes come from names, by a table of rules. What no rule knows is ``other``; when that is much, the
finding TK-UNCLASSIFIED names the largest.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.engine.intervals import total
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity, Severity
from tracekit.model.quantity import percent
from tracekit.model.run import RunTables
from tracekit.model.short_names import short_name, shorten
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns
from tracekit.model.tables import Class

TABLE = Table(
    name="kernel_classes",
    doc="Device time by kernel class. On runs without an accelerator operators have no class (empty).",
    columns=(
        *timeline_columns(),
        Column(name="class", dtype=Class, doc="Class."),
        Column(name="count", dtype=pl.Int64, doc="Number of events."),
        Column(name="total_ns", dtype=pl.Int64, unit="ns", doc="Sum of their durations."),
        Column(name="union_ns", dtype=pl.Int64, unit="ns", doc="Time in which at least one ran."),
        Column(
            name="share_ratio",
            dtype=pl.Float64,
            unit="ratio",
            doc="Total over the total of all classes of the timeline.",
        ),
        Column(name="largest", dtype=pl.List(pl.String), doc="The names with the largest totals, three at most."),
    ),
)

_KEY = (*TIMELINE, "class")
_UNCLASSIFIED_SHARE = 0.10
_NAME_WIDTH = 60


def compute(run: RunTables) -> pl.LazyFrame:
    by_name = run["kernels"].sort("total_ns", descending=True)
    sums = by_name.group_by(_KEY, maintain_order=True).agg(
        pl.col("count", "total_ns", "share_ratio").sum(), largest=pl.col("name").head(3).cast(pl.String)
    )
    unions = total(run["device"], _KEY).rename({"total_ns": "union_ns"})
    joined = sums.join(unions, on=_KEY, how="left").with_columns(pl.col("union_ns").fill_null(0))
    return TABLE.conform(joined).sort(*TIMELINE, "total_ns", descending=[False, False, True])


def find(table: pl.DataFrame, _context: Context) -> Sequence[Finding]:
    """Unclassified kernels with more than 10 % of device time on some rank."""
    other = table.filter(pl.col("class") == "other", pl.col("share_ratio") > _UNCLASSIFIED_SHARE).sort(
        "share_ratio", descending=True
    )
    if other.is_empty():
        return []
    worst = other.row(0, named=True)
    return [
        Finding(
            code="TK-UNCLASSIFIED",
            title=f"{percent(worst['share_ratio'])} of device time is in kernels that tracekit does not know",
            cause=f"The largest: {'; '.join(shorten(short_name(name), _NAME_WIDTH) for name in worst['largest'])}.",
            remedy="Nothing is wrong with the run. If one of them communicates, figures of communication are too low: please report the name",
            severity=Severity.INFO,
            confidence=Confidence.HIGH,
            cost_ns=(0, 0),
            ranks=tuple(sorted(set(other["rank"]))),
            evidence=(
                Quantity(label="their time", value=worst["total_ns"], unit="ns"),
                Quantity(label="share of device time", value=worst["share_ratio"], unit="ratio"),
            ),
        )
    ]


ANALYSIS = Analysis(table=TABLE, needs=("device", "kernels"), compute=compute, find=find, codes=("TK-UNCLASSIFIED",))
