"""Every example runs for real, and its recording says what it did: ranks, steps, collectives, pipeline actions, strategy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tracekit
from tests.conftest import ROOT

STEPS = 2


@dataclass(frozen=True)
class Example:
    """A command and what its recording must show."""

    command: str
    ranks: int
    collectives: frozenset[tuple[str, int]]
    """Operations with the size of their group, 0 where the flight recorder does not know it (gloo's sends)."""
    strategy: Mapping[str, Any] = field(default_factory=dict)
    mesh: Sequence[tuple[str, int]] = ()
    ranges: frozenset[str] = frozenset()
    """Annotations that must be there."""


def example(command: str, ranks: int, *collectives: tuple[str, int], **more: Any) -> Any:
    return pytest.param(Example(command, ranks, frozenset(collectives), **more), id=command.replace(" ", ""))


FSDP = frozenset({"FSDP::all_gather (blocks.0)", "FSDP::post_backward_reduce (blocks.0)"})

EXAMPLES = [
    example("ddp.py", 2, ("all_reduce", 2), strategy={"data_parallel": "DDP"}, ranges=frozenset({"forward"})),
    example("ddp.py --recompute", 2, ("all_reduce", 2), strategy={"recompute": True}, ranges=frozenset({"tracekit.recompute"})),
    example("ddp.py --garbage", 2, ("all_reduce", 2), ranges=frozenset({"tracekit.gc generation 2"})),
    example("zero1.py", 2, ("all_reduce", 2), ("broadcast", 2), strategy={"data_parallel": "ZeRO-1"}),
    example(
        "fsdp.py --zero 3", 2, ("all_gather", 2), ("reduce_scatter", 2),
        strategy={"data_parallel": "FSDP2 (ZeRO-3: reshard after forward)"}, mesh=[("dp_shard", 2)], ranges=FSDP,
    ),
    example(
        "fsdp.py --zero 2", 2, ("all_gather", 2), ("reduce_scatter", 2),
        strategy={"data_parallel": "FSDP2 (ZeRO-2: no reshard after forward)"}, mesh=[("dp_shard", 2)], ranges=FSDP,
    ),
    example(
        "fsdp.py --hsdp", 4, ("all_gather", 2), ("reduce_scatter", 2), ("all_reduce", 2),
        strategy={"data_parallel": "HSDP (ZeRO-3: reshard after forward)"},
        mesh=[("dp_replicate", 2), ("dp_shard", 2)], ranges=FSDP,
    ),
    example("tensor_parallel.py", 2, ("all_reduce", 2), strategy={"tensor_parallel": "tp: S(0), tp: S(1)"}, mesh=[("tp", 2)]),
    example(
        "tensor_parallel.py --sequence", 2, ("all_gather", 2), ("reduce_scatter", 2),
        strategy={"sequence_parallel": True}, mesh=[("tp", 2)],
    ),
    example("expert_parallel.py", 2, ("all_to_all", 2), ("all_reduce", 2)),
    example("context_parallel.py", 2, ("send_recv", 0), ("all_reduce", 2)),
    example(
        "fsdp_tp.py", 4, ("all_gather", 2), ("reduce_scatter", 2), ("all_reduce", 2),
        strategy={"data_parallel": "FSDP2 (ZeRO-3: reshard after forward)"}, mesh=[("dp_shard", 2), ("tp", 2)],
    ),
    example(
        "three_d.py --dp 1", 4, ("send_recv", 0), ("all_reduce", 2),
        strategy={"pipeline_schedule": "Schedule1F1B", "microbatches": 4}, mesh=[("dp_shard", 1), ("pp", 2), ("tp", 2)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", EXAMPLES)
def test_an_example_records_what_it_does(case: Example, tmp_path: Path) -> None:
    run = record(case.command, case.ranks, tmp_path)
    assert run.ranks.select("rank", "status", "rank_source").rows() == [
        (r, "read", "sidecar") for r in range(case.ranks)
    ]
    assert run.steps.filter("complete").group_by("rank").len().collect()["len"].to_list() == [STEPS] * case.ranks
    seen = run.collectives.select("op", pl.col("group_size").fill_null(0)).unique().collect().rows()
    assert set(seen) >= case.collectives
    sidecar = run.sidecars[0, 0]
    assert {name: getattr(sidecar.strategy, name) for name in case.strategy} == case.strategy
    assert [(dimension.name, dimension.size) for dimension in sidecar.mesh] == list(case.mesh)
    names = run.events.filter(kind="annotation").select(pl.col("name").cast(pl.String).unique()).collect()["name"]
    assert case.ranges <= set(names)
    assert sidecar.model.parameters > 0
    assert sidecar.hooks["survey"] == "on"


@pytest.mark.parametrize(
    ("schedule", "name", "stages", "actions"),
    [
        ("gpipe", "ScheduleGPipe", 1, "FB"),
        ("1f1b", "Schedule1F1B", 1, "FB"),
        ("interleaved", "ScheduleInterleaved1F1B", 2, "FB"),
        ("interleaved-zero-bubble", "ScheduleInterleavedZeroBubble", 2, "FIW"),
        ("zbv", "ScheduleZBVZeroBubble", 2, "FIW"),
    ],
)
def test_every_schedule_yields_every_stage_microbatch_and_action(
    schedule: str, name: str, stages: int, actions: str, tmp_path: Path
) -> None:
    ranks, microbatches = 2, 4
    run = record(f"pipeline.py --schedule {schedule} --microbatches {microbatches} --stage-ms 2", ranks, tmp_path)
    strategy = run.sidecars[0, 0].strategy
    assert (strategy.pipeline_schedule, strategy.microbatches, len(strategy.stages)) == (name, microbatches, stages)
    work = run.pipeline.filter(pl.col("action").is_in(list("FBIW"))).collect()
    in_full = work.with_columns(pl.col("action").replace({"B": "IW"}))  # a full backward is both halves
    for _, step in in_full.group_by("step"):
        done = step.select("stage", "microbatch", pl.col("action").str.split("")).explode("action").rows()
        assert sorted(done) == sorted(
            (stage, microbatch, action)
            for stage in range(ranks * stages)
            for microbatch in range(microbatches)
            for action in "FIW"
        )
    assert set(work["action"]) >= set(actions)
    assert work.group_by("rank").agg(pl.col("chunk").n_unique())["chunk"].to_list() == [stages] * ranks


def record(command: str, ranks: int, folder: Path) -> tracekit.Run:
    script, *options = command.split()
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "examples" / script),
            *options,
            "--ranks",
            str(ranks),
            "--steps",
            str(STEPS),
            "--out",
            str(folder),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return tracekit.open(folder, cache=False)
