"""Device time by annotation and module."""

from __future__ import annotations

from typing import Any

from tests.builders import Row, annotation, collective, compute, host, kernel, launch, op
from tracekit.analyses.annotations import ANALYSIS

AUTOGRAD = 200


def launched(number: int, length: int, at: int, *, thread: int = 100, **columns: Any) -> list[Row]:
    """A kernel of *length*, launched at *at* on *thread*."""
    return [
        kernel("k", 1_000, 1_000 + length, correlation=number, **columns),
        launch(number, at, at + 1, lane=thread, **columns),
    ]


def lines(*rows: Row, view: str = "device") -> list[tuple[str | None, int, int]]:
    return compute(ANALYSIS, *rows, view=view).select("annotation", "kernels", "device_ns").rows()


def test_device_time_belongs_to_the_innermost_range_at_the_launch() -> None:
    rows = [
        annotation("ProfilerStep#3", 0, 100),
        annotation("## forward ##", 10, 60),
        host("python", "nn.Module: Linear_0", 20, 40),
        *launched(1, 500, at=25),
        *launched(2, 100, at=40),
        *launched(3, 30, at=15),
        *launched(4, 7, at=70),
    ]

    assert lines(*rows) == [("nn.Module: Linear_0", 1, 500), ("## forward ##", 2, 130), (None, 1, 7)]


def test_kernel_that_runs_after_its_range_has_closed_still_belongs_to_it() -> None:
    rows = [annotation("## forward ##", 0, 10), *launched(1, 500, at=9), annotation("## backward ##", 900, 2_000)]

    assert lines(*rows) == [("## forward ##", 1, 500)]


def test_threads_of_the_autograd_engine_work_for_the_main_thread() -> None:
    rows = [
        annotation("ProfilerStep#3", 0, 100),
        annotation("## backward ##", 50, 90),
        annotation("nccl:all_reduce", 60, 70, lane=AUTOGRAD),
        *launched(1, 500, at=55, thread=AUTOGRAD),
        *launched(2, 100, at=65, thread=AUTOGRAD),
        *launched(3, 30, at=95, thread=AUTOGRAD),
    ]

    assert lines(*rows) == [("## backward ##", 1, 500), ("nccl:all_reduce", 1, 100), (None, 1, 30)]


def test_other_python_functions_and_ranges_on_the_device_are_no_ranges_of_the_program() -> None:
    rows = [
        host("python", "train.py(12): step", 0, 100),
        {**kernel("## forward ##", 0, 2_000), "kind": "gpu_annotation", "class": ""},
        *launched(1, 500, at=55),
    ]

    assert lines(*rows) == [(None, 1, 500)]


def test_kernels_without_launch_record_stay_in_the_row_without_name() -> None:
    rows = [annotation("## forward ##", 0, 5_000), kernel("orphan", 10, 40), *launched(1, 10, at=5)]

    table = compute(ANALYSIS, *rows)

    assert table.select("annotation", "kernels", "device_ns", "device_ratio").rows() == [
        (None, 1, 30, 0.75),
        ("## forward ##", 1, 10, 0.25),
    ]


def test_ranks_are_kept_apart() -> None:
    rows = [
        annotation("a", 0, 10),
        *launched(1, 30, at=5),
        annotation("b", 0, 10, rank=1),
        *launched(1, 40, at=5, rank=1),
    ]

    assert compute(ANALYSIS, *rows).select("rank", "annotation", "device_ns").rows() == [(0, "a", 30), (1, "b", 40)]


def test_run_on_cpus_is_attributed_by_its_operators_and_collectives() -> None:
    rows = [
        annotation("ProfilerStep#3", 0, 100),
        annotation("## forward ##", 0, 50),
        op("aten::mm", 10, 30),
        op("aten::add", 60, 70),
        collective("all_reduce", 20, 45, device=-1, lane=300),
    ]

    assert lines(*rows, view="host") == [("## forward ##", 2, 45), (None, 1, 10)]
