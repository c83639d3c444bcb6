"""How fast does the host launch, and does the device have to wait for it?

**Question.** How many launches are there, how long does a launching call take, how long until its work starts, and how often
does it find the device with nothing left to do?

**Method.** A launch is a host call with the device events that it issued: one kernel, one copy, or all of a replayed graph.
``delay`` runs from the start of the call to the start of its first device event. A launch is *dry* when everything launched
before it on the rank has ended by the time it is called: the device is idle, and waits for this very call. Depth of the
streams' queues is in ``queues``.

**When it misleads.** The profiler makes every call slower, by several µs with Python stacks. A long delay is no harm while
the queue is full: read it together with the dry launches. Work launched before the recording began is unknown, so its
first launches may read dry. Clocks of host and device that differ show in every delay; it may even be negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.engine.stats import burden
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity
from tracekit.model.quantity import ns
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

TABLE = Table(
    name="launch_stats",
    doc="Launches of every timeline: how many, how long the calls take, how long until their work starts.",
    columns=(
        *timeline_columns(),
        Column(name="events", dtype=pl.Int64, doc="Device events: kernels, copies and sets."),
        Column(name="unlinked", dtype=pl.Int64, doc="Device events without a launch record."),
        Column(name="launches", dtype=pl.Int64, doc="Calls that launched device events."),
        Column(name="step_launches", dtype=pl.Int64, doc="Those of them that complete steps made."),
        Column(name="graph_launches", dtype=pl.Int64, doc="Launches of a CUDA or HIP graph among them."),
        Column(name="graph_events", dtype=pl.Int64, doc="Device events that graph launches issued."),
        Column(
            name="call_median_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="Median duration of a launching call."
        ),
        Column(name="call_p95_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="95th percentile of it."),
        Column(
            name="delay_median_ns",
            dtype=pl.Int64,
            unit="ns",
            nullable=True,
            doc="Median time from the call's start to the start of its first device event.",
        ),
        Column(name="delay_p95_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="95th percentile of it."),
        Column(name="dry_launches", dtype=pl.Int64, doc="Launches that found nothing left to do on the device."),
    ),
)


def compute(run: RunTables) -> pl.LazyFrame:
    linked = pl.col("linked")
    events = run["launches"].group_by(TIMELINE).agg(events=pl.len(), unlinked=(~linked).sum())
    launch = (*TIMELINE, "launch_thread", "launch_start_ns")
    launches = (
        run["launches"]
        .filter(linked)
        .group_by(launch)
        .agg(
            pl.len().alias("issued"),
            pl.col("graph", "in_step").first(),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            call_ns=pl.col("launch_end_ns").first() - pl.col("launch_start_ns").first(),
        )
        .sort("launch_start_ns")
        .with_columns(
            delay_ns=pl.col("start_ns") - pl.col("launch_start_ns"),
            before_ns=pl.col("end_ns").cum_max().shift(1).over(TIMELINE),
        )
    )
    graph, before = pl.col("graph"), pl.col("before_ns")
    stats = launches.group_by(TIMELINE).agg(
        launches=pl.len(),
        step_launches=pl.col("in_step").sum(),
        graph_launches=graph.sum(),
        graph_events=pl.col("issued").filter(graph).sum(),
        call_median_ns=pl.col("call_ns").median(),
        call_p95_ns=pl.col("call_ns").quantile(0.95, "nearest"),
        delay_median_ns=pl.col("delay_ns").median(),
        delay_p95_ns=pl.col("delay_ns").quantile(0.95, "nearest"),
        dry_launches=(before.is_null() | (before <= pl.col("launch_start_ns"))).sum(),
    )
    counts = ("launches", "step_launches", "graph_launches", "graph_events", "dry_launches")
    table = events.join(stats, on=TIMELINE, how="left").with_columns(pl.col(counts).fill_null(0))
    return TABLE.conform(table.sort(TIMELINE))


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """Ranks whose launching calls take half as long again as the median rank's, where the difference adds up to 1 % of the step."""
    ranks = table.group_by("rank").agg(pl.col("call_median_ns").median(), pl.col("step_launches").sum())
    usual = ranks["call_median_ns"].quantile(0.5, "lower") or 0
    if len(ranks) < 2 or usual <= 0:
        return ()
    slow = ranks.filter(pl.col("call_median_ns") > 1.5 * usual)
    excess = ((pl.col("call_median_ns") - usual) * pl.col("step_launches")).cast(pl.Int64)
    load = burden(slow.select("rank", lower_ns=pl.lit(0, pl.Int64), upper_ns=excess), context, at_least=0.01)
    if load is None:
        return ()
    call_ns = slow.filter(rank=load.rank)["call_median_ns"].item()
    finding = load.finding(
        code="TK-LAUNCH-SLOW",
        title=f"Rank {load.rank} takes {ns(call_ns)} for a launching call, {context.others} {ns(usual)}",
        cause="Its host is slower: bound to the far NUMA node, or its cores are shared with data loading or another process.",
        remedy="numactl --cpunodebind --membind (torchrun --numa-binding), OMP_NUM_THREADS, fewer DataLoader workers than cores",
        confidence=Confidence.LOW,
        evidence=(
            Quantity(label="median launching call", value=call_ns, unit="ns"),
            Quantity(label=f"median launching call on {context.others}", value=usual, unit="ns"),
            Quantity(label=f"longer calls per {load.unit}", value=load.cost_ns[1], unit="ns"),
        ),
    )
    return (finding,)


ANALYSIS = Analysis(table=TABLE, needs=("launches",), compute=compute, find=find, codes=("TK-LAUNCH-SLOW",))
