"""Exposed communication as waiting for other ranks and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Row, collective, compute, context, kernel, step
from tracekit.analyses import mean_step, step_breakdown
from tracekit.analyses.waits import ANALYSIS
from tracekit.model.finding import Confidence, Finding

TP: dict[str, Any] = {"group": "1", "group_desc": "mesh_tp", "group_ranks": "[0, 1]"}
DP: dict[str, Any] = {"group": "2", "group_desc": "mesh_dp", "group_ranks": "[0, 2]"}


def both(start: int, end: int, *, rank: int = 0, step: int | None = None, lane: int = 20, **columns: Any) -> list[Row]:
    """An all-reduce and the device time that it is."""
    return [
        collective("all_reduce", start, end, rank=rank, step=step, lane=lane, **columns),
        kernel("nccl", start, end, cls="communication", rank=rank, step=step, lane=lane),
    ]


def waits(*rows: Row) -> pl.DataFrame:
    table = compute(ANALYSIS, *rows, before=[step_breakdown.ANALYSIS, mean_step.ANALYSIS])
    parts = table["exposed_wait_ns"] + table["exposed_rest_ns"]
    assert (parts == table["exposed_comm_ns"]).all(), "waiting and the rest are what is exposed"
    return table


def split(*rows: Row) -> list[tuple[Any, ...]]:
    """(rank, exposed waiting, rest, share that was matched) of each rank."""
    return waits(*rows).select("rank", "exposed_wait_ns", "exposed_rest_ns", "matched_ratio").rows()


def test_a_rank_waits_until_the_last_one_comes() -> None:
    rows = [kernel("gemm", 0, 40), *both(40, 100), kernel("gemm", 0, 70, rank=1), *both(70, 100, rank=1)]
    assert split(*rows) == [(0, 30, 30, 1), (1, 0, 30, 1)]


def test_waiting_that_compute_covers_is_not_exposed() -> None:
    """Rank 0 waits from 40 to 80 and computes until 60; the transfer, until 100, is covered from 90 on."""
    rows = [
        kernel("gemm", 0, 60), *both(40, 100), kernel("gemm", 90, 100),
        kernel("gemm", 0, 80, rank=1), *both(80, 100, rank=1),
    ]  # fmt: skip
    assert split(*rows) == [(0, 20, 10, 1), (1, 0, 20, 1)]


def test_waits_in_two_groups_at_once_count_once() -> None:
    rows = [
        *both(0, 60, **TP), *both(40, 60, rank=1, **TP),
        *both(20, 60, lane=24, **DP), *both(50, 60, rank=2, **DP),
    ]  # fmt: skip
    assert split(*rows)[0] == (0, 50, 10, 1)


def test_means_are_of_complete_steps() -> None:
    """Waits of 20 and 40 ns in two steps, and one of 60 ns after them."""
    rows = [
        row
        for number, (at, late) in enumerate([(0, 20), (100, 40), (200, 60)])
        for rank, start in ((0, at), (1, at + late))
        for row in (
            step(number, at, at + 100, rank=rank, complete=number < 2),
            *([kernel("gemm", at, start, rank=rank, step=number)] if rank else []),
            *both(start, at + 100, rank=rank, step=number),
        )
    ]
    names = ("steps", "step_ns", "exposed_comm_ns", "exposed_wait_ns", "exposed_rest_ns", "coverable_ns")
    assert waits(*rows).select(names).rows() == [(2, 100, 100, 30, 70, 0), (2, 100, 70, 0, 70, 30)]


def test_what_cannot_be_matched_is_no_waiting() -> None:
    """Of rank 0's 40 ns a half is matched, in which it waits 5 ns."""
    rows = [*both(0, 20, seq=1), *both(30, 50, seq=2), *both(35, 50, rank=1, seq=2)]
    assert split(*rows) == [(0, 5, 35, 0.5), (1, 0, 15, 1)]


def test_a_single_rank_waits_for_nobody_that_is_known() -> None:
    assert split(kernel("gemm", 0, 40), *both(40, 100)) == [(0, 0, 60, 0)]


def test_a_rank_that_does_not_communicate_exposes_nothing() -> None:
    rows = [*both(0, 20), *both(10, 20, rank=1), kernel("gemm", 0, 20, rank=2)]
    assert split(*rows)[2] == (2, 0, 0, 0)


def test_a_run_of_nothing_has_no_rows() -> None:
    assert waits().is_empty()


ARRIVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 20)), min_size=1, max_size=5)


@settings(max_examples=30, deadline=None)
@given(ARRIVALS, st.lists(st.tuples(st.integers(0, 1), st.integers(0, 200), st.integers(1, 40)), max_size=5))
def test_equals_a_slow_count(meetings: list[tuple[int, int, int]], computing: list[tuple[int, int, int]]) -> None:
    rows, now = [kernel("gemm", start, start + length, rank=rank) for rank, start, length in computing], 0
    waiting: tuple[set[int], set[int]] = (set(), set())
    busy: tuple[set[int], set[int]] = (set(), set())
    for rank, start, length in computing:
        busy[rank].update(range(start, start + length))
    for number, (*late, transfer) in enumerate(meetings):
        last = now + max(late)
        for rank in (0, 1):
            rows += both(now + late[rank], last + transfer, rank=rank, group="g", seq=number)
            waiting[rank].update(range(now + late[rank], last))
        now = last + transfer
    assert waits(*rows)["exposed_wait_ns"].to_list() == [len(waiting[rank] - busy[rank]) for rank in (0, 1)]


def found(*rows: Row, ranks: Sequence[int] = (0, 1)) -> list[Finding]:
    return list(ANALYSIS.find(waits(*rows), context(ranks=ranks)))


def meeting(arrivals: Sequence[int], last: int, end: int = 1000) -> list[Row]:
    """Ranks compute until they come to an all-reduce; one more, of which nothing else is said, comes at *last*."""
    return [
        row
        for rank, at in enumerate([*arrivals, last])
        for row in (kernel("gemm", 0, at, rank=rank), *both(at, end, rank=rank))
    ]


class TestExposed:
    def test_transfer_from_three_hundredths_of_the_step_on(self) -> None:
        (finding,) = found(*meeting([900], last=970))

        assert finding.code == "TK-COMM-EXPOSED"
        assert finding.title == (
            "Transfer that no compute covers takes 3.00 % of the step (30 ns) on rank 0, 3.00 % on the other rank"
        )
        assert (finding.cost_ns, finding.share_ratio, finding.confidence) == ((0, 30), 0.03, Confidence.HIGH)
        assert finding.cause == (
            "Compute covers 0 % of the communication; 70 ns more of what is exposed is waiting for other ranks."
        )
        assert [quantity.value for quantity in finding.evidence if quantity.unit == "ns"] == [30, 100, 100]

    def test_waiting_alone_is_no_finding_of_communication(self) -> None:
        assert found(*meeting([100], last=971)) == []

    def test_transfer_and_waiting_of_a_rank_alone_are_not_told_apart(self) -> None:
        (finding,) = found(kernel("gemm", 0, 970), *both(940, 1000), ranks=(0,))

        assert finding.title == "Communication that no compute covers takes 3.00 % of the step (30 ns)"
        assert finding.cause.startswith("Compute covers 50.0 % of the communication; transfer and waiting")
        assert finding.confidence == Confidence.MEDIUM

    @pytest.mark.parametrize(("lone", "word"), [(100, "Transfer"), (101, "Communication")])
    def test_half_of_the_communication_matched_is_enough(self, lone: int, word: str) -> None:
        rows = [kernel("gemm", 0, 800), *both(800, 800 + lone, seq=1), *both(910, 1010, seq=2)]
        (finding,) = found(*rows, *both(910, 1010, rank=1, seq=2))
        assert (finding.title.split()[0], finding.cost_ns) == (word, (0, 100 + lone))
