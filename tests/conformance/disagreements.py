"""Where HolisticTraceAnalysis (HTA) measures something else than tracekit, by name, and how to see a run as HTA does.

Each name is a transformation of tracekit's tables. Tests apply the names that a trace calls for; after that the numbers must
agree exactly, so that a difference that nobody has named fails.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

import polars as pl

from tracekit.engine.derived import DERIVED, SETS
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE

US = 1000
KERNEL_WAIT_US = 30
"""HTA's default ``consecutive_kernel_delay``."""

QUEUED_BY = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cuLaunchKernel",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "runFunction - job_prep_and_submit_for_execution",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipMemsetAsync",
    "hipMemcpyAsync",
    "hipMemcpyWithStream",
)
"""The calls that HTA's queue lengths know."""


class Disagreement(Enum):
    """What HTA does differently."""

    DROPS_LAST_STEP = (
        "HTA leaves out what was launched in the last profiler step or after it, when there are two steps or more"
    )
    DROPS_UNLAUNCHED = "and with it every device event whose launch is not in the trace"
    ROUNDS_TO_MICROSECONDS = "HTA rounds starts up and ends down to whole microseconds when the trace has fractions"
    HOLDS_MICROSECONDS_IN_DOUBLES = (
        "HTA's times are doubles: of a 16-digit time only quarters of a microsecond are left before it rounds"
    )
    DECIDES_BY_NAME = "to HTA communication is what is called nccl...Kernel, memory Memcpy and Memset, the rest compute"
    DECIDES_BY_STREAM = "HTA takes a host operator that has a stream among its arguments (Triton's) for a kernel"
    COUNTS_SYNC_RECORDS = "HTA takes a record of waiting for a stream for time in which the device is busy"
    NO_COMMUNICATION_IS_NAN = "HTA's overlap is NaN when nothing was communicated"
    IDLE_PER_STREAM = "HTA's idle time by cause is each stream's own, although other streams may be busy"
    OVERLAPS_REDUCE_IDLE = (
        "HTA adds up starts minus previous ends, so events that overlap on one stream take idle time away"
    )
    IDLE_THRESHOLDS = (
        "HTA gives a gap one cause: host wait if the launch began in it, kernel wait below 30 microseconds, else other"
    )
    FIRST_EVENT_LAUNCHES = (
        "HTA takes the trace's first event for the launch of what has no launch record, if it is a span"
    )
    MISNAMES_LATE_LAUNCHES = (
        "HTA calls a whole gap host wait if the launch began after it did, whatever the host was doing"
    )
    QUEUES_LISTED_CALLS = "HTA's queue lengths count what eleven calls launched: no CUDA graphs, no cuLaunchKernelEx, no hipModuleLaunchKernel"
    TIES_AS_THEY_COME = "HTA sorts queue changes by time alone: of two in one microsecond, either comes first"
    FAILS_ON_NEGATIVE_DURATIONS = "HTA's rounding makes durations negative and its temporal breakdown then raises"


def seen_by_hta(run: RunTables, names: Collection[Disagreement]) -> RunTables:
    """*run* with the derived tables that follow from HTA's view of it."""
    for analysis in DERIVED:
        if analysis.name == "segments":
            run = run.with_table("device", _device(run, names).collect().lazy())
        run = run.with_table(analysis.name, analysis.compute(run).collect().lazy())
    start, end = rounded(pl.col("launch_start_ns"), pl.col("launch_end_ns"), names)
    return run.with_table("launches", run["launches"].with_columns(launch_start_ns=start, launch_end_ns=end))


def rounded(start: pl.Expr, end: pl.Expr, names: Collection[Disagreement]) -> tuple[pl.Expr, pl.Expr]:
    """The times as HTA has them, in nanoseconds."""
    if Disagreement.HOLDS_MICROSECONDS_IN_DOUBLES in names:
        length = end - start
        start = _quarters(start)
        end = _quarters(start + length)
    if Disagreement.ROUNDS_TO_MICROSECONDS in names:
        return -(-start // US) * US, end // US * US
    return start, end


def _quarters(time: pl.Expr) -> pl.Expr:
    """*time* as a double of 2**50 microseconds or more holds it: a multiple of 250 ns, the even one of two that are as near."""
    nearest = (time + 125) // 250
    tied_to_odd = (time % 250 == 125) & (nearest % 2 == 1)
    return (nearest - tied_to_odd.cast(pl.Int64)) * 250


def _device(run: RunTables, names: Collection[Disagreement]) -> pl.LazyFrame:
    device = run["device"]
    if Disagreement.DROPS_LAST_STEP in names:
        device = device.join(_launched_before_last(run), on=[*TIMELINE, "correlation"], how="semi")
    if Disagreement.COUNTS_SYNC_RECORDS in names:
        waits = run["events"].filter(kind="sync").filter(pl.col("lane") >= 0)
        device = _with(device, waits, "memory")  # busy, but none of HTA's compute
    if Disagreement.DECIDES_BY_STREAM in names:
        kernels = run["events"].filter(kind="kernel").select(pl.col("name").cast(pl.String)).unique()
        operators = run["events"].filter(kind="cpu_op").with_columns(pl.col("name").cast(pl.String))
        device = _with(device, operators.join(kernels, on="name", how="semi"), "compute")
    if Disagreement.DECIDES_BY_NAME in names:
        name = pl.col("name").cast(pl.String)
        decided = (
            pl.when(name.str.contains("^nccl.*Kernel"))
            .then(pl.lit("communication"))
            .when(name.str.contains("^Memcpy|^Memset|^dma"))
            .then(pl.lit("memory"))
            .otherwise(pl.lit("compute"))
        )
        device = device.with_columns(set=decided.cast(pl.Enum(SETS)))
    start, end = rounded(pl.col("start_ns"), pl.col("end_ns"), names)
    return device.with_columns(start_ns=start, end_ns=end).with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns"))


def _launched_before_last(run: RunTables) -> pl.LazyFrame:
    """Correlations of the host events that start before the last step does."""
    last = run["steps"].group_by(TIMELINE).agg(last_ns=pl.col("start_ns").max())
    host = run["events"].filter(pl.col("device") < 0).join(last, on=TIMELINE)
    return host.filter(pl.col("start_ns") < pl.col("last_ns")).select(*TIMELINE, "correlation").unique()


def _with(device: pl.LazyFrame, events: pl.LazyFrame, set_: str) -> pl.LazyFrame:
    """*device* with *events* as if they ran on it."""
    more = events.with_columns(
        pl.col("name").cast(pl.Categorical()),
        device=pl.lit(0),
        set=pl.lit(set_).cast(pl.Enum(SETS)),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        calls=pl.lit(1),
        in_step=pl.lit(True),  # segments do not ask
    )
    columns = device.collect_schema().names()
    return pl.concat([device, more.select(columns)], how="vertical_relaxed").sort(*TIMELINE, "start_ns")
