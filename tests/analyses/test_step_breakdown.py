"""Where each step's time goes, by wall time and by launch."""

from __future__ import annotations

from tests.builders import compute, context, kernel, step
from tracekit.analyses.step_breakdown import ANALYSIS, find


def test_two_views_of_work_that_runs_into_the_next_step() -> None:
    """A kernel launched in step 0 runs from 80 to 130 beside step 1's first: the wall view cuts it where that one starts."""
    table = compute(
        ANALYSIS,
        step(0, 0, 100),
        step(1, 100, 200),
        kernel("a", 0, 80, step=0),
        kernel("b", 80, 130, step=0, lane=8),
        kernel("c", 110, 180, step=1),
    )
    names = ("step", "window_ns", "compute_ns", "idle_ns", "launched_span_ns", "launched_compute_ns", "host_ns")
    assert table.select(names).rows() == [(0, 110, 110, 0, 130, 130, 100), (1, 90, 70, 20, 70, 70, 100)]


def test_steps_of_a_device_that_lags_behind_the_host_are_the_device_s() -> None:
    """The host launches three steps in 30 ns; each takes the device 100 ns. No step is idle, no work is lost."""
    steps = [step(number, 10 * number, 10 * number + 10) for number in range(3)]
    kernels = [kernel("gemm", 100 * number, 100 * number + 100, step=number) for number in range(3)]
    table = compute(ANALYSIS, *steps, *kernels)
    assert table.select("step", "window_ns", "compute_ns", "idle_ns").rows() == [(n, 100, 100, 0) for n in range(3)]


def test_the_wall_view_adds_up() -> None:
    table = compute(
        ANALYSIS,
        step(0, 0, 100),
        kernel("gemm", 10, 50, step=0),
        kernel("nccl", 40, 90, cls="communication", lane=20, step=0),
        kernel("late", 95, 300, step=None),
    )
    (row,) = table.to_dicts()
    assert (
        row["compute_ns"] + row["exposed_comm_ns"] + row["exposed_memory_ns"] + row["idle_ns"]
        == row["window_ns"]
        == 100
    )
    assert (row["compute_ns"], row["overlapped_comm_ns"], row["exposed_comm_ns"]) == (45, 10, 40)


def test_a_step_that_was_cut_off_is_left_out() -> None:
    table = compute(ANALYSIS, step(0, 0, 100), step(1, 100, 200, complete=False), kernel("a", 10, 190, step=0))
    assert table["step"].to_list() == [0]


def test_a_step_without_device_work_is_idle() -> None:
    table = compute(ANALYSIS, step(0, 0, 100), step(1, 100, 200), kernel("a", 10, 20, step=0))
    assert table.select("step", "idle_ns", "launched_span_ns").rows() == [(0, 90, 10), (1, 100, 0)]


class TestOutliers:
    def codes(self, *lengths: int) -> list[str]:
        start, rows = 0, []
        for number, length in enumerate(lengths):
            rows += [step(number, start, start + length), kernel("a", start, start + 10, step=number)]
            start += length
        return [finding.code for finding in find(compute(ANALYSIS, *rows), context(steps=len(lengths), step_ns=100))]

    def test_one_long_step_among_steady_ones(self) -> None:
        assert self.codes(100, 100, 160, 100, 100) == ["TK-STEP-OUTLIER"]

    def test_a_little_longer_is_none(self) -> None:
        assert self.codes(100, 100, 140, 100, 100) == []

    def test_unsteady_steps_have_none(self) -> None:
        assert self.codes(100, 130, 160, 90, 135) == []
