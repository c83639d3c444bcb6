"""Which ranks the others wait for, and when that is one rank's habit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from tests.builders import Row, annotation, collective, compute, context, kernel, rank, step
from tracekit.analyses import blame, idle_spans
from tracekit.analyses.stragglers import ANALYSIS
from tracekit.model.finding import Confidence, Finding

STEP_NS = 1000
Arrivals = Sequence[int]


def meeting(arrivals: dict[int, int], end: int, **columns: Any) -> list[Row]:
    """An all-reduce to which each rank comes at its time, and which all leave at *end*."""
    kernels = {"lane": columns.get("lane", 20), "step": columns.get("step")}
    return [
        row
        for number, at in arrivals.items()
        for row in (
            collective("all_reduce", at, end, rank=number, **columns),
            kernel("nccl", at, end, cls="communication", rank=number, **kernels),
        )
    ]


def steps(*arrivals: Arrivals) -> list[Row]:
    """Steps in which each rank computes until it comes to an all-reduce, which lasts until the step's end."""
    rows = []
    for number, each in enumerate(arrivals):
        begin, end = number * STEP_NS, (number + 1) * STEP_NS
        rows += [step(number, begin, end, rank=r) for r in range(len(each))]
        rows += [kernel("gemm", begin, begin + at, rank=r, step=number) for r, at in enumerate(each)]
        rows += meeting({r: begin + at for r, at in enumerate(each)}, end, step=number)
    return rows


def stragglers(*rows: Row) -> pl.DataFrame:
    return compute(ANALYSIS, *rows, before=[idle_spans.ANALYSIS, blame.ANALYSIS])


def costs(*rows: Row) -> list[tuple[Any, ...]]:
    """(rank, cost, least cost, the rank that waits, its waiting for anybody) of each rank that is waited for."""
    return stragglers(*rows).select("rank", "cost_ns", "least_ns", "waiting_rank", "waiting_ns").rows()


class TestCosts:
    def test_the_rank_that_waits_most_tells_the_cost_and_the_last_but_one_the_least(self) -> None:
        """In each of two steps rank 2 comes at 700; rank 0 waits 300 ns, rank 1 100 ns."""
        (row,) = stragglers(*steps([400, 600, 700], [400, 600, 700])).to_dicts()
        assert row == {
            "rank": 2, "collectives": 2, "times_last": 2, "steps": 2, "steps_worst": 2, "least_ns": 100, "cost_ns": 300,
            "error_ns": 0, "waiting_rank": 0, "waiting_ns": 300, "cause": "compute", "cause_ratio": 1, "excess_ns": 200,
        }  # fmt: skip

    def test_a_rank_that_is_late_now_and_then_costs_the_mean_of_all_steps(self) -> None:
        """Waits of 300, 0 and 0 ns for rank 1: a mean of 100 with an error of 300 / √3 / √3 over three steps."""
        (row,) = stragglers(*steps([400, 700], [400, 400], [400, 400])).to_dicts()
        assert (row["cost_ns"], row["steps_worst"], row["error_ns"]) == (100, 1, pytest.approx(100))

    def test_ranks_that_are_late_in_turn_share_the_waiting(self) -> None:
        assert costs(*steps([400, 400, 700], [400, 640, 400])) == [(2, 150, 150, 0, 270), (1, 120, 120, 0, 270)]

    def test_waiting_that_compute_covers_costs_nothing(self) -> None:
        rows = steps([400, 700])
        assert costs(*rows, kernel("gemm", 400, 600, lane=9, step=0)) == [(1, 100, 100, 0, 100)]
        assert costs(*rows, kernel("gemm", 400, 700, lane=9, step=0)) == []

    def test_waiting_outside_of_complete_steps_does_not_count(self) -> None:
        """The second step was cut off."""
        rows = [
            {**row, "complete": row["step"] == 0} if row["table"] == "steps" else row
            for row in steps([400, 500], [400, 900])
        ]
        (row,) = stragglers(*rows).to_dicts()
        assert (row["steps"], row["cost_ns"], row["waiting_ns"]) == (1, 100, 100)

    def test_a_window_without_steps_is_one(self) -> None:
        rows = [kernel("gemm", 0, 400), kernel("gemm", 0, 700, rank=1), *meeting({0: 400, 1: 700}, 1000)]
        (row,) = stragglers(*rows).to_dicts()
        assert (row["steps"], row["steps_worst"], row["cost_ns"], row["error_ns"]) == (1, 1, 300, None)

    def test_waiting_in_a_chain_is_charged_to_its_first_cause(self) -> None:
        """Rank 1 computes longest. Rank 0 waits for it, and rank 2, a replica of rank 0's, for both."""
        tp = {"group": "1", "group_ranks": "[0, 1]", "lane": 21}
        dp = {"group": "2", "group_ranks": "[0, 2]", "lane": 22}
        rows = [
            *meeting({0: -20, 1: -20}, -10, **tp), *meeting({0: -10, 2: -10}, 0, **dp),
            kernel("gemm", 0, 300), kernel("gemm", -10, 700, rank=1), kernel("gemm", 0, 300, rank=2),
            *meeting({0: 300, 1: 700}, 710, **tp), *meeting({0: 710, 2: 300}, 720, **dp),
        ]  # fmt: skip
        table = stragglers(*rows)
        assert table.select("rank", "cost_ns", "waiting_rank", "times_last", "cause").rows() == [
            (1, 410, 2, 1, "compute")
        ]

    def test_nobody_can_be_named_within_the_error_of_the_clocks(self) -> None:
        assert costs(*steps([400, 700]), rank(0), rank(1, clock_error_ns=300)) == []

    def test_nobody_is_waited_for_by_a_single_rank_or_without_communication(self) -> None:
        assert costs(*steps([400], [400])) == []
        assert costs(kernel("gemm", 0, 10), kernel("gemm", 0, 90, rank=1)) == []
        assert costs() == []


class TestCauses:
    def test_the_cause_is_the_one_that_most_of_the_waiting_stands_for(self) -> None:
        """Rank 1 computes 100 ns longer in one step; in the next the collector stops it for 300 ns."""
        rows = steps([400, 500], [400, 700])
        cut = [row for row in rows if not (row["table"] == "events" and row["rank"] == 1 and row["name"] == "gemm")]
        own = [kernel("gemm", 0, 500, rank=1, step=0), kernel("gemm", 1300, 1700, rank=1, step=1)]
        (row,) = stragglers(*cut, *own, annotation("tracekit.gc generation 2", 1000, 1300, rank=1)).to_dicts()
        assert (row["cause"], row["cause_ratio"], row["excess_ns"]) == ("gc", 0.75, 300)


def found(*rows: Row, number: int, ranks: int = 2) -> list[Finding]:
    return list(ANALYSIS.find(stragglers(*rows), context(steps=number, step_ns=STEP_NS, ranks=range(ranks))))


def codes(*arrivals: Arrivals) -> list[str]:
    return [finding.code for finding in found(*steps(*arrivals), number=len(arrivals), ranks=len(arrivals[0]))]


class TestStraggler:
    def test_a_rank_that_is_always_late(self) -> None:
        (finding,) = found(*steps(*[[400, 600, 700]] * 4), number=4, ranks=3)

        assert finding.code == "TK-STRAGGLER"
        assert finding.title == "Rank 2 keeps the others waiting: 30.0 % of the step (300 ns) on rank 0"
        assert finding.cause == (
            "In 4 of 4 steps it is the one they wait for; "
            "it computes 200 ns longer than its peers since they were last together."
        )
        assert (finding.ranks, finding.cost_ns, finding.share_ratio) == ((2,), (100, 300), 0.3)
        assert finding.confidence == Confidence.HIGH

    def test_lateness_that_nothing_explains_is_less_sure(self) -> None:
        """Rank 1 does nothing that was recorded for the first 300 ns of each step."""
        rows = [
            kernel("gemm", row["start_ns"] + 300, row["start_ns"] + 700, rank=1, step=row["step"])
            if row["table"] == "events" and row["rank"] == 1 and row["name"] == "gemm"
            else row
            for row in steps(*[[400, 700]] * 4)
        ]
        (finding,) = found(*rows, number=4)
        assert (finding.code, finding.confidence) == ("TK-STRAGGLER", Confidence.MEDIUM)
        assert "nothing that was recorded for 300 ns longer" in finding.cause

    def test_more_than_three_hundredths_of_the_step(self) -> None:
        assert codes(*[[400, 431]] * 4) == ["TK-STRAGGLER"]
        assert codes(*[[400, 430]] * 4) == []

    def test_in_seven_of_ten_steps(self) -> None:
        late, other = [400, 700, 400], [400, 400, 700]
        assert codes(*[late] * 7, *[other] * 3) == ["TK-STRAGGLER"]
        assert codes(*[late] * 6, *[other] * 4) == ["TK-JITTER"]

    def test_a_habit_is_more_even_than_chance(self) -> None:
        """Of the same mean, 100 ns of 1000: one long wait is none, four alike are."""
        assert codes([400, 500], [400, 490], [400, 510], [400, 500]) == ["TK-STRAGGLER"]
        assert codes([400, 410], [400, 410], [400, 410], [400, 770]) == ["TK-JITTER"]

    def test_one_step_shows_no_habit(self) -> None:
        assert "TK-STRAGGLER" not in codes([400, 700])


class TestJitter:
    def test_ranks_that_are_late_in_turn(self) -> None:
        (finding,) = found(*steps([700, 400, 400], [400, 700, 400], [400, 400, 700]), number=3, ranks=3)

        assert finding.code == "TK-JITTER"
        assert finding.title == "Ranks wait for one another: 20.0 % of the step (200 ns) on rank 1"
        assert "rank 0 1 times, rank 1 1 times, rank 2 1 times" in finding.cause
        assert (finding.ranks, finding.cost_ns, finding.share_ratio) == ((), (0, 200), 0.2)

    def test_waiting_of_less_than_three_hundredths_of_the_step_for_any_rank_is_none(self) -> None:
        """Each of three ranks is waited for 30 and 31 ns a step."""
        assert codes([490, 400, 400], [400, 490, 400], [400, 400, 490]) == []
        assert codes([493, 400, 400], [400, 493, 400], [400, 400, 493]) == ["TK-JITTER"]

    def test_a_straggler_goes_before_jitter(self) -> None:
        assert codes(*[[400, 700, 400]] * 7, *[[400, 400, 900]] * 1) == ["TK-STRAGGLER"]

    def test_a_run_without_steps_is_measured_by_its_window(self) -> None:
        rows = [kernel("gemm", 0, 400), kernel("gemm", 0, 700, rank=1), *meeting({0: 400, 1: 700}, 1000)]
        (finding,) = found(*rows, number=0)
        assert (finding.code, finding.title) == (
            "TK-JITTER", "Ranks wait for one another: 30.0 % of the window (300 ns) on rank 0",
        )  # fmt: skip
