"""The corpus: real traces with reference values that were written independently, and traps. Every integer exactly."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tracekit
from tests.conftest import CORPUS
from tracekit.model.report import Report
from tracekit.report.json import analyze_json

_COUNTS = ("complete_events", "device_events")


@cache
def expected() -> dict[str, dict[str, Any]]:
    file = CORPUS / "expected.json"
    return dict(json.loads(file.read_text())["files"]) if file.exists() else {}


@cache
def analysed(path: Path) -> tuple[Report, dict[str, Any]]:
    """The report of a file or folder and its JSON."""
    report = tracekit.open(path, cache=False, workers=1).analyze()
    return report, json.loads(analyze_json(report))


def trap(corpus: Path, number: str) -> tuple[Report, list[dict[str, Any]]]:
    (folder,) = (corpus / "traps").glob(f"{number}_*")
    report, document = analysed(folder)
    return report, document["ranks"]


@pytest.mark.parametrize("file", [file for file in expected() if file.startswith(("kineto/", "traps/"))])
def test_reference_values(corpus: Path, file: str) -> None:
    _, document = analysed(corpus / file)
    (rank,) = document["ranks"]
    reference = {key: value for key, value in expected()[file].items() if key != "top_kernels"}
    assert {key: rank[key] for key in reference} == reference


@pytest.mark.parametrize("file", [file for file, values in expected().items() if values.get("top_kernels")])
def test_reference_kernel_sums(corpus: Path, file: str) -> None:
    report, _ = analysed(corpus / file)
    sums = report.tables["kernels"].with_columns(pl.col("name").cast(pl.String))
    for kernel in expected()[file]["top_kernels"]:
        row = sums.filter(pl.col("name") == kernel["name"])
        assert (row["count"].sum(), row["total_ns"].sum()) == (kernel["count"], kernel["total_ns"])


@pytest.mark.parametrize("file", [file for file in expected() if file.startswith("kineto/")])
def test_parts_add_up(corpus: Path, file: str) -> None:
    report, _ = analysed(corpus / file)
    for row in report.tables["breakdown"].to_dicts():
        assert (
            row["compute_ns"] + row["exposed_comm_ns"] + row["exposed_memory_ns"] + row["idle_ns"] == row["window_ns"]
        )
        assert row["overlapped_comm_ns"] + row["exposed_comm_ns"] == row["comm_ns"]
    for row in report.tables["idle"].to_dicts() if "idle" in report.tables else []:
        causes = ("host_bound", "sync", "data", "dependency", "allocation", "other")
        assert sum(row[f"{cause}_ns"] for cause in causes) == row["idle_ns"]


class TestTraps:
    """Every trap behaves as its README says."""

    def same_as_the_control(self, corpus: Path, number: str) -> None:
        keys = [*_COUNTS, "window_ns", "busy_ns", "compute_ns", "comm_ns", "exposed_comm_ns"]
        assert [[r[k] for k in keys] for r in trap(corpus, number)[1]] == [
            [r[k] for k in keys] for r in trap(corpus, "00")[1]
        ]

    def test_00_three_steps(self, corpus: Path) -> None:
        report, ranks = trap(corpus, "00")
        assert [rank["rank"] for rank in ranks] == [0, 1]
        assert report.steps == 3

    @pytest.mark.parametrize("number", ["01", "24", "30", "51", "61"])
    def test_what_changes_nothing(self, corpus: Path, number: str) -> None:
        if number == "24":
            assert trap(corpus, "24")[1][0]["busy_ns"] == trap(corpus, "00")[1][0]["busy_ns"]
        else:
            self.same_as_the_control(corpus, number)

    def test_02_ranks_from_file_names(self, corpus: Path) -> None:
        report, ranks = trap(corpus, "02")
        assert [rank["rank"] for rank in ranks] == [0, 1]
        assert "taken as rank 1 by file name" in " ".join(report.notes)

    def test_03_both_files_kept_and_the_clash_reported(self, corpus: Path) -> None:
        report, ranks = trap(corpus, "03")
        assert [rank["source"] for rank in ranks] == ["rank0.json.gz", "rank1.json.gz"]
        assert "rank0.json.gz and rank1.json.gz all claim rank 0" in " ".join(report.notes)

    @pytest.mark.parametrize(("number", "says"), [("06", "control"), ("07", "quotes")])
    def test_06_07_a_repaired_name(self, corpus: Path, number: str, says: str) -> None:
        (rank,) = trap(corpus, number)[1]
        assert (rank["complete_events"], rank["health"]["repaired"], rank["health"]["dropped"]) == (24, 1, 0)
        assert says in rank["health"]["notes"][0]
        assert "byte" in rank["health"]["notes"][0]

    def test_09_truncated(self, corpus: Path) -> None:
        report, (rank,) = trap(corpus, "09")
        assert rank["status"] == "truncated"
        assert report.tables["step_breakdown"]["step"].to_list() == [0, 1]

    def test_14_a_negative_duration_is_left_out(self, corpus: Path) -> None:
        for rank, control in zip(trap(corpus, "14")[1], trap(corpus, "00")[1], strict=True):
            assert (rank["device_events"], rank["health"]["dropped"]) == (control["device_events"] - 1, 1)
            assert rank["comm_ns"] == control["comm_ns"]

    def test_15_steps_are_inferred_and_said_to_be(self, corpus: Path) -> None:
        run = tracekit.open(next((corpus / "traps").glob("15_*")), cache=False)
        assert run.steps.collect()["source"].unique().to_list() == ["inferred"]

    def test_18_two_ranks_in_one_file(self, corpus: Path) -> None:
        ranks = trap(corpus, "18")[1]
        keys = ("rank", "complete_events", "compute_ns", "comm_ns")
        assert [[r[k] for k in keys] for r in ranks] == [[r[k] for k in keys] for r in trap(corpus, "00")[1]]

    def test_19_an_overflowing_duration_is_clipped_and_told(self, corpus: Path) -> None:
        for rank in trap(corpus, "19")[1]:
            assert rank["compute_ns"] < 3_000_000
            assert rank["health"]["repaired"] == 1
            assert rank["health"]["device_time_touched_ratio"] > 0

    def test_21_no_communication_is_not_zero_overlap(self, corpus: Path) -> None:
        for rank in trap(corpus, "21")[1]:
            assert rank["ratios"]["overlap_ratio"] is None
            assert rank["comm_ns"] == 0

    def test_33_graph_kernels_belong_to_the_graph_launch(self, corpus: Path) -> None:
        report, _ = trap(corpus, "33")
        operators = report.tables["operators"].with_columns(pl.col("operator").cast(pl.String))
        assert {name for name in operators["operator"].to_list() if name and "Graph" in name}

    @pytest.mark.parametrize("number", ["38", "40"])
    def test_38_40_an_empty_rank_is_listed_with_its_reason(self, corpus: Path, number: str) -> None:
        (rank,) = trap(corpus, number)[1]
        assert rank["status"] == "empty"
        assert rank["reason"]

    def test_51_ranks_share_one_clock(self, corpus: Path) -> None:
        run = tracekit.open(next((corpus / "traps").glob("51_*")), cache=False)
        starts = run.steps.filter(pl.col("step") == 0).collect()["start_ns"]
        assert starts.to_list() == [0, 0]

    def test_52_nothing_is_rounded(self, corpus: Path) -> None:
        events = tracekit.open(next((corpus / "traps").glob("52_*")), cache=False).events
        assert events.filter(pl.col("dur_ns") == 400).collect().height == 400

    def test_56_kernels_without_a_launch_count_and_are_marked(self, corpus: Path) -> None:
        report, _ = trap(corpus, "56")
        assert report.tables["launch_stats"]["unlinked"].to_list() == [3, 3]

    def test_64_two_of_eight(self, corpus: Path) -> None:
        assert "2 of 8 ranks" in repr(tracekit.open(next((corpus / "traps").glob("64_*")), cache=False))
