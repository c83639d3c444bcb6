"""Which communication is exposed, by stream, group and operation."""

from __future__ import annotations

from tests.builders import Row, collective, compute, context, kernel, step
from tracekit.analyses.overlap import ANALYSIS, find


def both(op: str, start: int, end: int, **columns: object) -> list[Row]:
    """A collective and the device time that it is."""
    return [
        collective(op, start, end, **columns),
        kernel(op, start, end, cls="communication", lane=20, step=columns.get("step")),
    ]


def test_each_operation_of_each_group() -> None:
    table = compute(
        ANALYSIS,
        kernel("gemm", 0, 50),
        *both("all_reduce", 40, 100, group="dp", in_bytes=600, out_bytes=600),
        *both("all_gather", 100, 120, group="tp", in_bytes=10, out_bytes=40),
        *both("all_gather", 110, 130, group="tp", in_bytes=10, out_bytes=40),
    )
    names = ("group", "op", "count", "comm_ns", "overlapped_comm_ns", "exposed_comm_ns", "bytes", "algbw_bytes_per_s")
    assert table.select(names).rows() == [
        ("dp", "all_reduce", 1, 60, 10, 50, 600, 600 / 60e-9),
        ("tp", "all_gather", 2, 30, 0, 30, 80, 80 / 40e-9),
    ]


def test_figures_per_step_are_of_complete_steps_alone() -> None:
    table = compute(
        ANALYSIS,
        step(0, 100, 200),
        *both("all_reduce", 50, 60),
        *both("all_reduce", 120, 140, step=0),
        *both("all_reduce", 150, 160, step=0),
        *both("all_reduce", 250, 260, step=1),
    )
    assert table.select("count", "exposed_comm_ns", "step_count", "step_exposed_comm_ns").rows() == [(4, 50, 2, 30)]


def test_unknown_groups_and_sizes_stay_unknown() -> None:
    table = compute(ANALYSIS, *both("all_reduce", 0, 10))
    assert table.select("group", "comm_ns", "bytes", "algbw_bytes_per_s").rows() == [(None, 10, None, None)]


class TestSmall:
    def codes(self, count: int, size: int | None) -> list[str]:
        rows = [row for i in range(count) for row in both("all_reduce", 10 * i, 10 * i + 5, in_bytes=size)]
        return [finding.code for finding in find(compute(ANALYSIS, *rows), context(step_ns=1000))]

    def test_many_small_ones(self) -> None:
        assert self.codes(20, 4096) == ["TK-COMM-SMALL"]

    def test_large_few_or_unknown_ones_are_none(self) -> None:
        assert self.codes(20, 4_000_000) == []
        assert self.codes(7, 4096) == []
        assert self.codes(20, None) == []
