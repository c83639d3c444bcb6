"""Which ranks a cost falls on."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from tests.builders import context
from tracekit.engine.stats import burden, counted, one_in_forty
from tracekit.model.finding import Confidence, Severity

TWO_STEPS = context(steps=2, ranks=(0, 1, 2))


def totals(*rows: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["rank", "lower_ns", "upper_ns"], orient="row")


def test_costs_are_per_step_and_of_the_rank_that_bears_most() -> None:
    load = burden(totals((0, 20, 100), (1, 100, 600), (2, 0, 40)), TWO_STEPS, at_least=0.1)

    assert load is not None
    assert (load.rank, load.cost_ns, load.ratio, load.median_ratio, load.ranks) == (1, (50, 300), 0.3, 0.05, (1,))
    assert str(load) == "30.0 % of the step (300 ns) on rank 1, 5.00 % on the median rank"


def test_rows_of_one_rank_are_added() -> None:
    load = burden(totals((0, 0, 100), (0, 0, 100)), context(), at_least=0.2)

    assert load is not None
    assert str(load) == "20.0 % of the step (200 ns)"
    assert [quantity.value for quantity in load.evidence("idle time")] == [200, 0.2]


def test_ranks_without_a_row_bear_nothing() -> None:
    load = burden(totals((2, 0, 400)), TWO_STEPS, at_least=0.1)

    assert load is not None
    assert (load.median_ratio, load.ranks) == (0.0, (2,))


def test_no_ranks_are_named_when_all_reach_the_share() -> None:
    load = burden(totals((0, 0, 400), (1, 0, 400), (2, 0, 400)), TWO_STEPS, at_least=0.1)

    assert load is not None
    assert load.ranks == ()


def test_less_than_the_share_is_no_burden() -> None:
    assert burden(totals((0, 0, 199)), TWO_STEPS, at_least=0.1) is None


def test_shares_are_of_the_rank_s_own_step() -> None:
    """Rank 0 has one step of 1000 ns, rank 1 four of 500 ns: 400 ns a step are 40 % there, 100 ns are 20 % here."""
    uneven = replace(
        context(ranks=(0, 1)), per_rank=pl.DataFrame({"rank": [0, 1], "spans": [1, 4], "step_ns": [1000, 500]})
    )
    load = burden(totals((0, 0, 400), (1, 0, 400)), uneven, at_least=0.1)

    assert load is not None
    assert (load.rank, load.cost_ns, load.ratio, load.median_ratio) == (0, (0, 400), 0.4, 0.2)
    assert str(load) == "40.0 % of the step (400 ns) on rank 0, 20.0 % on the other rank"


def test_run_without_steps_is_measured_by_its_window() -> None:
    load = burden(totals((0, 0, 400)), context(steps=0), at_least=0.1)

    assert load is not None
    assert (str(load), load.each) == ("40.0 % of the window (400 ns)", "in the window")
    assert [quantity.label for quantity in load.evidence("idle time")] == [
        "idle time per window",
        "share of the window",
    ]


def test_finding_of_a_burden_is_as_severe_as_its_share() -> None:
    load = burden(totals((0, 10, 40)), context(), at_least=0.01)

    assert load is not None
    finding = load.finding(code="TK-X", title="", cause="", remedy="", confidence=Confidence.LOW, evidence=())
    assert (finding.severity, finding.cost_ns, finding.share_ratio) == (Severity.MEDIUM, (10, 40), 0.04)


def test_without_a_step_time_there_is_no_share() -> None:
    assert burden(totals((0, 0, 400)), context(steps=0, step_ns=0), at_least=0.1) is None


def test_one_thing_is_no_plural() -> None:
    assert [counted(number, "gap", "gaps") for number in (0, 1, 1_614)] == ["0 gaps", "1 gap", "1,614 gaps"]


@pytest.mark.parametrize(
    ("degrees", "errors"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (11, 2.201), (20, 2.086), (60, 2.000), (1000, 1.962)],
)
def test_one_in_forty_is_student_s_t(degrees: int, errors: float) -> None:
    """The 97.5th percentile, from a table."""
    assert one_in_forty(degrees) == pytest.approx(errors, abs=0.03)


def test_more_values_leave_less_to_chance() -> None:
    errors = [one_in_forty(degrees) for degrees in range(1, 100)]
    assert errors == sorted(errors, reverse=True)
