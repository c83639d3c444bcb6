"""A report as JSON: the schema `tracekit.analyze/1`, documented in docs/json.md and kept in analyze.schema.json.

Integers stay integers; a ratio whose denominator is zero, and anything else that could not be measured, is null.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import polars as pl

from tracekit.model.errors import UsageError
from tracekit.model.finding import Finding
from tracekit.model.report import Report
from tracekit.model.table import TIMELINE
from tracekit.report.doctor import Diagnosis
from tracekit.report.facts import world_size
from tracekit.report.waiting import collectives_json, layout_json, stragglers_json

ANALYZE_SCHEMA: Final = "tracekit.analyze/1"
DOCTOR_SCHEMA: Final = "tracekit.doctor/1"

Json: TypeAlias = dict[str, Any]

FIGURES: Final = (
    "compute_kernels",
    "comm_kernels",
    "memory_ops",
    "window_ns",
    "busy_ns",
    "idle_ns",
    "compute_ns",
    "comm_ns",
    "memory_ns",
    "overlapped_comm_ns",
    "exposed_comm_ns",
    "exposed_memory_ns",
)
"""Figures of a rank's window, in the words of the metric catalogue; with `complete_events` and `device_events`."""
RATIOS: Final = (
    "utilization_ratio",
    "compute_utilization_ratio",
    "overlap_ratio",
    "comm_to_compute_ratio",
    "sm_utilization_ratio",
)
ALL_TABLES: Final = "all"


def analyze_json(report: Report, tables: Collection[str] = ()) -> str:
    """*report* as JSON, with the *tables* asked for by name (``all`` for every one); an unknown name is an error."""
    return _dump(
        {
            "schema": ANALYZE_SCHEMA,
            "title": report.title,
            "world": _world(report),
            "step": {
                "count": report.steps,
                "mean_ns": report.step_ns if report.steps else None,
                "source": report.step_source or None,
            },
            "ranks": _ranks(report),
            "steps": [row for row in _rows(report.tables.get("step_breakdown")) if row["step"] is not None],
            "layout": layout_json(report),
            "collectives": _clean(collectives_json(report)),
            "stragglers": _clean(stragglers_json(report)),
            "findings": [_finding(finding) for finding in report.findings],
            "skipped": [{"analysis": skipped.analysis, "reason": skipped.reason} for skipped in report.skipped],
            "notes": list(report.notes),
            "tables": {name: _rows(report.tables[name]) for name in _wanted(report, tables)},
        }
    )


def doctor_json(diagnosis: Diagnosis) -> str:
    """A diagnosis as JSON."""
    facts = diagnosis.facts
    return _dump(
        {
            "schema": DOCTOR_SCHEMA,
            "title": diagnosis.title,
            "ranks": list(facts.ranks),
            "world_size": facts.world_size,
            "holds": list(diagnosis.holds),
            "lacks": [
                {"key": lack.key, "what": lack.what, "gain": lack.gain, "remedy": lack.remedy}
                for lack in diagnosis.lacks
            ],
            "recipe": diagnosis.recipe,
        }
    )


def _dump(value: Json) -> str:
    """ASCII only, so that nothing in a name reaches a terminal as a control character; NaN is a bug and raises."""
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False)


def _world(report: Report) -> Json:
    return {"analysed": report.analysed["rank"].n_unique(), "size": world_size(report.ranks)}


def _ranks(report: Report) -> list[Json]:
    """One entry per recording, readable or not; those that were not measured have null for every figure."""
    frame = report.ranks
    breakdown = report.tables.get("breakdown")
    if breakdown is not None:
        measured = [name for name in (*FIGURES, *RATIOS) if name in breakdown.columns]
        frame = frame.join(breakdown.select(*TIMELINE, *measured), on=TIMELINE, how="left")
    return [_rank(row) for row in frame.sort(TIMELINE).to_dicts()]


def _rank(row: Mapping[str, Any]) -> Json:
    return {
        "rank": row["rank"] if row["rank"] >= 0 else None,
        "recording": row["window"],
        "source": row["source"],
        "status": row["status"],
        "reason": row["reason"],
        "rank_source": row["rank_source"],
        "view": row["view"],
        "device_name": row["device_name"],
        "clock_offset_ns": row["clock_offset_ns"],
        "clock_error_ns": row["clock_error_ns"],
        "complete_events": row["complete_events"],
        "device_events": row["device_events"],
        **{name: row.get(name) for name in FIGURES},
        "ratios": {name: _number(row.get(name)) for name in RATIOS},
        "health": _health(row),
    }


def _health(row: Mapping[str, Any]) -> Json:
    busy_ns = row.get("busy_ns")
    return {
        "events_read": row["events_read"],
        "repaired": row["events_repaired"],
        "dropped": row["events_dropped"],
        "device_time_touched_ratio": row["device_ns_touched"] / busy_ns if busy_ns else None,
        "notes": row["notes"],
    }


def _finding(finding: Finding) -> Json:
    return {
        "code": finding.code,
        "title": finding.title,
        "cause": finding.cause,
        "remedy": finding.remedy,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "cost_ns": list(finding.cost_ns),
        "share_ratio": finding.share_ratio,
        "ranks": list(finding.ranks),
        "evidence": [
            {"label": quantity.label, "value": _number(quantity.value), "unit": quantity.unit}
            for quantity in finding.evidence
        ],
    }


def _wanted(report: Report, names: Collection[str]) -> list[str]:
    if ALL_TABLES in names:
        return sorted(report.tables)
    for name in names:
        if name not in report.tables:
            raise UsageError(
                "no such table in this report", where=name, remedy=f"there are {', '.join(sorted(report.tables))}"
            )
    return sorted(set(names))


def _rows(frame: pl.DataFrame | None) -> list[Json]:
    return [] if frame is None else _clean(frame.to_dicts())


def _clean(rows: list[Json]) -> list[Json]:
    return [{key: _number(value) for key, value in row.items()} for row in rows]


def _number(value: Any) -> Any:
    """*value* as it is; a float that is no number as null."""
    return None if isinstance(value, float) and not isfinite(value) else value
