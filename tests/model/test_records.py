"""The parallel strategy in words."""

from __future__ import annotations

from typing import Any

import pytest

from tracekit.model.records import MeshDimension, Sidecar, Stage, Strategy, in_words

STAGES = (Stage(index=1, stages=4),)
MESH = (
    MeshDimension(name="dp_shard", size=2, coordinate=0, ranks=(0, 2)),
    MeshDimension(name="tp", size=2, coordinate=0, ranks=(0, 1)),
)


@pytest.mark.parametrize(
    ("strategy", "mesh", "words"),
    [
        ({}, (), ""),
        ({"data_parallel": "DDP", "recompute": True}, (), "DDP · recomputation"),
        (
            {"pipeline_schedule": "Schedule1F1B", "stages": STAGES, "microbatches": 8},
            (),
            "pipeline 1F1B, 4 stages, 8 microbatches",
        ),
        (
            {
                "data_parallel": "FSDP2 (ZeRO-3: reshard after forward)",
                "tensor_parallel": "tp: S(0)",
                "sequence_parallel": True,
            },
            MESH,
            "mesh dp_shard 2 x tp 2 · FSDP2 (ZeRO-3: reshard after forward) · sequence parallel",
        ),
    ],
)
def test_a_strategy_in_words(strategy: dict[str, Any], mesh: tuple[MeshDimension, ...], words: str) -> None:
    assert in_words([Sidecar(version=1, strategy=Strategy(**strategy), mesh=mesh)]) == words


def test_without_sidecars_nothing_is_known() -> None:
    assert in_words([]) == ""
