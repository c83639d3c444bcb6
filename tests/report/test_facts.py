"""What a run's tables hold."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report.build import make_run, ranks_frame
from tracekit.report.facts import devices_unrecorded, gather, unused, world_size


def event(kind: str, **values: Any) -> dict[str, Any]:
    return {
        "rank": 0,
        "window": 0,
        "kind": kind,
        "name": kind,
        "class": "",
        "start_ns": 0,
        "dur_ns": 1,
        "device": -1,
        "lane": 0,
        **values,
    }


def test_counts() -> None:
    run = make_run(
        [
            {"rank": 0, "world_size": 4, "device_name": "A100"},
            {"rank": -1, "status": "failed", "reason": "not a trace", "source": "b.json"},
        ],
        events=[
            event("cpu_op"),
            event("runtime", name="cudaLaunchKernel", correlation=1),
            event("kernel", correlation=1, external_id=7, occupancy_ratio=0.5),
            event("memcpy", correlation=2),
            event("python"),
        ],
        collectives=[
            {"rank": 0, "window": 0, "name": "nccl", "group": "0", "seq": 3, "in_bytes": 8},
            {"rank": 0, "window": 0, "name": "nccl", "out_bytes": 8},
        ],
        steps=[
            {"rank": 0, "window": 0, "step": step, "complete": step < 2, "source": "annotation"} for step in range(3)
        ],
        memory=[{"rank": 0, "window": 0, "delta_bytes": 1}],
    )
    facts = gather(run, shapes=True)
    assert facts.ranks == (0,)
    assert (facts.world_size, facts.devices, facts.unread) == (4, ("A100",), ("b.json: not a trace",))
    assert facts.set_aside == ()
    assert (facts.events, facts.operators, facts.stacks, facts.kernels, facts.occupied) == (5, 1, 1, 1, 1)
    assert (facts.device_events, facts.launched, facts.attributed) == (2, 1, 1)
    assert (facts.collectives, facts.grouped, facts.numbered, facts.sized) == (2, 1, 1, 2)
    assert (facts.steps, facts.step_source, facts.memory) == (2, "annotation", 1)
    assert facts.hip_calls == 0


def test_steps_are_those_of_the_rank_with_the_fewest() -> None:
    run = make_run(
        [{"rank": 0}, {"rank": 1}],
        steps=[{"rank": 0, "window": 0, "step": 0, "complete": True, "source": "annotation"}],
    )
    assert gather(run, shapes=None).steps == 0


@pytest.mark.parametrize(("name", "calls"), [("hipLaunchKernel", 1), ("cudaLaunchKernel", 0)])
def test_hip_is_known_by_its_runtime_calls(name: str, calls: int) -> None:
    assert gather(make_run([{"rank": 0}], events=[event("runtime", name=name)]), shapes=None).hip_calls == calls


def test_the_world_of_another_run_does_not_count() -> None:
    others = [{"rank": 0, "world_size": 128, "status": "set_aside"}, {"rank": 1, "status": "failed"}]
    assert world_size(ranks_frame([{"rank": 0, "world_size": 8}, *others])) == 8
    assert world_size(ranks_frame([{"rank": 0, "world_size": 2, "status": "empty"}])) == 2
    assert world_size(ranks_frame([{"rank": 0}])) is None


def test_an_empty_run_holds_nothing() -> None:
    facts = gather(make_run([]), shapes=None)
    assert (facts.ranks, facts.events, facts.world_size, facts.steps) == ((), 0, None, 0)


@pytest.mark.parametrize(
    ("recording", "unrecorded"),
    [
        ({"view": "host", "backend": "gloo"}, False),
        ({"view": "host"}, False),
        ({"view": "host", "backend": "nccl"}, True),
        ({"view": "host", "device_name": "NVIDIA A100"}, True),
        ({"view": "device", "backend": "nccl"}, False),
    ],
)
def test_a_job_on_devices_whose_events_are_lacking(recording: Any, unrecorded: bool) -> None:
    """By its backend, or by the device that the trace names."""
    assert devices_unrecorded(ranks_frame([{"rank": 0, **recording}])) == unrecorded


def test_what_was_not_used_is_told_by_reason() -> None:
    ranks = [{"rank": rank, "status": "failed", "reason": "not a trace"} for rank in range(5)]
    truncated = {"rank": 7, "status": "truncated", "reason": ""}
    assert unused(ranks_frame([{"rank": 6}, truncated, *ranks])) == (
        "rank7.json: truncated",
        "rank0.json, rank1.json, rank2.json and 2 more: not a trace",
    )
