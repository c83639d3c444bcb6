"""Which communication is exposed?

**Question.** For each stream, process group and operation: how much time, how much of it under compute, how fast?

**Method.** The union of a group's intervals, intersected with the compute of its timeline. Intervals of different rows may
overlap one another, so rows do not add up to the timeline's communication; a row's own parts do add up.

**When it misleads.** Time includes waiting for late ranks, so ``algbw_bytes_per_s`` is a lower bound of what the network
gave. Where the profiler wrote no sizes there is no bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.engine.intervals import union, within
from tracekit.engine.stats import burden
from tracekit.engine.steps import in_complete_steps
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity
from tracekit.model.quantity import count, ns, size
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

_KEY = (*TIMELINE, "lane", "group", "group_desc", "op")

TABLE = Table(
    name="overlap",
    doc="Communication of every stream, process group and operation: time, what compute covers, volume, bandwidth.",
    columns=(
        *timeline_columns(),
        Column(name="lane", dtype=pl.Int64, doc="Stream, or backend thread."),
        Column(
            name="group", dtype=pl.String, nullable=True, doc="Process group; null where the profiler did not write it."
        ),
        Column(name="group_desc", dtype=pl.String, nullable=True, doc="Its description."),
        Column(name="op", dtype=pl.String, doc="Operation."),
        Column(name="count", dtype=pl.Int64, doc="Number of operations."),
        Column(name="comm_ns", dtype=pl.Int64, unit="ns", doc="Union of their intervals, waiting included."),
        Column(name="overlapped_comm_ns", dtype=pl.Int64, unit="ns", doc="Of that, under compute."),
        Column(name="exposed_comm_ns", dtype=pl.Int64, unit="ns", doc="The rest."),
        Column(name="step_count", dtype=pl.Int64, doc="Operations that complete steps issued."),
        Column(
            name="step_exposed_comm_ns", dtype=pl.Int64, unit="ns", doc="Exposed communication inside ``step_spans``."
        ),
        Column(
            name="bytes",
            dtype=pl.Int64,
            unit="bytes",
            nullable=True,
            doc="Sum of the larger of input and output of each; null if unknown.",
        ),
        Column(name="median_bytes", dtype=pl.Float64, unit="bytes", nullable=True, doc="Median of the same."),
        Column(name="median_ns", dtype=pl.Float64, unit="ns", doc="Median duration."),
        Column(
            name="algbw_bytes_per_s",
            dtype=pl.Float64,
            unit="bytes_per_s",
            nullable=True,
            doc="Bytes over the sum of durations, waiting included.",
        ),
    ),
)

_SMALL_BYTES = 1_000_000
_COMM_SHARE = 0.03
_FEWEST = 8
_NS_PER_S = 1e9


def compute(run: RunTables) -> pl.LazyFrame:
    # Joins leave out null keys, and groups may be unknown: number the keys first.
    spans = in_complete_steps(run["collectives"], run["steps"]).with_columns(
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        key=pl.struct(_KEY).rank("dense").cast(pl.Int64),
        size=pl.max_horizontal("in_bytes", "out_bytes"),
    )
    per_key = [*TIMELINE, "key"]
    compute = pl.col("compute")
    masks = {"overlapped_comm_ns": compute, "step_exposed_comm_ns": pl.col("in_step") & ~compute}
    times = (
        within(union(spans, per_key), run["segments"], masks, TIMELINE)
        .group_by(per_key)
        .agg(pl.col(masks).sum(), comm_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    )
    sizes = spans.group_by(per_key).agg(
        pl.col("lane", "group", "group_desc", "op").first(),
        count=pl.len(),
        step_count=pl.col("in_step").sum(),
        bytes=pl.when(pl.col("size").is_not_null().any()).then(pl.col("size").sum()),
        median_bytes=pl.col("size").median(),
        median_ns=pl.col("dur_ns").median(),
        summed_ns=pl.col("dur_ns").sum(),
    )
    joined = sizes.join(times, on=per_key, how="left").with_columns(pl.col("comm_ns", *masks).fill_null(0))
    return TABLE.conform(
        joined.with_columns(
            exposed_comm_ns=pl.col("comm_ns") - pl.col("overlapped_comm_ns"),
            algbw_bytes_per_s=pl.when(pl.col("summed_ns") > 0).then(pl.col("bytes") * _NS_PER_S / pl.col("summed_ns")),
        )
    ).sort(*TIMELINE, "exposed_comm_ns", "lane", "op", descending=[False, False, True, False, False])


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """Operations of under 1 MB (median) that take 3 % of the step or more, eight or more a step."""
    spans = context.per_rank.lazy().select("rank", "spans")
    many = pl.col("step_count") >= _FEWEST * pl.col("spans")
    small = table.lazy().filter(pl.col("median_bytes") < _SMALL_BYTES).join(spans, on="rank").filter(many).collect()
    load = burden(small.select("rank", lower_ns=0, upper_ns="step_exposed_comm_ns"), context, at_least=_COMM_SHARE)
    if load is None:
        return []
    worst = small.filter(rank=load.rank).sort("step_exposed_comm_ns", descending=True).row(0, named=True)
    per_step = context.per_step(load.rank, worst["step_count"])
    return [
        load.finding(
            code="TK-COMM-SMALL",
            title=f"Small collectives: {count(per_step)} {worst['op']} {load.each} of {size(worst['median_bytes'])} (median); those of under 1 MB take {load}",
            cause=f"At {ns(worst['median_ns'])} each, what they cost is latency, not bandwidth.",
            remedy="Fewer, larger ones: DDP bucket_cap_mb, larger FSDP units, torch.distributed._coalescing_manager, XLA's combine thresholds",
            confidence=Confidence.MEDIUM,
            evidence=(
                Quantity(label=f"operations per {load.unit}", value=per_step, unit="count"),
                Quantity(label="median size", value=worst["median_bytes"], unit="bytes"),
                Quantity(label="median duration", value=worst["median_ns"], unit="ns"),
            ),
        )
    ]


ANALYSIS = Analysis(
    table=TABLE, needs=("collectives", "segments"), compute=compute, find=find, codes=("TK-COMM-SMALL",)
)
