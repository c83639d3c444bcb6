r"""Where does each rank's time go?

**Question.** Of a rank's window, how much is compute, communication, memory operations and nothing at all, and how much of
the communication does compute hide?

**Method.** Sums over ``segments``, in each of which the same sets run throughout. With C, N and M the unions of compute,
communication and memory intervals: exposed communication is |N \ C|, exposed memory operations |M \ (C ∪ N)|, so
compute + exposed communication + exposed memory operations + idle = window, exactly.

**When it misleads.** Communication includes waiting for ranks that arrive late: a long all-reduce may be a slow peer, not a
slow network. The window starts with the first device event, so idle time before it is not seen. Occupancy is the
profiler's estimate of how many warps fit, not of how many ran.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.model.analysis import Analysis
from tracekit.model.metric import CATALOGUE
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

COUNTS = ("device_events", "compute_kernels", "comm_kernels", "memory_ops")
TIMES = (
    "window_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "comm_ns",
    "memory_ns",
    "overlapped_comm_ns",
    "exposed_comm_ns",
    "exposed_memory_ns",
)
RATIOS = ("utilization_ratio", "compute_utilization_ratio", "overlap_ratio", "comm_to_compute_ratio")
_OCCUPANCY = "sm_utilization_ratio"


def metric_columns(names: Sequence[str], dtype: type[pl.DataType], *, nullable: bool = False) -> tuple[Column, ...]:
    """Columns that hold metrics of the catalogue, with the catalogue's words."""
    metrics = [CATALOGUE[name] for name in names]
    units = {"count": ""}
    return tuple(
        Column(name=m.key, dtype=dtype(), doc=m.doc, unit=units.get(m.unit, m.unit.value), nullable=nullable)
        for m in metrics
    )


TABLE = Table(
    name="breakdown",
    doc="Each recording's window by what ran in it. Counts are of device events and 0 on runs without an accelerator.",
    columns=(
        *timeline_columns(),
        *metric_columns(COUNTS, pl.Int64),
        *metric_columns(TIMES, pl.Int64),
        *metric_columns((*RATIOS, _OCCUPANCY), pl.Float64, nullable=True),
    ),
)

_LENGTH = pl.col("end_ns") - pl.col("start_ns")
_C, _N, _M = pl.col("compute"), pl.col("communication"), pl.col("memory")

MASKS: dict[str, pl.Expr] = {
    "window_ns": pl.lit(True),
    "busy_ns": _C | _N | _M,
    "idle_ns": ~(_C | _N | _M),
    "compute_ns": _C,
    "comm_ns": _N,
    "memory_ns": _M,
    "overlapped_comm_ns": _N & _C,
    "exposed_comm_ns": _N & ~_C,
    "exposed_memory_ns": _M & ~(_C | _N),
}
"""The definitions, as conditions on segments."""

SUMS = {name: _LENGTH.filter(mask).sum() for name, mask in MASKS.items()}
"""The same, summed."""


def ratios(frame: pl.LazyFrame) -> pl.LazyFrame:
    """*frame* of `TIMES` with `RATIOS`; a ratio whose denominator is zero is null, never NaN."""

    def over(part: str, whole: str) -> pl.Expr:
        return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))

    return frame.with_columns(
        utilization_ratio=over("busy_ns", "window_ns"),
        compute_utilization_ratio=over("compute_ns", "window_ns"),
        overlap_ratio=over("overlapped_comm_ns", "comm_ns"),
        comm_to_compute_ratio=over("comm_ns", "compute_ns"),
    )


def compute(run: RunTables) -> pl.LazyFrame:
    times = run["segments"].filter("in_window").group_by(TIMELINE).agg(**SUMS)
    set_, kernel = pl.col("set"), pl.col("device") >= 0
    counts = (
        run["device"]
        .group_by(TIMELINE)
        .agg(
            device_events=kernel.sum(),
            compute_kernels=(kernel & (set_ == "compute")).sum(),
            comm_kernels=(kernel & (set_ == "communication")).sum(),
            memory_ops=(kernel & (set_ == "memory")).sum(),
            occupied_ns=(pl.col("occupancy_ratio").cast(pl.Float64) * pl.col("dur_ns")).sum(),
            has_occupancy=pl.col("occupancy_ratio").is_not_null().any(),
        )
    )
    joined = ratios(times.join(counts, on=TIMELINE))
    occupied = pl.when("has_occupancy").then(pl.col("occupied_ns") / pl.col("window_ns"))
    return TABLE.conform(joined.with_columns(occupied.alias(_OCCUPANCY))).sort(TIMELINE)


ANALYSIS = Analysis(table=TABLE, needs=("device", "segments"), compute=compute)
