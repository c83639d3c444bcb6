"""The runner: order, reasons, and failures that cost one analysis."""

from __future__ import annotations

import polars as pl
import pytest

from tests.builders import kernel, rank, run, step
from tracekit.engine.runner import analyse
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Severity
from tracekit.model.run import RunTables
from tracekit.model.table import Column, Table


def analysis(name: str, *needs: str, fails: bool = False, costs: int = 0) -> Analysis:
    """An analysis that answers with one row, fails, or finds something that costs *costs*."""

    def compute(tables: RunTables) -> pl.LazyFrame:
        frame = pl.LazyFrame({"n": [1]})
        for need in needs:
            assert tables[need].collect().height
        return frame.select("no such column") if fails else frame

    def find(_table: pl.DataFrame, _context: Context) -> list[Finding]:
        finding = Finding(
            code=f"TK-{name}", title=name, cost_ns=(0, costs), severity=Severity.LOW, confidence=Confidence.LOW
        )
        return [finding] if costs else []

    table = Table(name=name, doc="", columns=(Column(name="n", dtype=pl.Int64, doc=""),))
    return Analysis(table=table, needs=needs, compute=compute, find=find)


def test_what_others_need_runs_first() -> None:
    outcome = analyse(run(kernel()), [analysis("c", "b"), analysis("b", "a"), analysis("a")])
    assert set(outcome.tables) == {"a", "b", "c"}


def test_a_skip_says_what_is_missing_first() -> None:
    outcome = analyse(run(kernel()), [analysis("bandwidth", "collectives"), analysis("advice", "bandwidth")])
    assert {skip.analysis: skip.reason for skip in outcome.skipped} == {
        "bandwidth": "no communication was recorded",
        "advice": "no communication was recorded",
    }


def test_a_failure_costs_itself_and_what_needs_it() -> None:
    outcome = analyse(run(kernel()), [analysis("bad", fails=True), analysis("needy", "bad"), analysis("good")])
    assert set(outcome.tables) == {"good"}
    assert "bad could not be computed" in {skip.analysis: skip.reason for skip in outcome.skipped}["needy"]


def test_a_circle_is_named() -> None:
    with pytest.raises(ValueError, match=r"circle: (a -> b -> a|b -> a -> b)"):
        analyse(run(kernel()), [analysis("a", "b"), analysis("b", "a")])


def test_findings_come_dearest_first() -> None:
    outcome = analyse(run(kernel()), [analysis("cheap", costs=1), analysis("dear", costs=9)])
    assert [finding.code for finding in outcome.findings] == ["TK-dear", "TK-cheap"]


def test_costs_are_per_complete_step() -> None:
    steps = [
        step(0, 0, 100),
        step(1, 100, 220),
        step(2, 220, 900, complete=False),
        step(0, 0, 110, rank=1),
        step(1, 110, 220, rank=1),
    ]
    context = analyse(run(*steps, kernel(), kernel(rank=1)), []).context
    assert (context.steps, context.step_ns, context.ranks) == (2, 110, (0, 1))
    assert context.per_rank.rows() == [(0, 2, 110), (1, 2, 110)]
    assert context.per_step(0, 300) == 150


def test_step_time_is_the_mean_of_a_rank_and_the_median_rank_s() -> None:
    """Means of 100, 200 and 300 ns, of unequal steps; of an even number of ranks, the lower middle one is taken."""
    lengths = {0: (50, 150), 1: (350, 250), 2: (10, 390)}
    steps = [step(0, 0, first, rank=r) for r, (first, _) in lengths.items()]
    steps += [step(1, first, first + second, rank=r) for r, (first, second) in lengths.items()]
    ranks = [kernel(rank=r) for r in lengths]
    assert analyse(run(*steps, *ranks), []).context.step_ns == 200
    assert analyse(run(*steps[:2], *steps[3:5], *ranks[:2]), []).context.step_ns == 100


def test_without_steps_the_window_is_the_unit() -> None:
    context = analyse(run(kernel("a", 100, 150), kernel("b", 390, 400)), []).context
    assert (context.steps, context.step_ns, context.per_rank.rows()) == (0, 300, [(0, 1, 300)])


def test_ranks_that_were_not_read_are_not_analysed() -> None:
    assert analyse(run(kernel(), rank(0), rank(1, status="failed")), []).context.ranks == (0,)
