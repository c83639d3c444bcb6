"""Launches: how many, how fast, and how often into an empty queue."""

from __future__ import annotations

import polars as pl
import pytest

from tests.builders import Row, compute, context, kernel, launch
from tracekit.analyses.launch_stats import ANALYSIS
from tracekit.model.finding import Confidence


def launched(number: int, called: tuple[int, int], runs: tuple[int, int], *, rank: int = 0) -> list[Row]:
    return [kernel("k", *runs, correlation=number, rank=rank), launch(number, *called, rank=rank)]


def test_calls_and_delays_are_measured_per_launch() -> None:
    table = compute(
        ANALYSIS,
        *launched(1, (0, 4), (10, 30)),
        *launched(2, (5, 11), (30, 40)),
        *launched(3, (12, 32), (40, 50)),
        kernel("orphan", 60, 70),
    )

    assert table.row(0, named=True) == {
        "rank": 0,
        "window": 0,
        "events": 4,
        "unlinked": 1,
        "launches": 3,
        "step_launches": 3,
        "graph_launches": 0,
        "graph_events": 0,
        "call_median_ns": 6,
        "call_p95_ns": 20,
        "delay_median_ns": 25,
        "delay_p95_ns": 28,
        "dry_launches": 1,
    }


def test_launch_is_dry_when_everything_before_it_has_ended_on_every_stream() -> None:
    rows = [
        *launched(1, (0, 1), (10, 20)),
        {**kernel("other stream", 12, 60, correlation=2), "lane": 9},
        launch(2, 2, 3),
        *launched(3, (25, 26), (30, 40)),
        *launched(4, (60, 61), (70, 80)),
    ]

    assert compute(ANALYSIS, *rows)["dry_launches"].to_list() == [2]


def test_replayed_graph_is_one_launch_of_many_events() -> None:
    replayed = [kernel("k", start, start + 10, correlation=1) for start in (100, 110, 120)]

    table = compute(ANALYSIS, *replayed, launch(1, 0, 40, "cudaGraphLaunch"), *launched(2, (50, 55), (130, 140)))

    counts = ("events", "launches", "graph_launches", "graph_events", "delay_p95_ns")
    assert table.select(counts).rows() == [(4, 2, 1, 3, 100)]


def test_rank_without_launch_records_has_no_figures() -> None:
    table = compute(ANALYSIS, kernel("k", 0, 10))

    assert table.select("events", "unlinked", "launches", "call_median_ns", "dry_launches").rows() == [
        (1, 1, 0, None, 0)
    ]


def hosts(*call_ns: int) -> pl.DataFrame:
    """Ten launches on each of as many ranks, whose launching calls take so long."""
    rows = [
        row
        for rank, length in enumerate(call_ns)
        for number in range(10)
        for row in launched(
            number, (number * 100, number * 100 + length), (number * 100 + 50, number * 100 + 60), rank=rank
        )
    ]
    return compute(ANALYSIS, *rows)


def test_rank_with_slower_launches_is_named() -> None:
    (finding,) = ANALYSIS.find(hosts(10, 16, 10), context(step_ns=6_000, ranks=(0, 1, 2)))

    assert finding.code == "TK-LAUNCH-SLOW"
    assert finding.title == "Rank 1 takes 16 ns for a launching call, the median rank 10 ns"
    assert (finding.cost_ns, finding.ranks, finding.confidence) == ((0, 60), (1,), Confidence.LOW)


@pytest.mark.parametrize(
    ("call_ns", "step_ns"),
    [((10, 15, 10), 1_000), ((10, 16, 10), 6_001), ((16,), 1_000)],
    ids=["not half as long again", "too little of the step", "no other rank"],
)
def test_other_ranks_are_not_named(call_ns: tuple[int, ...], step_ns: int) -> None:
    assert ANALYSIS.find(hosts(*call_ns), context(step_ns=step_ns, ranks=tuple(range(len(call_ns))))) == ()
