"""The mean step of each rank."""

from __future__ import annotations

from typing import Any

from tests.builders import Row, compute, kernel, memcpy, step
from tracekit.analyses import step_breakdown
from tracekit.analyses.mean_step import ANALYSIS


def nccl(start: int, end: int, **columns: Any) -> Row:
    return kernel("nccl", start, end, cls="communication", lane=20, **columns)


def test_parts_of_the_mean_step_add_up_to_it() -> None:
    """Steps of 100 and 60 ns: the mean is the time from the first one's begin to the last one's end over two."""
    table = compute(
        ANALYSIS,
        step(0, 0, 100),
        step(1, 100, 160),
        kernel("gemm", 0, 50, step=0),
        nccl(40, 90, step=0),
        kernel("gemm", 100, 140, step=1),
        memcpy(start=140, end=150, step=1),
        before=[step_breakdown.ANALYSIS],
    )
    (row,) = table.to_dicts()
    parts = [row[name] for name in ("compute_ns", "exposed_comm_ns", "exposed_memory_ns", "idle_ns")]
    assert (row["steps"], row["window_ns"], parts) == (2, 80, [45, 20, 5, 10])
    assert (row["overlap_ratio"], row["utilization_ratio"]) == (0.2, 70 / 80)


def test_recording_without_complete_steps_is_its_window() -> None:
    table = compute(
        ANALYSIS,
        kernel("a", 10, 30),
        kernel("b", 40, 60),
        step(0, 0, 60, complete=False),
        before=[step_breakdown.ANALYSIS],
    )
    assert table.select("steps", "window_ns", "idle_ns").rows() == [(0, 50, 10)]
