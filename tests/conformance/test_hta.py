"""tracekit's numbers against HTA's own, on real traces; every disagreement is one that has a name."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tracekit
from tests.conformance.disagreements import US, Disagreement, seen_by_hta
from tracekit.analyses import breakdown, kernels, queues
from tracekit.engine.intervals import gaps
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::pandas.errors.Pandas4Warning"
)

EIGHT_RANKS = "kineto/dlrm_8rank"
NANOSECONDS = "kineto/single/a100_nccl_metadata_rank0of2.json.gz"
YEAR_2022 = "kineto/single/v100_dlrm_rank1of2_test.json.gz"
_DROPS = (Disagreement.DROPS_LAST_STEP, Disagreement.DROPS_UNLAUNCHED)
NAMES = {
    EIGHT_RANKS: (),  # one step: HTA keeps it
    NANOSECONDS: (*_DROPS, Disagreement.ROUNDS_TO_MICROSECONDS),
    YEAR_2022: _DROPS,
}
TRACES = pytest.mark.parametrize("trace", NAMES)


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


def both(corpus: Path, trace: str) -> tuple[Any, RunTables]:
    run = ours(corpus / trace)
    return hta(corpus / trace, int(run.ranks["rank"][0])), seen_by_hta(run, NAMES[trace])


def parts(run: RunTables) -> pl.DataFrame:
    return breakdown.compute(run).collect().sort("rank")


@TRACES
def test_temporal_breakdown(corpus: Path, trace: str) -> None:
    analysis, run = both(corpus, trace)
    table = analysis.get_temporal_breakdown(visualize=False).sort_values("rank")
    mine = parts(run)
    for theirs, name in (
        ("idle_time(us)", "idle_ns"),
        ("compute_time(us)", "compute_ns"),
        ("kernel_time(us)", "window_ns"),
    ):
        assert (mine[name] / US).to_list() == table[theirs].to_list()
    assert ((mine["busy_ns"] - mine["compute_ns"]) / US).to_list() == table["non_compute_time(us)"].to_list()


@TRACES
def test_overlap(corpus: Path, trace: str) -> None:
    analysis, run = both(corpus, trace)
    table = analysis.get_comm_comp_overlap(visualize=False).sort_values("rank")
    assert (parts(run)["overlap_ratio"] * 100).round(2).to_list() == pytest.approx(
        table["comp_comm_overlap_pctg"].to_list()
    )


@TRACES
def test_kernel_sums(corpus: Path, trace: str) -> None:
    analysis, run = both(corpus, trace)
    _, table = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=5)
    mine = kernels.compute(run).collect().with_columns(pl.col("name").cast(pl.String))
    sums = {(row["rank"], row["name"]): row["total_ns"] / US for row in mine.to_dicts()}
    named = table[table["name"] != "others"]
    assert len(named) >= 5
    assert {(row["rank"], row["name"]): row["sum (us)"] for row in named.to_dict("records")}.items() <= sums.items()


@TRACES
def test_queue_lengths(corpus: Path, trace: str) -> None:
    """`NO_QUEUE_FOR_GRAPHS`; and `TIES_AS_THEY_COME`: means differ by hundredths where two changes share a microsecond."""
    analysis, run = both(corpus, trace)
    summary = analysis.get_queue_length_summary(ranks=[int(run.ranks["rank"][0])])["queue_length"]
    one_by_one = run.with_table("launches", run["launches"].filter(~pl.col("graph")))
    mine = {(row["rank"], row["lane"]): row for row in queues.compute(one_by_one).collect().to_dicts()}
    assert len(summary)
    for key, theirs in summary.iterrows():
        assert mine[key]["launched"] * 2 == theirs["count"]
        assert mine[key]["mean_of_changes"] == pytest.approx(theirs["mean"], rel=0.01, abs=0.02)
        assert mine[key]["max_depth"] == pytest.approx(theirs["max"], abs=1)


@TRACES
def test_idle_breakdown(corpus: Path, trace: str) -> None:
    """`IDLE_PER_STREAM` and `OVERLAPS_REDUCE_IDLE`: HTA's causes of one stream add up to its gaps less its overlaps."""
    analysis, run = both(corpus, trace)
    rank = int(run.ranks["rank"][0])
    table, _ = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False)
    stream = [*TIMELINE, "lane"]
    device = run["device"].filter(pl.col("rank") == rank).sort(*stream, "start_ns")
    windows = device.group_by(stream).agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    length = pl.col("end_ns") - pl.col("start_ns")
    idle = gaps(device, windows, stream).group_by("lane").agg(idle_ns=length.sum())
    step = pl.col("start_ns") - pl.col("end_ns").shift(1)
    signed = device.group_by("lane").agg(signed_ns=step.sum(), overlaps_ns=-step.filter(step < 0).sum())
    mine = signed.join(idle, on="lane", how="left").with_columns(pl.col("idle_ns").fill_null(0)).collect().to_dicts()
    theirs = table.groupby("stream")["idle_time"].sum().to_dict()
    assert theirs
    for row in mine:
        assert theirs.get(row["lane"], 0.0) * US == pytest.approx(row["signed_ns"])
        assert row["idle_ns"] == pytest.approx(row["signed_ns"] + row["overlaps_ns"])


@pytest.mark.parametrize("trace", [trace for trace, names in NAMES.items() if names])
def test_the_names_are_needed(corpus: Path, trace: str) -> None:
    """Without them the numbers differ: HTA answers for less than the recording."""
    analysis, _ = both(corpus, trace)
    whole = parts(seen_by_hta(ours(corpus / trace), ()))
    theirs = analysis.get_temporal_breakdown(visualize=False)["kernel_time(us)"].iloc[0]
    assert theirs * US < 0.9 * whole["window_ns"][0]


def test_a_gap_that_a_sync_or_a_fetch_made_is_host_wait_to_hta(corpus: Path) -> None:
    """`Disagreement.MISNAMES_LATE_LAUNCHES`: tracekit tells data, sync and allocation apart from a slow host."""
    report = ours(corpus / EIGHT_RANKS).analyze()
    row = report.tables["idle"].filter(rank=3).to_dicts()[0]
    assert row["data_ns"] > 0
    table, _ = hta(corpus / EIGHT_RANKS, 0).get_idle_time_breakdown(ranks=[3], visualize=False)
    assert set(table["idle_category"]) <= {"host_wait", "kernel_wait", "other"}
