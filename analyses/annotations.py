"""Which annotated part of the program is the device time spent for?

**Question.** How much device time belongs to each ``record_function`` range and each module (``nn.Module: Linear_0``)?

**Method.** A device event belongs to the innermost range that was open on the thread that launched it, at the moment it
launched it. A thread without a range of its own at that moment works for the one that has the step's ranges: kernels of
the autograd engine's threads belong to what the main thread had open (``## backward ##``). ``ProfilerStep`` is not a range of
the program and is left out. Device events of no range are in the row without a name. On runs without an accelerator
operators and collectives are attributed in the same way.

``device_ns`` is a sum of durations, so that ranges add up to the timeline's total of device event durations; where streams
overlap that total is longer than the busy time. Ranges that the profiler draws on the device's own rows are not used.

**When it misleads.** Modules appear when Python stacks or modules were recorded (``with_stack``, ``with_modules``). The
backward of a module belongs to the main thread's range, not to the module.
"""

from __future__ import annotations

import polars as pl

from tracekit.engine.host import THREAD, at_moment, innermost
from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns
from tracekit.model.tables import Name

STEP_PREFIX = "ProfilerStep#"

TABLE = Table(
    name="annotations",
    doc="Device time by the innermost annotation or module on the launching thread; rows add up to all device events.",
    columns=(
        *timeline_columns(),
        Column(name="annotation", dtype=Name, nullable=True, doc="Annotation or module; null where none was open."),
        Column(name="kernels", dtype=pl.Int64, doc="Device events launched in it."),
        Column(name="device_ns", dtype=pl.Int64, unit="ns", doc="Sum of their durations."),
        Column(name="device_ratio", dtype=pl.Float64, unit="ratio", doc="Share of the timeline's sum of durations."),
    ),
)


def compute(run: RunTables) -> pl.LazyFrame:
    events, kind, name = run["events"], pl.col("kind"), pl.col("name")
    annotations = events.filter(kind == "annotation")
    modules = events.filter(kind == "python", name.cat.starts_with("nn.Module: "))
    ranges = pl.concat([annotations.filter(~name.cat.starts_with(STEP_PREFIX)), modules]).select(
        *TIMELINE, "start_ns", thread="lane", end_ns=pl.col("start_ns") + pl.col("dur_ns"), annotation="name"
    )
    shared = ranges.join(_main_threads(annotations), on=THREAD, how="semi").rename({"annotation": "shared"})
    own = at_moment(_launched(run), innermost(ranges, THREAD, ["annotation"]), THREAD, ["annotation"])
    table = (
        at_moment(own, innermost(shared, TIMELINE, ["shared"]), TIMELINE, ["shared"])
        .group_by(*TIMELINE, annotation=pl.coalesce("annotation", "shared"))
        .agg(kernels=pl.col("calls").sum(), device_ns=pl.col("dur_ns").sum())
        .with_columns(device_ratio=pl.col("device_ns") / pl.col("device_ns").sum().over(TIMELINE))
    )
    order = pl.col("device_ns"), pl.col("annotation").cast(pl.String)
    return TABLE.conform(table.sort(*TIMELINE, *order, descending=[False, False, True, False]))


def _main_threads(annotations: pl.LazyFrame) -> pl.LazyFrame:
    """The thread of each timeline whose annotations, its steps among them, last longest: [rank, window, thread]."""
    lasting = annotations.group_by(*TIMELINE, thread="lane").agg(pl.col("dur_ns").sum())
    return lasting.sort("dur_ns", "thread", descending=[True, False]).unique(
        TIMELINE, keep="first", maintain_order=True
    )


def _launched(run: RunTables) -> pl.LazyFrame:
    """Every device event with the thread and moment of its launch: [rank, window, thread, at_ns, dur_ns, calls], by moment."""
    launched = run["launches"].select(
        *TIMELINE,
        thread="launch_thread",
        at_ns="launch_start_ns",
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        calls=pl.lit(1, pl.Int64),
    )
    on_host = (
        run["device"]
        .filter(pl.col("device") == -1)
        .select(*TIMELINE, thread="lane", at_ns="start_ns", dur_ns="dur_ns", calls=pl.col("calls").cast(pl.Int64))
    )
    return pl.concat([launched, on_host]).sort("at_ns", nulls_last=True)


ANALYSIS = Analysis(table=TABLE, needs=("events", "device"), compute=compute)
