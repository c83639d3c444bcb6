"""The sample traces show what their manifest says."""

from __future__ import annotations

import gzip
import json
import re
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
    (late,) = [finding for finding in findings if finding.code == "TK-STRAGGLER"]
    assert late.ranks == (1,)
    assert 30e6 < late.cost_ns[1] < 60e6
    assert "computes" in late.cause


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_small_and_says_nothing_of_the_machine(name: str) -> None:
    files = list((FOLDER / name).iterdir())
    assert sum(file.stat().st_size for file in files) < 500_000
    for file in files:
        if file.suffix == ".json":
            assert not re.search(r"/home/|/tmp/|hostname", file.read_text())
            continue
        document = json.loads(gzip.decompress(file.read_bytes()))
        assert not set(document) & {"host_name", "traceName", "trace_id"}
        assert not [event for event in document["traceEvents"] if "/home/" in str(event) or "/tmp/" in str(event)]


def test_steps_of_a_sample_are_annotated() -> None:
    steps = tracekit.open(FOLDER / "ddp", cache=False).steps.select(pl.col("source").unique()).collect()
    assert steps["source"].to_list() == ["annotation"]


PIPELINES = {"gpipe": "FB", "one_f_one_b": "FB", "interleaved": "FB", "interleaved_zero_bubble": "FIW", "zbv": "FIW"}


@pytest.mark.parametrize("name", PIPELINES)
def test_every_action_of_a_pipeline_is_there(name: str) -> None:
    stages = 4 if name in {"gpipe", "one_f_one_b"} else 8
    work = work_of(name)
    assert set(work["action"]) >= set(PIPELINES[name])
    for action in "FW" if "W" in PIPELINES[name] else "FB":
        whole = work.filter(pl.col("action").is_in([action, "B"] if action == "W" else [action]))
        assert whole.group_by("step").len()["len"].to_list() == [stages * 8] * 2


def test_bubbles_shrink_as_the_papers_say() -> None:
    bubbles = [bubble(name) for name in ("gpipe", "interleaved", "interleaved_zero_bubble")]
    assert bubbles == sorted(bubbles, reverse=True)
    assert 0.27 < bubble("gpipe") < 0.36  # closed form 3 / 11
    assert 0.27 < bubble("one_f_one_b") < 0.36
    assert 0.15 < bubble("interleaved") < 0.27  # 3 / 19
    assert bubble("zbv") < bubble("interleaved")


def bubble(name: str) -> float:
    """The share of stages' time in which they do not work, in the better of the two steps."""
    work = work_of(name).with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    span = pl.col("end_ns").max() - pl.col("start_ns").min()
    return float(work.group_by("step").agg(idle=1 - pl.col("dur_ns").sum() / (4 * span))["idle"].min())  # type: ignore[arg-type]


def work_of(name: str) -> pl.DataFrame:
    run = tracekit.open(FOLDER / name, cache=False)
    return run.pipeline.filter(pl.col("action").is_in(list("FBIW"))).collect()


def test_the_router_of_the_imbalanced_experts_prefers_the_first() -> None:
    sidecars = tracekit.open(FOLDER / "imbalanced_experts", cache=False).sidecars.values()
    tokens = [sum(counts) for counts in zip(*(call.tokens for each in sidecars for call in each.routing), strict=True)]
    assert len(tokens) == 8
    assert sum(tokens[:2]) > 0.6 * sum(tokens)


def test_recomputation_is_marked() -> None:
    run = tracekit.open(FOLDER / "recompute", cache=False)
    assert run.events.filter(pl.col("name").cast(pl.String) == "tracekit.recompute").collect().height >= 8
