"""Where HolisticTraceAnalysis (HTA) measures something else than tracekit, by name, and how to see a run as HTA does.

Each name is a transformation of tracekit's tables. Tests apply the names that a trace calls for; after that the numbers must
agree exactly, so that a difference that nobody has named fails.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

import polars as pl

from tracekit.engine.derived import DERIVED
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE

US = 1000


class Disagreement(Enum):
    """What HTA does differently."""

    DROPS_LAST_STEP = (
        "HTA leaves out what was launched in the last profiler step or after it, when there are two steps or more"
    )
    DROPS_UNLAUNCHED = "and with it every device event whose launch is not in the trace"
    ROUNDS_TO_MICROSECONDS = "HTA rounds starts up and ends down to whole microseconds when the trace has fractions"
    IDLE_PER_STREAM = "HTA's idle time by cause is each stream's own, although other streams may be busy"
    OVERLAPS_REDUCE_IDLE = (
        "HTA adds up starts minus previous ends, so events that overlap on one stream take idle time away"
    )
    NO_QUEUE_FOR_GRAPHS = "HTA's queue lengths leave out what CUDA graphs replay"
    TIES_AS_THEY_COME = "HTA sorts queue changes by time alone: of two in one microsecond, either comes first"
    MISNAMES_LATE_LAUNCHES = (
        "HTA calls a whole gap host wait if the launch began after it did, whatever the host was doing"
    )


def seen_by_hta(run: RunTables, names: Collection[Disagreement]) -> RunTables:
    """*run* with the derived tables that follow from HTA's view of it."""
    for analysis in DERIVED:
        if analysis.name == "segments":
            run = run.with_table("device", _device(run, names).collect().lazy())
        run = run.with_table(analysis.name, analysis.compute(run).collect().lazy())
    return run


def _device(run: RunTables, names: Collection[Disagreement]) -> pl.LazyFrame:
    device = run["device"]
    if Disagreement.DROPS_LAST_STEP in names:
        last = run["steps"].group_by(TIMELINE).agg(last_ns=pl.col("start_ns").max())
        before = (
            run["events"]
            .filter(pl.col("device") < 0)
            .join(last, on=TIMELINE)
            .filter(pl.col("start_ns") < pl.col("last_ns"))
        )
        device = device.join(
            before.select(*TIMELINE, "correlation").unique(), on=[*TIMELINE, "correlation"], how="semi"
        )
    if Disagreement.ROUNDS_TO_MICROSECONDS in names:
        start, end = -(-pl.col("start_ns") // US) * US, pl.col("end_ns") // US * US
        device = device.with_columns(start_ns=start, end_ns=end, dur_ns=end - start)
    return device
