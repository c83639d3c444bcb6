"""Whose fault a late arrival is, and what that rank did instead."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Row, annotation, collective, compute, host, kernel, launch, memcpy, op, rank, step
from tracekit.analyses import idle_spans
from tracekit.analyses.blame import ANALYSIS

FETCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
US = 1000


def meeting(arrivals: dict[int, int], end: int, name: str = "all_reduce", **columns: Any) -> list[Row]:
    """A collective to which each rank comes at its time, and which all leave at *end*."""
    kernels = {"lane": columns.get("lane", 20), "step": columns.get("step")}
    return [
        row
        for number, at in arrivals.items()
        for row in (
            collective(name, at, end, rank=number, **columns),
            kernel("nccl", at, end, cls="communication", rank=number, **kernels),
        )
    ]


def computing(start: int, ends: dict[int, int], **columns: Any) -> list[Row]:
    return [kernel("gemm", start, end, rank=number, **columns) for number, end in ends.items()]


def blame(*rows: Row) -> list[tuple[Any, ...]]:
    """(match, last rank, rank to blame, cause, excess, steps back) of each late collective."""
    return compute(ANALYSIS, *rows, before=[idle_spans.ANALYSIS]).rows()


def late(*instead: Row, us: int = 1) -> list[Row]:
    """Three ranks leave a collective at 10. Two compute until 40; rank 2 does something else first and comes at 90, last."""
    rows = [
        *meeting({0: 0, 1: 0, 2: 0}, 10),
        *computing(10, {0: 40, 1: 40}),
        *(row if row.get("rank") else {**row, "rank": 2} for row in instead),
        *meeting({0: 40, 1: 40, 2: 90}, 100),
    ]
    return [{**row, "start_ns": row["start_ns"] * us, "dur_ns": row["dur_ns"] * us} for row in rows]


class TestCauses:
    """Since ranks were last together; what the late one has more of than the median of its peers."""

    def test_compute(self) -> None:
        assert blame(*late(kernel("gemm", 10, 90))) == [(1, 2, 2, "compute", 50, 0)]

    def test_copies(self) -> None:
        assert blame(*late(memcpy(start=10, end=60), kernel("gemm", 60, 90))) == [(1, 2, 2, "memory", 50, 0)]

    def test_communication_of_its_own_without_anybody_to_wait_for(self) -> None:
        own = [
            collective("send_recv", 10, 60, group="pp"),
            kernel("send", 10, 60, cls="communication", lane=20),
            kernel("gemm", 60, 90),
        ]
        assert blame(*late(*own)) == [(1, 2, 2, "communication", 50, 0)]

    def test_garbage_collection(self) -> None:
        rows = [annotation("tracekit.gc generation 2", 10, 55), kernel("gemm", 60, 90)]
        assert blame(*late(*rows)) == [(1, 2, 2, "gc", 45, 0)]

    def test_a_batch(self) -> None:
        rows = [annotation(FETCH, 10, 50), launch(1, 50, 55), kernel("gemm", 60, 90, correlation=1)]
        assert blame(*late(*rows, us=US)) == [(1, 2, 2, "data", 40 * US, 0)]

    def test_launches(self) -> None:
        rows = [launch(1, 50, 55), kernel("gemm", 60, 90, correlation=1)]
        assert blame(*late(*rows, us=US)) == [(1, 2, 2, "host_bound", 50 * US, 0)]

    def test_reading_a_value(self) -> None:
        rows = [
            host("runtime", "cudaStreamSynchronize", 0, 50),
            launch(1, 55, 58),
            kernel("gemm", 60, 90, correlation=1),
        ]
        assert blame(*late(*rows, us=US)) == [(1, 2, 2, "sync", 45 * US, 0)]

    def test_idleness_that_nothing_explains(self) -> None:
        assert blame(*late(kernel("gemm", 60, 90))) == [(1, 2, 2, "other", 50, 0)]

    def test_what_a_rank_did_before_they_were_together_counts_for_nothing(self) -> None:
        before = kernel("gemm", -1000, 0)
        assert blame(*late(before, memcpy(start=10, end=60), kernel("gemm", 60, 90))) == [(1, 2, 2, "memory", 50, 0)]


def test_on_cpus_ranges_of_the_backend_are_the_collectives() -> None:
    """Rank 1 fetches its batch from 10 to 50; both compute for 30 ns then."""
    gloo: dict[str, Any] = {"device": -1, "lane": 9}
    rows = [
        *(collective(start=0, end=10, rank=number, **gloo) for number in (0, 1)),
        op("aten::mm", 10, 40),
        annotation(FETCH, 10, 50, rank=1),
        op("aten::mm", 50, 80, rank=1),
        *(collective(start=start, end=90, rank=number, **gloo) for number, start in ((0, 40), (1, 80))),
    ]
    table = compute(ANALYSIS, *rows, view="host", before=[idle_spans.ANALYSIS])
    assert table.rows() == [(1, 1, 1, "data", 40, 0)]


def test_each_collective_of_a_group_is_compared_from_the_one_before_it_on() -> None:
    """Rank 1 computes longer at first; after the second collective rank 0 copies."""
    rows = [
        *meeting({0: 0, 1: 0}, 10),
        *computing(10, {0: 40, 1: 90}),
        *meeting({0: 40, 1: 90}, 100),
        *computing(100, {0: 120, 1: 120}),
        memcpy(start=120, end=190),
        *meeting({0: 190, 1: 120}, 200),
    ]
    assert blame(*rows) == [(1, 1, 1, "compute", 50, 0), (2, 0, 0, "memory", 70, 0)]


class TestUnknown:
    def test_nothing_was_recorded_before_the_first_collective(self) -> None:
        assert blame(*meeting({0: 0, 1: 50}, 60)) == [(0, 1, 1, "unknown", 0, 0)]

    def test_without_steps_the_first_collective_is_compared_from_the_window_s_begin(self) -> None:
        rows = [*computing(0, {0: 10, 1: 50}), *meeting({0: 10, 1: 50}, 60)]
        assert blame(*rows) == [(0, 1, 1, "compute", 40, 0)]

    @pytest.mark.parametrize(("more", "expected"), [(15, ("unknown", 0)), (16, ("compute", 16))])
    def test_a_cause_explains_more_than_a_quarter_of_the_lateness(self, more: int, expected: tuple[str, int]) -> None:
        """Rank 1 comes 60 ns late, most of it because its step began late."""
        rows = [
            step(0, 0, 200, rank=0),
            step(0, 60 - more, 200, rank=1),
            *computing(0, {0: 40}, step=0),
            *computing(60 - more, {1: 100}, step=0),
            *meeting({0: 40, 1: 100}, 200, step=0),
        ]
        assert blame(*rows) == [(0, 1, 1, *expected, 0)]


class TestWhichAreAsked:
    @pytest.mark.parametrize(("apart", "asked"), [(2, 0), (3, 1)])
    def test_arrivals_more_than_two_thousandths_of_the_step_apart(self, apart: int, asked: int) -> None:
        rows = [*computing(0, {0: 500, 1: 500 + apart}), *meeting({0: 500, 1: 500 + apart}, 1000)]
        assert len(blame(*rows)) == asked

    def test_nobody_is_blamed_within_the_error_of_the_clocks(self) -> None:
        rows = [*computing(0, {0: 40, 1: 60}), *meeting({0: 40, 1: 60}, 100), rank(0)]
        assert blame(*rows, rank(1, clock_error_ns=20)) == []
        assert len(blame(*rows, rank(1, clock_error_ns=19))) == 1

    def test_nobody_waits_in_an_operation_that_one_may_leave_before_another_comes(self) -> None:
        rows = [*computing(0, {0: 40, 1: 60}), *meeting({0: 40, 1: 60}, 100, "broadcast")]
        assert blame(*rows) == []

    def test_a_single_rank_or_no_communication_has_nobody_to_blame(self) -> None:
        assert blame(*computing(0, {0: 40}), *meeting({0: 40}, 100)) == []
        assert blame(*computing(0, {0: 40, 1: 60})) == []
        assert blame() == []


def groups(*members: tuple[int, ...]) -> list[dict[str, Any]]:
    """Process groups, each on a stream of its own."""
    return [
        {"group": str(number), "group_ranks": str(list(ranks)), "lane": 20 + number}
        for number, ranks in enumerate(members)
    ]


class TestPassedOn:
    """Of four ranks 0 and 1, 2 and 3 are tensor parallel, 0 and 2, 1 and 3 replicas. Before, all were together."""

    TP0, TP1, DP0, DP1 = groups((0, 1), (2, 3), (0, 2), (1, 3))

    def rows(self, *, arrivals: dict[int, int]) -> list[Row]:
        """All leave their replicas at 10 and compute until *arrivals*, meet in their tensor group, and 5 ns later their replicas."""
        left = {number: max(arrivals[number], arrivals[number ^ 1]) + 5 for number in arrivals}
        pairs = [(self.TP0, (0, 1)), (self.TP1, (2, 3))]
        replicas = [(self.DP0, (0, 2)), (self.DP1, (1, 3))]
        return [
            *(row for group, ranks in pairs for row in meeting(dict.fromkeys(ranks, -10), 0, **group)),
            *(row for group, ranks in replicas for row in meeting(dict.fromkeys(ranks, 0), 10, **group)),
            *computing(10, arrivals),
            *(row for group, r in pairs for row in meeting({n: arrivals[n] for n in r}, left[r[0]], **group)),
            *(row for group, r in replicas for row in meeting({n: left[n] for n in r}, 200, **group)),
        ]

    def test_a_rank_that_waited_itself_hands_the_blame_to_whom_it_waited_for(self) -> None:
        """Rank 1 computes longest. Rank 0 waits for it and so comes late to its replica, rank 2."""
        assert blame(*self.rows(arrivals={0: 40, 1: 90, 2: 40, 3: 40})) == [
            (4, 1, 1, "compute", 50, 0),
            (6, 0, 1, "compute", 50, 1),
            (7, 1, 1, "compute", 50, 0),
        ]

    def test_waiting_for_one_another_in_one_group_is_nobody_else_s_fault(self) -> None:
        """Both ranks of a tensor group compute longer: each is late to its own replica."""
        assert blame(*self.rows(arrivals={0: 90, 1: 90, 2: 40, 3: 40})) == [
            (5, 0, 0, "compute", 50, 0),
            (6, 1, 1, "compute", 50, 0),
        ]

    def test_through_two_groups(self) -> None:
        """Rank 2 computes longest; rank 1 waits for it, rank 0 for rank 1, rank 3 for rank 0."""
        members = [(1, 2), (0, 1), (0, 3)]
        ends = {0: 20, 1: 20, 2: 90, 3: 20}
        early = [
            row
            for at, ranks, group in zip((-30, -20, -10), members, groups(*members), strict=True)
            for row in meeting(dict.fromkeys(ranks, at), at + 10, **group)
        ]
        first, second, third = groups(*members)
        rows = [
            *early,
            *computing(0, ends),
            *meeting({1: 20, 2: 90}, 95, **first),
            *meeting({0: 20, 1: 95}, 100, **second),
            *meeting({3: 20, 0: 100}, 105, **third),
        ]
        assert [row[1:] for row in blame(*rows)] == [
            (2, 2, "compute", 70, 0),
            (1, 2, "compute", 70, 1),
            (0, 2, "compute", 70, 2),
        ]

    def test_of_two_ranks_that_it_waited_for_the_one_that_it_waited_for_longest(self) -> None:
        """Rank 0 waits 10 ns for rank 1, then 45 ns for rank 2, and so comes late to rank 3."""
        first, second, third = groups((0, 1), (0, 2), (0, 3))
        rows = [
            *meeting({0: -30, 1: -30}, -20, **first),
            *meeting({0: -20, 2: -20}, -10, **second),
            *meeting({0: -10, 3: -10}, 0, **third),
            *computing(0, {0: 20, 1: 30, 2: 80, 3: 20}),
            *meeting({0: 20, 1: 30}, 35, **first),
            *meeting({0: 35, 2: 80}, 85, **second),
            *meeting({3: 20, 0: 85}, 90, **third),
        ]
        assert [row[1:] for row in blame(*rows) if row[1] == 0] == [(0, 2, "compute", 60, 1)]

    def test_ranks_that_waited_for_one_another_in_a_circle_keep_the_blame(self) -> None:
        """Rank 0 is first in one group and rank 1 in another, at once; each waits there for the other."""
        one, other = groups((0, 1), (0, 1))
        rows = [
            *meeting({0: -20, 1: -20}, -10, **one),
            *meeting({0: -10, 1: -10}, 0, **other),
            *meeting({0: 0, 1: 50}, 60, **one),
            *meeting({0: 50, 1: 0}, 60, **other),
        ]
        assert [row[1:] for row in blame(*rows)] == [(1, 1, "communication", 50, 0), (0, 0, "communication", 50, 0)]
