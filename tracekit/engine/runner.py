"""Runs analyses: in the order of the tables that they need, each table computed once, each skip with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import polars as pl

from tracekit.engine.derived import DERIVED
from tracekit.engine.steps import STEP_SPANS
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Finding
from tracekit.model.report import Skipped
from tracekit.model.run import RunTables

_ANALYSED = ("read", "truncated")
_WHY_EMPTY = {
    "events": "no events were read",
    "collectives": "no communication was recorded",
    "steps": "the traces have no steps",
    "memory": "memory was not recorded (profile_memory=True)",
    "device": "no device time and no operators were recorded",
    "segments": "no device time and no operators were recorded",
    "launches": "no device events were recorded",
    "idle_spans": "the device was never idle",
    "matched": "no communication was recorded",
    "blame": "nobody came late to a collective",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the analyses answered."""

    tables: Mapping[str, pl.DataFrame]
    findings: tuple[Finding, ...]
    """Dearest first, by the middle of their costs."""
    skipped: tuple[Skipped, ...]
    context: Context


def analyse(run: RunTables, analyses: Sequence[Analysis]) -> Outcome:
    """Run *analyses* on *run*. Raises ``ValueError`` when they need one another in a circle."""
    run = _only_analysed(run)
    tables: dict[str, pl.DataFrame] = {}
    skipped: dict[str, str] = {}
    for analysis in _in_order([*DERIVED, *analyses]):
        if analysis.name in run:  # spans of steps that were asked for are known before the others are left out
            tables[analysis.name] = run[analysis.name].collect()
            continue
        if reason := _missing(run, tables, skipped, analysis):
            skipped[analysis.name] = reason
            continue
        try:
            tables[analysis.name] = analysis.compute(run).collect()
        except pl.exceptions.PolarsError as error:  # costs this analysis and those that need it, not the report
            skipped[analysis.name] = f"{analysis.name} could not be computed: {error}"
            continue
        run = run.with_table(analysis.name, tables[analysis.name].lazy())
    context = _context(run, tables)
    findings = [
        finding
        for analysis in analyses
        if analysis.name in tables
        for finding in analysis.find(tables[analysis.name], context)
    ]
    asked = {analysis.name for analysis in analyses}
    return Outcome(
        tables={name: table for name, table in tables.items() if name in asked},
        findings=tuple(sorted(findings, key=lambda finding: (-sum(finding.cost_ns), finding.code))),
        skipped=tuple(Skipped(analysis=name, reason=reason) for name, reason in skipped.items() if name in asked),
        context=context,
    )


def _only_analysed(run: RunTables) -> RunTables:
    return replace(run, ranks=run.ranks.filter(pl.col("status").is_in(_ANALYSED)))


def _in_order(analyses: Sequence[Analysis]) -> list[Analysis]:
    """*analyses*, those that others need first; otherwise in the order given."""
    by_name = {analysis.name: analysis for analysis in analyses}
    graph = {analysis.name: [need for need in analysis.needs if need in by_name] for analysis in analyses}
    try:
        return [by_name[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        raise ValueError(f"analyses need one another in a circle: {' -> '.join(error.args[1])}") from None


def _missing(run: RunTables, tables: Mapping[str, pl.DataFrame], skipped: Mapping[str, str], analysis: Analysis) -> str:
    """Why *analysis* cannot run; empty if it can. What is missing first is what is said."""
    for need in analysis.needs:
        if need not in run:
            return skipped.get(need, f"there is no table {need}")
        height = tables[need].height if need in tables else run[need].head(1).collect().height
        if not height:
            return _WHY_EMPTY.get(need, f"{need} is empty")
    return ""


def _context(run: RunTables, tables: Mapping[str, pl.DataFrame]) -> Context:
    spans = tables.get(STEP_SPANS.name, STEP_SPANS.empty())
    length = pl.col("end_ns") - pl.col("start_ns")
    per_rank = spans.group_by("rank").agg(
        spans=pl.len(), step_ns=length.mean().round().cast(pl.Int64), steps=pl.col("step").count()
    )
    return Context(
        steps=_middle(per_rank["steps"]),
        step_ns=_middle(per_rank["step_ns"]),
        ranks=tuple(sorted(set(run.ranks["rank"]))),
        per_rank=per_rank.drop("steps").sort("rank"),
        devices=tuple(run.ranks["device_name"].drop_nulls().unique().sort()),
    )


def _middle(values: pl.Series) -> int:
    """The lower median: what some rank has; 0 of nothing."""
    return int(values.quantile(0.5, "lower") or 0)
