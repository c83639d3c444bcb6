"""The sample traces show what their manifest says."""

from __future__ import annotations

import gzip
import json
import tomllib
from typing import Any

import polars as pl
import pytest

import tracekit
from tests.conftest import ROOT

FOLDER = ROOT / "sample_traces"
SAMPLES: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "manifest.toml").read_text())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_shows_what_it_is_for(name: str) -> None:
    sample, run = SAMPLES[name], tracekit.open(FOLDER / name, cache=False)
    report = run.analyze()
    assert report.analysed["rank"].to_list() == sample["ranks"]
    assert set(report.analysed["view"]) == {sample["view"]}
    assert report.steps == sample["steps"]
    assert sorted(run.collectives.collect()["op"].unique()) == sample["operations"]
    codes = {finding.code for finding in report.findings}
    assert codes >= set(sample["findings"])
    assert not codes & set(sample["quiet"])


def test_the_late_rank_is_named() -> None:
    findings = tracekit.open(FOLDER / "ddp_late_rank", cache=False).analyze().findings
    (uneven,) = [finding for finding in findings if finding.code == "TK-RANK-UNEVEN"]
    assert uneven.ranks == (1,)
    assert 30e6 < uneven.cost_ns[1] < 60e6


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_small_and_says_nothing_of_the_machine(name: str) -> None:
    files = list((FOLDER / name).iterdir())
    assert sum(file.stat().st_size for file in files) < 500_000
    for file in files:
        document = json.loads(gzip.decompress(file.read_bytes()))
        assert not set(document) & {"host_name", "traceName", "trace_id"}
        assert not [event for event in document["traceEvents"] if "/home/" in str(event) or "/tmp/" in str(event)]


def test_steps_of_a_sample_are_annotated() -> None:
    steps = tracekit.open(FOLDER / "ddp", cache=False).steps.select(pl.col("source").unique()).collect()
    assert steps["source"].to_list() == ["annotation"]
