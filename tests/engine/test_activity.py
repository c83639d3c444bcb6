"""One label for every moment of a rank's steps."""

from __future__ import annotations

from tests.builders import Row, annotation, collective, host, kernel, launch, memcpy, op, run, step, with_tables
from tracekit.analyses import idle_spans
from tracekit.engine.activity import activity

PAUSE = "tracekit.gc generation 2"
FETCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def labels(*rows: Row, view: str = "device") -> list[tuple[int, int, int, str]]:
    """(rank, start, end, activity) of each segment."""
    tables = with_tables(run(*rows, view=view), idle_spans.ANALYSIS)
    return activity(tables).select("rank", "start_ns", "end_ns", "activity").collect().rows()


def test_of_what_runs_at_once_the_first_counts() -> None:
    assert labels(
        memcpy(start=0, end=40),
        kernel("nccl", 10, 30, cls="communication", lane=20),
        kernel("gemm", 20, 25),
    ) == [
        (0, 0, 10, "memory"),
        (0, 10, 20, "communication"),
        (0, 20, 25, "compute"),
        (0, 25, 30, "communication"),
        (0, 30, 40, "memory"),
    ]


def test_idle_moments_are_called_by_their_cause() -> None:
    """The kernel at 130 µs was launched at 100 µs, after the batch had come, and the one at 200 µs long before."""
    us = 1000
    rows = [
        kernel("k", 0, 10 * us),
        annotation(FETCH, 5 * us, 90 * us),
        kernel("k", 130 * us, 140 * us, correlation=1),
        launch(1, 100 * us, 105 * us),
        kernel("k", 200 * us, 210 * us, correlation=2),
        launch(2, 106 * us, 108 * us),
    ]
    assert [(start // us, end // us, label) for _, start, end, label in labels(*rows)] == [
        (0, 10, "compute"),
        (10, 90, "data"),
        (90, 120, "host_bound"),
        (120, 130, "dependency"),
        (130, 140, "compute"),
        (140, 200, "dependency"),
        (200, 210, "compute"),
    ]


def test_garbage_collection_is_taken_out_of_idleness_and_out_of_nothing_else() -> None:
    assert labels(kernel("k", 0, 10), annotation(PAUSE, 5, 20), kernel("k", 30, 40)) == [
        (0, 0, 5, "compute"),
        (0, 5, 10, "compute"),
        (0, 10, 20, "gc"),
        (0, 20, 30, "other"),
        (0, 30, 40, "compute"),
    ]


def test_a_collection_that_a_stack_shows_is_one() -> None:
    rows = [kernel("k", 0, 10), host("python", "<built-in function collect>", 10, 30), kernel("k", 30, 40)]
    assert labels(*rows)[1] == (0, 10, 30, "gc")


def test_ranks_and_their_pauses_are_kept_apart() -> None:
    rows = [kernel("k", a, a + 10, rank=r) for r in (0, 1) for a in (0, 20)]
    assert labels(*rows, annotation(PAUSE, 10, 20, rank=1)) == [
        (0, 0, 10, "compute"),
        (0, 10, 20, "other"),
        (0, 20, 30, "compute"),
        (1, 0, 10, "compute"),
        (1, 10, 20, "gc"),
        (1, 20, 30, "compute"),
    ]


def test_a_step_is_labelled_beyond_the_last_kernel() -> None:
    rows = [step(0, 0, 50), kernel("k", 0, 30, step=0)]
    assert labels(*rows) == [(0, 0, 30, "compute"), (0, 30, 50, "other")]


def test_on_cpus_operators_and_backend_ranges_are_what_ranks_do() -> None:
    rows = [op("aten::mm", 0, 10), collective("all_reduce", 20, 30, device=-1, lane=9)]
    assert labels(*rows, view="host") == [(0, 0, 10, "compute"), (0, 10, 20, "other"), (0, 20, 30, "communication")]


def test_a_rank_without_device_time_does_nothing() -> None:
    assert labels(annotation("loss", 0, 10)) == []
