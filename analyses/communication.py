"""What does each kind of communication cost on each rank: waiting for others, or transfer?

**Question.** The communication of a rank by parallel dimension and operation: its waiting, its transfer, its bandwidth.

**Method.** Sums over the rank's operations (``matched``). Each lasts from its start to the last arrival (*wait*), from there to the
first rank's end (*transfer*), and until it ends on this rank (*leave*); operations without a match stay whole
(*unmatched*). The four add up to the operations' time. It is a sum of durations: operations that run side by side count each.

**When it misleads.** As ``matches``. The transfer of a small message is latency.
"""

from __future__ import annotations

import polars as pl

from tracekit.model.analysis import Analysis
from tracekit.model.layout import DIMENSIONS
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

TABLE = Table(
    name="communication",
    doc="Each rank's operations by dimension and kind: waiting, transfer and the rest, which add up to their durations.",
    columns=(
        *timeline_columns(),
        Column(name="dimension", dtype=pl.Enum(DIMENSIONS), doc="Parallel dimension: see ``groups``."),
        Column(name="op", dtype=pl.String, doc="Operation."),
        Column(name="count", dtype=pl.Int64, doc="Operations."),
        Column(name="matched", dtype=pl.Int64, doc="Those matched with other ranks', not doubtfully."),
        Column(name="times_last", dtype=pl.Int64, doc="Those to which this rank came last."),
        Column(name="summed_ns", dtype=pl.Int64, unit="ns", doc="Sum of their durations."),
        Column(name="wait_ns", dtype=pl.Int64, unit="ns", doc="Of that, waiting for the last rank."),
        Column(name="transfer_ns", dtype=pl.Int64, unit="ns", doc="Of that, transfer."),
        Column(name="leave_ns", dtype=pl.Int64, unit="ns", doc="Of that, after the first rank had left."),
        Column(name="unmatched_ns", dtype=pl.Int64, unit="ns", doc="Durations of operations without a certain match."),
        Column(name="bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Sum of messages; null if unknown."),
        Column(name="median_bytes", dtype=pl.Float64, unit="bytes", nullable=True, doc="Median message."),
        Column(
            name="algbw_bytes_per_s",
            dtype=pl.Float64,
            unit="bytes_per_s",
            nullable=True,
            doc="Bytes of matched operations over their transfer.",
        ),
    ),
)

_NS_PER_S = 1e9


def compute(run: RunTables) -> pl.LazyFrame:
    told, size, transfer = pl.col("wait_ns").is_not_null(), pl.col("size_bytes"), pl.col("transfer_ns")
    dimensions = run["groups"].select("communicator", "op", "dimension")
    known = told & size.is_not_null()
    key = [*TIMELINE, "dimension", "op"]
    sums = (
        run["matched"]
        .join(dimensions, on=["communicator", "op"])
        .group_by(key)
        .agg(
            pl.col("wait_ns", "transfer_ns", "leave_ns").sum(),
            count=pl.len(),
            matched=told.sum(),
            times_last=(pl.col("last_rank") == pl.col("rank")).sum(),
            summed_ns=pl.col("dur_ns").sum(),
            unmatched_ns=pl.col("dur_ns").filter(~told).sum(),
            bytes=pl.when(size.is_not_null().any()).then(size.sum()),
            median_bytes=size.median(),
            algbw_bytes_per_s=pl.when(transfer.filter(known).sum() > 0).then(
                size.filter(known).sum() * _NS_PER_S / transfer.filter(known).sum()
            ),
        )
    )
    return TABLE.conform(sums).sort(*TIMELINE, "summed_ns", "op", descending=[False, False, True, False])


ANALYSIS = Analysis(table=TABLE, needs=("matched", "groups"), compute=compute)
