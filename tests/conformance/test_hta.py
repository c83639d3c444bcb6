"""tracekit's numbers against HTA's own, on real traces; every disagreement is one that has a name."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tracekit
from tests.conformance.disagreements import KERNEL_WAIT_US, QUEUED_BY, US, Disagreement, seen_by_hta
from tracekit.analyses import breakdown, kernels, queues
from tracekit.engine.intervals import gaps
from tracekit.interop.hta import to_hta
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE

pytestmark = pytest.mark.filterwarnings(
    "ignore::pandas.errors.Pandas4Warning",
    "ignore:invalid value encountered in scalar divide:RuntimeWarning",  # HTA's overlap without communication
)

EIGHT_RANKS = "kineto/dlrm_8rank"
NANOSECONDS = "kineto/single/a100_nccl_metadata_rank0of2.json.gz"
YEAR_2022 = "kineto/single/v100_dlrm_rank1of2_test.json.gz"
SIXTEEN_DIGITS = "kineto/single/v100_ddp_ns_resolution.pt.trace.json.gz"
MULTIMEM = "kineto/single/b200_rank0of8_71groups.json.gz"
TRITON = "kineto/single/a100_triton.json.gz"
SYNC_RECORDS = "kineto/single/a100_event_sync.json.gz"
INFERENCE = "kineto/single/h100_qwen_inference.json.gz"
AMD = "kineto/single/mi300x_bert.json.gz"

D = Disagreement
SIZES_US: dict[str, dict[Disagreement, float]] = {
    EIGHT_RANKS: {},  # one step: HTA keeps it
    NANOSECONDS: {D.DROPS_LAST_STEP: 224_964, D.ROUNDS_TO_MICROSECONDS: 2_362},
    YEAR_2022: {D.DROPS_LAST_STEP: 118_932},
    SIXTEEN_DIGITS: {
        D.DROPS_LAST_STEP: 95_395,
        D.ROUNDS_TO_MICROSECONDS: 3_669,
        D.HOLDS_MICROSECONDS_IN_DOUBLES: 1_194,
    },
    MULTIMEM: {D.ROUNDS_TO_MICROSECONDS: 852, D.DECIDES_BY_NAME: 2_047, D.DECIDES_BY_STREAM: 73},
    TRITON: {D.ROUNDS_TO_MICROSECONDS: 2, D.DECIDES_BY_STREAM: 93},
    SYNC_RECORDS: {D.COUNTS_SYNC_RECORDS: 5},
    AMD: {D.ROUNDS_TO_MICROSECONDS: 63},
}
"""The names that each trace calls for, with what each alone moves at most: window, compute or idle time, in microseconds."""
TRACES = pytest.mark.parametrize("trace", SIZES_US)


@cache
def hta(path: Path, rank: int) -> Any:
    from hta.trace_analysis import TraceAnalysis

    logging.getLogger("hta").setLevel(logging.ERROR)
    return (
        TraceAnalysis(trace_dir=str(path))
        if path.is_dir()
        else TraceAnalysis(trace_files={rank: str(path)}, trace_dir="")
    )


@cache
def ours(path: Path) -> tracekit.Run:
    return tracekit.open(path, cache=False)


@cache
def adapted(path: Path, names: frozenset[Disagreement]) -> RunTables:
    return seen_by_hta(ours(path), names)


def both(corpus: Path, trace: str) -> tuple[Any, RunTables]:
    run = adapted(corpus / trace, frozenset(SIZES_US[trace]))
    return hta(corpus / trace, int(run.ranks["rank"][0])), run


def parts(run: RunTables) -> pl.DataFrame:
    return breakdown.compute(run).collect().sort("rank")


def times(run: RunTables) -> dict[str, list[float]]:
    """What HTA's temporal breakdown has, from tracekit's tables."""
    mine = parts(run).with_columns(non_compute_ns=pl.col("busy_ns") - pl.col("compute_ns"))
    columns = {"idle": "idle_ns", "compute": "compute_ns", "non_compute": "non_compute_ns", "kernel": "window_ns"}
    return {name: (mine[column] / US).to_list() for name, column in columns.items()}


def their_times(analysis: Any) -> dict[str, list[float]]:
    table = analysis.get_temporal_breakdown(visualize=False).sort_values("rank")
    return {name: table[f"{name}_time(us)"].to_list() for name in ("idle", "compute", "non_compute", "kernel")}


@TRACES
def test_temporal_breakdown(corpus: Path, trace: str) -> None:
    analysis, run = both(corpus, trace)
    assert times(run) == their_times(analysis)


@pytest.mark.parametrize(("trace", "name"), [(trace, name) for trace, sizes in SIZES_US.items() for name in sizes])
def test_each_name_is_needed_and_moves_no_more_than_it_may(corpus: Path, trace: str, name: Disagreement) -> None:
    _, run = both(corpus, trace)
    without = times(adapted(corpus / trace, frozenset(SIZES_US[trace]) - {name}))
    moved = max(abs(a - b) for key, values in times(run).items() for a, b in zip(values, without[key], strict=True))
    assert 0 < moved <= SIZES_US[trace][name]


@TRACES
def test_overlap(corpus: Path, trace: str) -> None:
    """`NO_COMMUNICATION_IS_NAN`: tracekit's ratio is null then."""
    analysis, run = both(corpus, trace)
    table = analysis.get_comm_comp_overlap(visualize=False).sort_values("rank")
    mine = [None if ratio is None else round(ratio * 100, 2) for ratio in parts(run)["overlap_ratio"].to_list()]
    theirs = [None if ratio != ratio else ratio for ratio in table["comp_comm_overlap_pctg"].to_list()]  # noqa: PLR0124
    assert mine == pytest.approx(theirs)


@TRACES
def test_kernel_sums(corpus: Path, trace: str) -> None:
    analysis, run = both(corpus, trace)
    _, table = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6, include_memory_kernels=True)
    theirs = {
        (row["rank"], row["name"]): (row["sum (us)"], row["min (us)"], row["max (us)"])
        for row in table.to_dict("records")
    }
    sums = kernels.compute(run).group_by("rank", pl.col("name").cast(pl.String))
    mine = sums.agg(pl.col("total_ns").sum(), pl.col("min_ns").min(), pl.col("max_ns").max()).collect()
    expected = {
        (row["rank"], row["name"]): (row["total_ns"] / US, row["min_ns"] / US, row["max_ns"] / US)
        for row in mine.to_dicts()
        if "Sync" not in row["name"]  # which HTA has no kind for
    }
    assert theirs == expected


@TRACES
def test_queue_lengths(corpus: Path, trace: str) -> None:
    """`QUEUES_LISTED_CALLS`; and `TIES_AS_THEY_COME`, by no more than the changes that share a moment can account for."""
    analysis, run = both(corpus, trace)
    summary = analysis.get_queue_length_summary(ranks=run.ranks["rank"].to_list())
    known = pl.col("launch_name").cast(pl.String).is_in(QUEUED_BY)
    one_by_one = run.with_table("launches", run["launches"].filter(known))
    mine = {(row["rank"], row["lane"]): row for row in queues.compute(one_by_one).collect().to_dicts()}
    stream = ["rank", "lane"]
    moments = queues.depths(one_by_one["launches"]).group_by(*stream, "at_ns").len().filter(pl.col("len") > 1)
    tied = {
        (row["rank"], row["lane"]): row
        for row in moments.group_by(stream)
        .agg(sum=(pl.col("len") ** 2).sum(), max=pl.col("len").max())
        .collect()
        .to_dicts()
    }
    theirs = {} if summary is None else dict(summary["queue_length"].iterrows())
    assert set(theirs) == set(mine)
    for key, row in theirs.items():
        may = tied.get(key, {"sum": 0, "max": 0})
        assert mine[key]["launched"] * 2 == row["count"]
        assert abs(mine[key]["mean_of_changes"] - row["mean"]) * row["count"] <= may["sum"] + 1e-6
        assert abs(mine[key]["max_depth"] - row["max"]) <= may["max"]


def _stream_gaps(run: RunTables, rank: int) -> pl.LazyFrame:
    """What lies between the events of each stream, with HTA's cause: `IDLE_THRESHOLDS`."""
    before = pl.col("end_ns").shift(1).over("lane")
    device = run["launches"].filter(pl.col("rank") == rank).sort("lane", "start_ns", maintain_order=True)
    gap = pl.col("start_ns") - pl.col("before_ns")
    return device.with_columns(before_ns=before).select(
        "lane",
        gap_ns=gap,
        cause=pl.when(pl.col("launch_start_ns") > pl.col("before_ns"))
        .then(pl.lit("host_wait"))
        .when(gap < KERNEL_WAIT_US * US)
        .then(pl.lit("kernel_wait"))
        .otherwise(pl.lit("other")),
    )


def _causes(run: RunTables, rank: int) -> dict[tuple[int, str], float]:
    found = _stream_gaps(run, rank).group_by("lane", "cause").agg(pl.col("gap_ns").sum()).collect()
    return {(row["lane"], row["cause"]): row["gap_ns"] / US for row in found.to_dicts() if row["gap_ns"]}


def their_causes(analysis: Any, rank: int) -> dict[tuple[int, str], float]:
    table, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
    return {
        (row["stream"], row["idle_category"]): row["idle_time"] for row in table.to_dict("records") if row["idle_time"]
    }


@TRACES
def test_idle_causes(corpus: Path, trace: str) -> None:
    """`IDLE_THRESHOLDS`: HTA's causes follow from tracekit's launches, stream by stream."""
    analysis, _ = both(corpus, trace)
    names = frozenset(SIZES_US[trace]) - {D.COUNTS_SYNC_RECORDS, D.DECIDES_BY_STREAM}  # here HTA goes by category, too
    run = adapted(corpus / trace, names)
    rank = int(run.ranks["rank"][0])
    assert _causes(run, rank) == their_causes(analysis, rank)


def test_the_first_event_as_a_launch(corpus: Path) -> None:
    """`FIRST_EVENT_LAUNCHES`: in this trace it moves 18 µs from kernel wait to host wait, and nothing else."""
    run = adapted(corpus / INFERENCE, frozenset({D.ROUNDS_TO_MICROSECONDS}))
    theirs = their_causes(hta(corpus / INFERENCE, 0), 0)
    first = run["events"].select(-(-pl.col("start_ns").first() // US) * US).collect().item()
    launch = pl.col("launch_start_ns").fill_null(first)
    assert _causes(run.with_table("launches", run["launches"].with_columns(launch)), 0) == theirs
    mine = _causes(run, 0)
    assert {key: theirs[key] - mine[key] for key in theirs} == {(7, "host_wait"): 18, (7, "kernel_wait"): -18}
    assert their_causes(to_hta(ours(corpus / INFERENCE)), 0) == mine


@TRACES
def test_idle_totals(corpus: Path, trace: str) -> None:
    """`IDLE_PER_STREAM` and `OVERLAPS_REDUCE_IDLE`: HTA's causes of one stream add up to its gaps less its overlaps."""
    _, run = both(corpus, trace)
    rank = int(run.ranks["rank"][0])
    stream = [*TIMELINE, "lane"]
    device = run["device"].filter(pl.col("rank") == rank, pl.col("dur_ns") >= 0).sort(*stream, "start_ns")
    windows = device.group_by(stream).agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    idle = gaps(device, windows, stream).group_by("lane").agg(idle_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    step = pl.col("start_ns") - pl.col("end_ns").shift(1)
    signed = device.group_by("lane").agg(signed_ns=step.sum(), overlaps_ns=-step.filter(step < 0).sum())
    mine = signed.join(idle, on="lane", how="left").with_columns(pl.col("idle_ns").fill_null(0)).collect().to_dicts()
    assert mine
    for row in mine:
        assert row["idle_ns"] == row["signed_ns"] + row["overlaps_ns"]


def test_negative_durations_make_hta_fail(corpus: Path) -> None:
    """`FAILS_ON_NEGATIVE_DURATIONS`: 1,700 kernels, many below a microsecond. Handed over with their fractions they are measured."""
    run = ours(corpus / INFERENCE)
    with pytest.raises(AssertionError):
        to_hta(run).get_temporal_breakdown(visualize=False)
    exact = to_hta(run, rounded=False).get_temporal_breakdown(visualize=False)
    assert exact["compute_time(us)"].iloc[0] == pytest.approx(
        parts(adapted(corpus / INFERENCE, frozenset()))["compute_ns"][0] / US
    )


def test_a_gap_that_a_sync_or_a_fetch_made_is_host_wait_to_hta(corpus: Path) -> None:
    """`MISNAMES_LATE_LAUNCHES`: tracekit tells data, sync and allocation apart from a slow host; to HTA all are host wait."""
    row = ours(corpus / EIGHT_RANKS).analyze().tables["idle"].filter(rank=3).to_dicts()[0]
    assert row["data_ns"] > 0
    table, _ = hta(corpus / EIGHT_RANKS, 0).get_idle_time_breakdown(ranks=[3], visualize=False)
    assert set(table["idle_category"]) <= {"host_wait", "kernel_wait", "other"}
