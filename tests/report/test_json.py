"""The JSON output against its schema, and the meanings that its readers rely on."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from tests.report.build import FINDING, Rows, breakdown_row, make_report
from tests.report.test_doctor import WHOLE
from tracekit.model.errors import UsageError
from tracekit.model.report import Report, Skipped
from tracekit.report.doctor import diagnosis_of
from tracekit.report.json import analyze_json, doctor_json


def schema(command: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(
        files("tracekit.report").joinpath(f"{command}.schema.json").read_text(encoding="utf-8")
    )
    return value


def analysed(report: Report, *tables: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(analyze_json(report, tables))
    jsonschema.validate(value, schema("analyze"))
    return value


def test_a_rank_has_the_figures_of_its_window_as_integers() -> None:
    entry = analysed(make_report([breakdown_row(3, compute=50, exposed=20, overlapped=10, copies=5, idle=25)]))[
        "ranks"
    ][0]
    assert (entry["rank"], entry["recording"], entry["source"], entry["status"]) == (3, 0, "rank3.json", "read")
    assert {key: entry[key] for key in entry if key.endswith("_ns") and not key.startswith("clock_")} == {
        "window_ns": 100,
        "busy_ns": 75,
        "idle_ns": 25,
        "compute_ns": 50,
        "comm_ns": 30,
        "memory_ns": 5,
        "overlapped_comm_ns": 10,
        "exposed_comm_ns": 20,
        "exposed_memory_ns": 5,
    }
    assert all(isinstance(entry[key], int) for key in entry if key.endswith("_ns") and not key.startswith("clock_"))
    assert (entry["complete_events"], entry["device_events"], entry["compute_kernels"]) == (100, 10, 3)
    assert entry["ratios"]["overlap_ratio"] == pytest.approx(1 / 3)


def test_ratios_that_are_not_defined_are_null() -> None:
    ratios = analysed(make_report([breakdown_row(0, compute=50, exposed=0)]))["ranks"][0]["ratios"]
    assert ratios["overlap_ratio"] is None
    assert ratios["comm_to_compute_ratio"] is None
    assert ratios["sm_utilization_ratio"] is None


def test_a_recording_that_was_not_measured_is_there_with_nulls() -> None:
    ranks: Rows = [{"rank": 0}, {"rank": -1, "source": "bad.json", "status": "failed", "reason": "not a trace"}]
    entries = analysed(make_report([breakdown_row(0, compute=1, exposed=0)], ranks=ranks))["ranks"]
    bad = next(entry for entry in entries if entry["status"] == "failed")
    assert (bad["rank"], bad["reason"], bad["window_ns"]) == (None, "not a trace", None)


def test_a_report_without_any_table_is_valid() -> None:
    value = analysed(make_report([], ranks=[{"rank": 0, "status": "empty", "reason": "no complete events"}]))
    assert value["step"] == {"count": 0, "mean_ns": None, "source": None}
    assert value["world"] == {"analysed": 0, "size": None}


def test_health_says_how_much_device_time_was_touched() -> None:
    ranks = [{"rank": 0, "events_repaired": 2, "device_ns_touched": 5, "notes": ["clipped"]}]
    health = analysed(make_report([breakdown_row(0, compute=50, exposed=0)], ranks=ranks))["ranks"][0]["health"]
    assert health == {
        "events_read": 120,
        "repaired": 2,
        "dropped": 0,
        "device_time_touched_ratio": 0.1,
        "notes": ["clipped"],
    }


def test_findings_skipped_notes_and_steps() -> None:
    step = breakdown_row(0, compute=50, exposed=10, step=7)
    value = analysed(
        make_report(
            [step],
            steps=[step],
            findings=(FINDING,),
            skipped=(Skipped(analysis="copies", reason="no copies"),),
            notes=("one note",),
        )
    )
    assert value["findings"][0]["cost_ns"] == [1_000_000, 4_000_000]
    assert value["findings"][0]["evidence"] == [{"label": "exposed communication", "value": 4_000_000, "unit": "ns"}]
    assert value["skipped"] == [{"analysis": "copies", "reason": "no copies"}]
    assert value["notes"] == ["one note"]
    assert (value["steps"][0]["step"], value["step"]) == (7, {"count": 1, "mean_ns": 60, "source": "annotation"})


def test_tables_come_when_asked_for() -> None:
    report = make_report(
        [breakdown_row(0, compute=1, exposed=0)],
        tables={"kernels": [{"name": "a", "total_ns": 1, "share_ratio": float("nan")}]},
    )
    assert analysed(report)["tables"] == {}
    assert analysed(report, "kernels")["tables"] == {"kernels": [{"name": "a", "total_ns": 1, "share_ratio": None}]}
    assert set(analysed(report, "all")["tables"]) == {"breakdown", "kernels", "mean_step", "step_breakdown"}
    with pytest.raises(
        UsageError,
        match="nothing: no such table in this report; there are breakdown, kernels, mean_step, step_breakdown",
    ):
        analyze_json(report, ["nothing"])


def test_nothing_in_a_name_reaches_the_terminal() -> None:
    text = analyze_json(make_report([breakdown_row(0, compute=1, exposed=0)], title="\x1b[2J\x9b名"))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()


def test_categorical_columns_are_strings() -> None:
    table = pl.DataFrame({"name": pl.Series(["gemm"], dtype=pl.Categorical())})
    assert analysed(replace(make_report([], ranks=[]), tables={"kernels": table}), "all")["tables"] == {
        "kernels": [{"name": "gemm"}]
    }


def test_doctor() -> None:
    value = json.loads(doctor_json(diagnosis_of("run/", WHOLE)))
    jsonschema.validate(value, schema("doctor"))
    assert value["ranks"] == [0, 1]
    assert value["lacks"] == []


def test_every_key_of_the_schema_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    for command in ("analyze", "doctor"):
        assert [key for key in _keys(schema(command)) if f"`{key}`" not in documented] == []


def _keys(node: Any) -> set[str]:
    """Every property name anywhere in a schema."""
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = set(node["properties"]) if isinstance(node, dict) and isinstance(node.get("properties"), dict) else set()
    return own.union(*map(_keys, inside))
