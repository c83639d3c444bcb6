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

from tracekit.engine.stats import burden
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity, severity_of
from tracekit.model.metric import CATALOGUE
from tracekit.model.quantity import ns, percent
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

_EXPOSED_SHARE = 0.03
_UNEVEN_SHARE = 0.05


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
    times = run["segments"].group_by(TIMELINE).agg(**SUMS)
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


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    return [*_exposed(table, context), *_uneven(table, context)]


def _exposed(table: pl.DataFrame, context: Context) -> list[Finding]:
    """Exposed communication that takes more than 3 % of the step on some rank."""
    hidden = pl.min_horizontal("exposed_comm_ns", pl.col("compute_ns") - pl.col("overlapped_comm_ns"))
    load = burden(table.select("rank", lower_ns=0, upper_ns=hidden), context, at_least=0.0)
    exposed = burden(table.select("rank", lower_ns=0, upper_ns="exposed_comm_ns"), context, at_least=_EXPOSED_SHARE)
    if exposed is None:
        return []
    upper = exposed.cost_ns[1]
    worst = (
        table.filter(pl.col("rank") == exposed.rank)
        .select(pl.col("comm_ns", "overlapped_comm_ns").sum())
        .row(0, named=True)
    )
    evidence = [
        Quantity(label="exposed communication per step", value=upper, unit="ns"),
        Quantity(label="share of the step", value=exposed.ratio, unit="ratio"),
        Quantity(label="overlap efficiency", value=worst["overlapped_comm_ns"] / worst["comm_ns"], unit="ratio"),
    ]
    if load is not None:
        evidence.append(Quantity(label="compute that could cover it, per step", value=load.cost_ns[1], unit="ns"))
    return [
        Finding(
            code="TK-COMM-EXPOSED",
            title=f"Communication that no compute covers takes {exposed}",
            cause=f"Compute covers {percent(worst['overlapped_comm_ns'] / worst['comm_ns'])} of the communication; "
            "what is exposed is transfer and waiting for late ranks together.",
            remedy="First see whether ranks arrive late (TK-RANK-UNEVEN, ranks whose communication is shortest). "
            "Else: DDP bucket_cap_mb, FSDP2 set_modules_to_forward_prefetch, reshard_after_forward=False",
            severity=severity_of(upper, context.step_ns),
            confidence=Confidence.MEDIUM,
            cost_ns=(0, upper),
            ranks=exposed.ranks,
            evidence=tuple(evidence),
        )
    ]


def _uneven(table: pl.DataFrame, context: Context) -> list[Finding]:
    """Ranks that compute more than 5 % of the step longer than the median rank: the others wait for them."""
    sums = pl.col("compute_ns", "comm_ns", "exposed_comm_ns").sum() / context.units
    per_rank = table.group_by("rank").agg(sums.cast(pl.Int64)).sort("rank")
    if len(per_rank) < 2 or not per_rank["comm_ns"].sum():
        return []
    usual = per_rank.select(pl.col("compute_ns").quantile(0.5, "lower")).item()
    slow = per_rank.with_columns(more=pl.col("compute_ns") - usual).filter(
        pl.col("more") > _UNEVEN_SHARE * context.step_ns
    )
    if slow.is_empty():
        return []
    worst = slow.sort("more", descending=True).row(0, named=True)
    ranks = tuple(slow["rank"])
    peers = per_rank.filter(~pl.col("rank").is_in(ranks))["exposed_comm_ns"].quantile(0.5, "lower") or 0
    waited = min(max(int(peers) - worst["exposed_comm_ns"], 0), worst["more"])  # what the others expose and it does not
    named = f"Rank {ranks[0]} computes" if len(ranks) == 1 else f"Ranks {', '.join(map(str, ranks))} compute"
    return [
        Finding(
            code="TK-RANK-UNEVEN",
            title=f"{named} {ns(worst['more'])} a step longer than the median rank ({percent(worst['more'] / context.step_ns)} of the step)",
            cause="The other ranks wait for them in their collectives.",
            remedy="Compare the kernels of these ranks with another's: more work (uneven batches, experts or stages) "
            "or the same work slower (clocks, a shared machine)?",
            severity=severity_of(worst["more"], context.step_ns),
            confidence=Confidence.MEDIUM,
            cost_ns=(waited, worst["more"]),
            ranks=ranks,
            evidence=(
                Quantity(label=f"compute of rank {worst['rank']} per step", value=worst["compute_ns"], unit="ns"),
                Quantity(label="compute of the median rank per step", value=usual, unit="ns"),
                Quantity(label=f"communication of rank {worst['rank']} per step", value=worst["comm_ns"], unit="ns"),
            ),
        )
    ]


ANALYSIS = Analysis(
    table=TABLE,
    needs=("device", "segments"),
    compute=compute,
    find=find,
    codes=("TK-COMM-EXPOSED", "TK-RANK-UNEVEN"),
)
