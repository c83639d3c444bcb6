"""Where each step begins and ends on its device."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Row, compute, kernel, launch, op, run, step, with_tables
from tracekit.analyses import step_breakdown
from tracekit.engine.derived import of_steps
from tracekit.engine.steps import in_complete_steps

US = 1_000


def spans(*rows: Row, view: str = "device") -> list[tuple[int | None, int, int]]:
    table = with_tables(run(*rows, view=view))["step_spans"].select("step", "start_ns", "end_ns").collect()
    return table.rows()


def test_step_that_ends_with_the_device_idle_is_the_host_s() -> None:
    rows = [step(0, 0, 100), step(1, 100, 200), kernel("a", 20, 90, step=0), kernel("b", 120, 190, step=1)]
    assert spans(*rows) == [(0, 0, 100), (1, 100, 200)]


def test_step_begins_when_the_device_is_done_with_the_one_before() -> None:
    rows = [step(0, 0, 50), step(1, 50, 100), kernel("a", 10, 130, step=0), kernel("b", 150, 190, step=1)]
    assert spans(*rows) == [(0, 0, 130), (1, 130, 190)]


def test_step_begins_with_its_first_kernel_where_the_one_before_still_communicates() -> None:
    rows = [
        step(0, 0, 50),
        step(1, 50, 100),
        kernel("a", 10, 110, step=0),
        kernel("nccl", 100, 160, cls="communication", lane=20, step=0),
        kernel("b", 120, 190, step=1),
    ]
    assert spans(*rows) == [(0, 0, 120), (1, 120, 190)]


def test_prefetched_copy_begins_no_step() -> None:
    rows = [
        step(0, 0, 50),
        step(1, 50, 100),
        kernel("a", 10, 130, step=0),
        kernel("copy", 60, 70, cls="copy", lane=8, step=1),
        kernel("b", 130, 190, step=1),
    ]
    assert spans(*rows) == [(0, 0, 130), (1, 130, 190)]


def test_first_step_begins_after_the_work_recorded_before_it() -> None:
    rows = [step(0, 0, 50), kernel("warm", -20, 30), kernel("a", 40, 90, step=0)]
    assert spans(*rows) == [(0, 30, 90)]


def test_first_step_begins_with_its_first_kernel_where_that_waited_in_a_queue() -> None:
    def launched(ahead_us: int) -> list[tuple[int | None, int, int]]:
        rows = [step(0, 0, 200 * US), kernel("a", 100 * US, 300 * US, step=0, correlation=1)]
        return spans(*rows, launch(1, (100 - ahead_us) * US, (101 - ahead_us) * US))

    assert launched(15) == [(0, 0, 300 * US)]
    assert launched(90) == [(0, 100 * US, 300 * US)]


def test_last_step_ends_when_host_and_device_have_finished() -> None:
    assert spans(step(0, 0, 100), kernel("a", 20, 60, step=0)) == [(0, 0, 100)]
    assert spans(step(0, 0, 100), kernel("a", 20, 160, step=0)) == [(0, 0, 160)]


def test_step_that_is_cut_off_has_no_span_and_ends_the_one_before() -> None:
    rows = [
        step(0, 0, 50),
        step(1, 50, 90, complete=False),
        kernel("a", 10, 130, step=0),
        kernel("b", 130, 300, step=1),
    ]
    assert spans(*rows) == [(0, 0, 130)]


def test_numbers_that_are_missing_leave_a_hole() -> None:
    rows = [step(0, 0, 50), step(5, 500, 550), kernel("a", 10, 60, step=0), kernel("b", 510, 540, step=5)]
    assert spans(*rows) == [(0, 0, 60), (5, 500, 550)]


def test_without_complete_steps_the_window_is_the_span() -> None:
    assert spans(kernel("a", 10, 20), kernel("b", 40, 50), step(0, 0, 60, complete=False)) == [(None, 10, 50)]


def test_on_cpus_steps_are_the_host_s() -> None:
    rows = [step(0, 0, 50), step(1, 50, 100), op("aten::mm", 10, 40, step=0), op("aten::mm", 60, 90, step=1)]
    assert spans(*rows, view="host") == [(0, 0, 50), (1, 50, 100)]


def test_spans_of_some_steps_are_those_of_all() -> None:
    """The spans are found before the neighbours are gone: step 1 begins where step 0's work ends."""
    rows = [step(0, 0, 50), step(1, 50, 100), kernel("a", 10, 130, step=0), kernel("b", 150, 190, step=1)]
    only = of_steps(run(*rows), [1])
    assert only["step_spans"].select("step", "start_ns", "end_ns").collect().rows() == [(1, 130, 190)]
    assert only["events"].select("name").collect()["name"].to_list() == ["b"]


def test_everything_is_in_a_step_where_there_are_none() -> None:
    rows = run(
        kernel("before", 0, 10), kernel("in", 10, 20, step=0), kernel("cut", 20, 30, step=1), step(0, 5, 20),
        step(1, 20, 40, complete=False), kernel("no steps", 0, 10, rank=1),
    )  # fmt: skip
    marked = in_complete_steps(rows["events"], rows["steps"]).select("name", "in_step").collect()
    assert marked.rows() == [("before", False), ("in", True), ("cut", False), ("no steps", True)]


STEP = st.tuples(
    st.integers(1, 60), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 50)), max_size=4)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=1, max_size=6))
def test_consecutive_steps_follow_one_another_and_their_parts_add_up(
    steps: list[tuple[int, list[tuple[int, int, int]]]],
) -> None:
    """However far the device lags behind: no hole, no lap, and a step's mean length is time over steps."""
    rows, host, free = [], 0, [0, 0, 0]
    for number, (length, kernels) in enumerate(steps):
        rows.append(step(number, host, host + length))
        for stream, pause, duration in kernels:
            start = max(free[stream], host) + pause
            free[stream] = start + duration
            cls = "communication" if stream == 2 else "gemm"
            rows.append(kernel("k", start, start + duration, cls=cls, lane=stream, step=number))
        host += length
    found = spans(*rows)
    assert [number for number, _, _ in found] == list(range(len(steps)))
    assert all(end == start for (_, _, end), (_, start, _) in pairwise(found))
    assert all(start <= end for _, start, end in found)
    parts = ("compute_ns", "exposed_comm_ns", "exposed_memory_ns", "idle_ns")
    table = compute(step_breakdown.ANALYSIS, *rows)
    assert [sum(row) for row in table.select(parts).rows()] == table["window_ns"].to_list()
    assert table["window_ns"].sum() == found[-1][2] - found[0][1]
