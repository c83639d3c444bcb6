"""How much work waits in each stream's queue?

**Question.** How far is the host ahead of each stream?

**Method.** A stream's queue grows by one when a call launches something on it and shrinks by one when that starts to run
(HolisticTraceAnalysis' queue length). Depths are weighted by how long they lasted, from the stream's first launch to its
last start; ``mean_of_changes`` weights every change alike, as HolisticTraceAnalysis' summary does.

**When it misleads.** A graph launch counts with every event it replays, all at once. Work without a launch record is left
out. A stream that mostly waits for another has a deep queue and is no proof that the host is ahead.
"""

from __future__ import annotations

import polars as pl

from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

TABLE = Table(
    name="queues",
    doc="Depth of every stream's queue: launched, not yet started.",
    columns=(
        *timeline_columns(),
        Column(name="device", dtype=pl.Int32, doc="Device number."),
        Column(name="lane", dtype=pl.Int64, doc="Stream."),
        Column(name="launched", dtype=pl.Int64, doc="Device events launched on the stream."),
        Column(
            name="mean_depth",
            dtype=pl.Float64,
            nullable=True,
            doc="Mean depth, weighted by time; null when no time passed.",
        ),
        Column(name="mean_of_changes", dtype=pl.Float64, doc="Mean of the depths after each change."),
        Column(name="max_depth", dtype=pl.Int64, doc="Greatest depth."),
        Column(
            name="empty_ratio",
            dtype=pl.Float64,
            unit="ratio",
            nullable=True,
            doc="Share of the time in which nothing waited.",
        ),
    ),
)

STREAM = (*TIMELINE, "device", "lane")


def depths(launches: pl.LazyFrame) -> pl.LazyFrame:
    """The depth of each stream's queue after each change: [rank, window, device, lane, at_ns, depth], by time.

    What is launched and starts at one moment has been in the queue.
    """
    linked = launches.filter("linked")
    launched = linked.select(*STREAM, at_ns="launch_start_ns", change=pl.lit(1, pl.Int64))
    started = linked.select(*STREAM, at_ns="start_ns", change=pl.lit(-1, pl.Int64))
    launched_first = pl.col("at_ns") * 2 - (pl.col("change") > 0)  # one key sorts four times faster than two
    changes = pl.concat([launched, started]).sort(launched_first)
    return changes.select(*STREAM, "at_ns", depth=pl.col("change").cum_sum().over(STREAM))


def compute(run: RunTables) -> pl.LazyFrame:
    depth, lasting = pl.col("depth"), pl.col("at_ns").diff().shift(-1)
    table = (
        depths(run["launches"])
        .group_by(STREAM, maintain_order=True)
        .agg(
            launched=pl.len() // 2,
            mean_depth=(depth * lasting).sum() / lasting.sum(),
            mean_of_changes=depth.mean(),
            max_depth=depth.max(),
            empty_ratio=lasting.filter(depth <= 0).sum() / lasting.sum(),
        )
        .with_columns(pl.col("mean_depth", "empty_ratio").fill_nan(None))
    )
    return TABLE.conform(table.sort(STREAM))


ANALYSIS = Analysis(table=TABLE, needs=("launches",), compute=compute)
