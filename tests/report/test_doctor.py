"""Each check of `tracekit doctor`: what it says is lacking, and when it is content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tracekit.report.doctor import CHECKS, Diagnosis, diagnosis_of
from tracekit.report.facts import Facts

WHOLE = Facts(
    ranks=(0, 1),
    world_size=2,
    unread=(),
    set_aside=(),
    truncated=(),
    rank_sources=("distributedInfo",),
    backends=("nccl",),
    devices=("NVIDIA A100",),
    hip_calls=0,
    steps=3,
    step_source="annotation",
    events=1000,
    operators=500,
    stacks=10,
    kernels=90,
    occupied=90,
    device_events=100,
    launched=100,
    attributed=100,
    collectives=6,
    grouped=6,
    numbered=6,
    sized=6,
    memory=5,
    shapes=True,
)
"""Facts of a run that lacks nothing."""


def test_a_whole_run_lacks_nothing() -> None:
    diagnosis = diagnosis_of("run", WHOLE)
    assert diagnosis.lacks == ()
    assert diagnosis.recipe == ""
    assert diagnosis.holds[0] == "2 of 2 ranks"


@pytest.mark.parametrize(
    ("lacking", "key", "words"),
    [
        ({"unread": ("b.json: not a trace",)}, "unread", "not everything could be read: b.json: not a trace"),
        ({"set_aside": ("c.json: another run",)}, "another-run", "not all of it is one run: c.json: another run"),
        ({"truncated": (1,)}, "truncated", "the file of rank 1 ends early"),
        ({"world_size": 8}, "ranks", "6 of 8 ranks are missing"),
        (
            {"rank_sources": ("file name",)},
            "rank-names",
            "the traces do not say their rank; it was taken from: file name",
        ),
        (
            {"device_events": 0, "launched": 0, "kernels": 0, "occupied": 0},
            "device",
            "no device events: operators on the host stand for them",
        ),
        ({"operators": 0, "stacks": 0}, "host", "no host operators"),
        ({"steps": 1}, "steps", "only 1 complete step on the rank that has the fewest"),
        ({"steps": 0, "step_source": ""}, "steps", "steps are not marked: figures are of the whole window"),
        ({"step_source": "inferred"}, "steps", "steps are not marked, they were inferred"),
        ({"launched": 90}, "launches", "the launches of 10 device events (10.0 %) are not recorded"),
        ({"grouped": 4, "numbered": 6}, "groups", "2 communication operations without process group or sizes"),
        ({"numbered": 0}, "sequence", "communication operations without the sequence number of their group"),
        ({"shapes": False}, "shapes", "no input shapes"),
        ({"memory": 0}, "memory", "no allocator events"),
        ({"occupied": 0}, "occupancy", "no kernel occupancy"),
        ({"stacks": 0}, "stacks", "no Python stacks"),
    ],
)
def test_each_lack_is_named(lacking: dict[str, Any], key: str, words: str) -> None:
    diagnosis = diagnosis_of("run", replace(WHOLE, **lacking))
    assert [(lack.key, lack.what) for lack in diagnosis.lacks] == [(key, words)]
    assert all(lack.gain and lack.remedy for lack in diagnosis.lacks)


def test_every_check_is_tested_above() -> None:
    assert len(CHECKS) == 15


def test_what_does_not_apply_is_not_asked_for() -> None:
    assert _keys(replace(WHOLE, hip_calls=3, occupied=0)) == []
    assert _keys(replace(WHOLE, shapes=None)) == []
    assert _keys(replace(WHOLE, backends=("gloo",), device_events=0, launched=0, kernels=0, occupied=0)) == []
    assert _keys(replace(WHOLE, ranks=(0,), world_size=None, rank_sources=("only file",))) == []
    assert _keys(replace(WHOLE, collectives=0, grouped=0, numbered=0, sized=0)) == []


def test_the_recipe_holds_the_settings_that_are_lacking() -> None:
    recipe = diagnosis_of("run", replace(WHOLE, memory=0)).recipe
    assert "profile_memory=True" in recipe
    assert "record_shapes" not in recipe
    assert "ProfilerActivity.CUDA" in recipe
    compile(recipe, "recipe", "exec")


def test_the_recipe_of_a_cpu_run_does_not_ask_for_a_device() -> None:
    recipe = diagnosis_of("run", replace(WHOLE, backends=("gloo",), device_events=0, kernels=0, memory=0)).recipe
    assert "ProfilerActivity.CUDA" not in recipe


def _keys(facts: Facts) -> list[str]:
    diagnosis: Diagnosis = diagnosis_of("run", facts)
    return [lack.key for lack in diagnosis.lacks]


def test_what_no_setting_records_is_not_asked_for() -> None:
    """torch writes groups and sizes for NCCL only."""
    (lack,) = diagnosis_of("run", replace(WHOLE, backends=("gloo",), grouped=0, numbered=0)).lacks
    assert (lack.key, lack.remedy) == (
        "groups",
        "`tracekit record`: torch's profiler writes these for NCCL only, tracekit for gloo as well",
    )
