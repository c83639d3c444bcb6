"""Why was the device idle?

**Question.** How much of each timeline's idle time is whose fault: the host's, a blocking call's, the input pipeline's, the
allocator's, or a dependency's?

**Method.** The spans of ``idle_spans``, which says how a cause is decided, summed per timeline. The causes add up to the
window's idle time exactly.

**When it misleads.** See ``idle_spans``. Idle time before the first device event and after the last is not in the window.
"""

from __future__ import annotations

import polars as pl

from tracekit.analyses.idle_spans import CAUSES
from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

_DOCS = {
    "host_bound": "The host launched too late, in no call that explains it.",
    "sync": "The host was, or had just been, blocked in a call that waits for the device.",
    "data": "The host was fetching a batch.",
    "dependency": "Work was queued and waited for another stream, an event or a peer, or for the device itself.",
    "allocation": "The host was allocating or freeing device memory.",
    "other": "What ended the gap has no launch record; on CPU runs, everything but ``data``.",
}

TABLE = Table(
    name="idle",
    doc="Idle time of every timeline by cause; the causes add up to it.",
    columns=(
        *timeline_columns(),
        Column(name="window_ns", dtype=pl.Int64, unit="ns", doc="First device event's start to the last one's end."),
        Column(name="idle_ns", dtype=pl.Int64, unit="ns", doc="Time in which no device event ran."),
        *(Column(name=f"{cause}_ns", dtype=pl.Int64, unit="ns", doc=_DOCS[cause]) for cause in CAUSES),
        Column(name="idle_ratio", dtype=pl.Float64, unit="ratio", doc="Idle over window."),
        Column(name="gaps", dtype=pl.Int64, doc="Number of gaps."),
        Column(
            name="longest_gap_ns", dtype=pl.Int64, unit="ns", doc="Length of the longest gap; 0 when there is none."
        ),
    ),
)


def compute(run: RunTables) -> pl.LazyFrame:
    windows = (
        run["segments"]
        .filter("in_window")
        .group_by(TIMELINE)
        .agg(window_ns=pl.col("end_ns").max() - pl.col("start_ns").min())
    )
    length = pl.col("window_ns")
    gaps = (
        run["idle_spans"]
        .filter(length > 0)
        .group_by(*TIMELINE, "gap")
        .agg(
            length.sum().alias("idle_ns"), *(length.filter(cause=cause).sum().alias(f"{cause}_ns") for cause in CAUSES)
        )
    )
    idle = gaps.group_by(TIMELINE).agg(
        pl.col("idle_ns", *(f"{cause}_ns" for cause in CAUSES)).sum(),
        gaps=pl.len(),
        longest_gap_ns=pl.col("idle_ns").max(),
    )
    table = (
        windows.join(idle, on=TIMELINE, how="left")
        .with_columns(pl.col("gaps", "idle_ns", "longest_gap_ns", *(f"{cause}_ns" for cause in CAUSES)).fill_null(0))
        .with_columns(idle_ratio=pl.col("idle_ns") / pl.col("window_ns"))
    )
    return TABLE.conform(table.sort(TIMELINE))


ANALYSIS = Analysis(table=TABLE, needs=("segments", "idle_spans"), compute=compute)
