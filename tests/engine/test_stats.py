"""Which ranks a cost falls on."""

from __future__ import annotations

import polars as pl

from tracekit.engine.stats import burden, counted
from tracekit.model.analysis import Context

TWO_STEPS = Context(steps=2, step_ns=1_000, ranks=(0, 1, 2), units=2)


def totals(*rows: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["rank", "lower_ns", "upper_ns"], orient="row")


def test_costs_are_per_step_and_of_the_rank_that_bears_most() -> None:
    load = burden(totals((0, 20, 100), (1, 100, 600), (2, 0, 40)), TWO_STEPS, at_least=0.1)

    assert load is not None
    assert (load.rank, load.cost_ns, load.ratio, load.median_ratio, load.ranks) == (1, (50, 300), 0.3, 0.05, (1,))
    assert str(load) == "30.0 % of the step (300 ns) on rank 1, 5.00 % on the median rank"


def test_rows_of_one_rank_are_added() -> None:
    load = burden(totals((0, 0, 100), (0, 0, 100)), Context(steps=1, step_ns=1_000, ranks=(0,)), at_least=0.2)

    assert load is not None
    assert str(load) == "20.0 % of the step (200 ns)"
    assert [quantity.value for quantity in load.evidence("idle time per step")] == [200, 0.2, 0.2]


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


def test_without_a_step_time_there_is_no_share() -> None:
    assert burden(totals((0, 0, 400)), Context(steps=0, step_ns=0, ranks=(0,)), at_least=0.1) is None


def test_one_thing_is_no_plural() -> None:
    assert [counted(number, "gap", "gaps") for number in (0, 1, 1_614)] == ["0 gaps", "1 gap", "1,614 gaps"]
