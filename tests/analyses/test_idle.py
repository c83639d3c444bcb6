"""Idle time by cause."""

from __future__ import annotations

from tests.builders import annotation, compute, host, kernel, launch, op
from tracekit.analyses import idle_spans
from tracekit.analyses.idle import ANALYSIS
from tracekit.analyses.idle_spans import CAUSES


def test_causes_of_each_timeline_add_up_to_its_idle_time() -> None:
    table = compute(
        ANALYSIS,
        kernel("a", 0, 100_000, correlation=1),
        launch(1, -10_000, -5_000),
        host("runtime", "cudaStreamSynchronize", 20_000, 105_000),
        annotation("enumerate(DataLoader)#__next__", 105_000, 115_000),
        host("runtime", "cudaMalloc", 115_000, 120_000),
        kernel("b", 160_000, 200_000, correlation=2),
        launch(2, 130_000, 135_000),
        kernel("unlinked", 207_000, 300_000),
        before=[idle_spans.ANALYSIS],
    )

    row = table.row(0, named=True)
    assert {cause: row[f"{cause}_ns"] for cause in CAUSES} == {
        "sync": 15_000,
        "data": 10_000,
        "allocation": 5_000,
        "host_bound": 20_000,
        "dependency": 10_000,
        "other": 7_000,
    }
    assert sum(row[f"{cause}_ns"] for cause in CAUSES) == row["idle_ns"] == 67_000
    assert (row["window_ns"], row["gaps"], row["longest_gap_ns"]) == (300_000, 2, 60_000)
    assert row["idle_ratio"] == 67_000 / 300_000


def test_rank_that_was_never_idle_has_a_row_of_zeros() -> None:
    table = compute(
        ANALYSIS,
        kernel("k", 0, 10),
        kernel("k", 20, 30),
        kernel("k", 0, 50, rank=1),
        before=[idle_spans.ANALYSIS],
    )

    assert table.select("rank", "idle_ns", "other_ns", "gaps", "longest_gap_ns", "idle_ratio").rows() == [
        (0, 10, 10, 1, 10, 1 / 3),
        (1, 0, 0, 0, 0, 0.0),
    ]


def test_two_recordings_of_one_rank_are_two_windows() -> None:
    rows = [kernel("k", at, at + 10, window=window) for window, at in ((0, 0), (0, 15), (1, 1_000), (1, 1_050))]

    table = compute(ANALYSIS, *rows, before=[idle_spans.ANALYSIS])

    assert table.select("window", "window_ns", "idle_ns").rows() == [(0, 25, 5), (1, 60, 40)]


def test_run_on_cpus_is_idle_between_its_operators() -> None:
    table = compute(ANALYSIS, op("aten::mm", 0, 10), op("aten::mm", 14, 20), view="host", before=[idle_spans.ANALYSIS])

    assert table.select("window_ns", "idle_ns", "other_ns").rows() == [(20, 4, 4)]
