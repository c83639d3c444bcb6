"""What the recorder writes beside a trace, and what readers expect there: the sidecar and the step file.

Both are JSON with a version. Fields are only added within a version; readers ignore those they do not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

SIDECAR_VERSION = 1
SIDECAR_SUFFIX = ".tracekit.json"
TRACE_SUFFIX = ".pt.trace.json.gz"
XPLANE_SUFFIX = ".xplane.pb"
STEPS_SUFFIX = ".steps.jsonl"
STEPS_VERSION = 1


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the sidecar. What is not known is left out of the file."""


class Device(Record, frozen=True):
    """What a rank computes on."""

    kind: str
    """``cuda``, ``cpu``, ``tpu``, ...; ROCm devices are ``cuda``, as torch calls them."""
    name: str = ""
    index: int = 0
    links: tuple[str, ...] = ()
    """Names of the interconnects between devices of this host, fastest first, where the driver tells."""


class Group(Record, frozen=True):
    """A process group: who is in it and what it is for."""

    name: str
    description: str = ""
    backend: str = ""
    ranks: tuple[int, ...] = ()


class MeshDimension(Record, frozen=True):
    """One dimension of a DeviceMesh that the rank belongs to."""

    name: str
    size: int
    coordinate: int
    ranks: tuple[int, ...]
    """Ranks that differ from this one in this dimension only."""


class Stage(Record, frozen=True):
    """A pipeline stage that the rank holds."""

    index: int
    stages: int
    parameters: int = 0


class Strategy(Record, frozen=True):
    """How the model is parallelised, as far as the rank could see or its script said."""

    data_parallel: str = ""
    """``DDP``, ``ZeRO-1``, ``FSDP2 (ZeRO-3: reshard after forward)``, ``HSDP (ZeRO-2: no reshard after forward)``, ..."""
    bucket_bytes: tuple[int, ...] = ()
    """Sizes of DDP's gradient buckets, in the order of their all-reduces."""
    tensor_parallel: str = ""
    """DTensor placements of the parameters, by mesh dimension: ``tp: S(0), tp: S(1)``."""
    sequence_parallel: bool = False
    pipeline_schedule: str = ""
    """Class name of the schedule, e.g. ``Schedule1F1B``."""
    stages: tuple[Stage, ...] = ()
    microbatches: int = 0
    recompute: bool = False
    """Whether activation checkpointing ran during the recording."""
    precision: str = ""
    """Data types of the parameters."""
    compiled: bool = False
    declared: dict[str, Any] = {}
    """What the script itself said: ``profile(strategy={...})``."""


class Model(Record, frozen=True):
    """Size of what one rank computes."""

    parameters: int = 0
    """Parameters that this rank holds (its shards)."""
    parameter_bytes: int = 0
    flops_per_step: int = 0
    """Floating-point operations of one step on this rank, counted by `torch.utils.flop_counter`: matrix products and
    attention, forward and backward, recomputation included."""
    tokens_per_step: int = 0


class Collective(Record, frozen=True):
    """A collective or point-to-point operation as the backend issued it: an entry of torch's flight recorder."""

    group: str
    op: str
    """Name of the profiler's range, e.g. ``gloo:all_reduce``."""
    seq: int
    """Sequence number in the group: of collectives, or of point-to-point operations."""
    created_ns: int
    """When it was issued, Unix time on the rank's own clock."""
    point_to_point: bool = False
    dtype: str = ""
    in_bytes: int = 0
    out_bytes: int = 0


class Clock(Record, frozen=True):
    """How the rank's clock stood to rank 0's: add *offset_ns* to this rank's times to get rank 0's."""

    offset_ns: int
    error_ns: int
    """Half of the shortest round trip: the offset is no further off."""
    at_ns: int
    """When it was measured, on the rank's own clock."""
    drift_ppb: float = 0.0
    """Growth of the offset in nanoseconds a second, from two measurements."""
    round_trips: int = 0


class Routing(Record, frozen=True):
    """Tokens that a mixture-of-experts layer sent to each expert in one call."""

    layer: str
    call: int
    """Number of the layer's call in the recording, warm-up included, from 0."""
    tokens: tuple[int, ...]


class Sidecar(Record, frozen=True):
    """What the trace alone cannot say. One file a rank, ``rank<N>.tracekit.json``, beside ``rank<N>.pt.trace.json.gz``."""

    version: int
    tracekit: str = ""
    trace: str = ""
    """File name of the trace."""
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    backend: str = ""
    launcher: str = ""
    """``torchrun``, ``slurm``, ``mpi`` or empty."""
    device: Device = Device(kind="cpu")
    groups: tuple[Group, ...] = ()
    mesh: tuple[MeshDimension, ...] = ()
    strategy: Strategy = Strategy()
    model: Model = Model()
    collectives: tuple[Collective, ...] = ()
    routing: tuple[Routing, ...] = ()
    clock: Clock | None = None
    versions: dict[str, str] = {}
    settings: dict[str, str] = {}
    """NCCL and torch settings, of an allow-list: never the environment."""
    profiler: dict[str, Any] = {}
    """The recorder's own settings."""
    first_step: int = 0
    """The loop's number of the first recorded step, counted from 0."""
    steps: int = 0
    """Steps recorded."""
    hooks: dict[str, str] = {}
    """What each hook did: ``on``, or why it declined."""
    dropped: dict[str, int] = {}
    """What was not recorded, by reason."""
    complete: bool = True
    """False when the process ended before the recording did."""


def encode(sidecar: Sidecar) -> bytes:
    """The sidecar's file content: indented JSON."""
    return msgspec.json.format(msgspec.json.encode(sidecar), indent=1)


def in_words(sidecars: Iterable[Sidecar]) -> str:
    """How the model is parallelised, e.g. ``DDP``, ``pipeline 1F1B, 4 stages, 8 microbatches``; empty if nothing says so.

    The mesh comes first, as its dimensions are named: ``mesh dp_shard 2 x tp 2``.
    """
    known = list(sidecars)
    if not known:
        return ""
    first = known[0]
    strategy = first.strategy
    mesh = " x ".join(f"{dimension.name} {dimension.size}" for dimension in first.mesh)
    parts = [f"mesh {mesh}" if mesh else "", strategy.data_parallel]
    parts += ["tensor parallel" if strategy.tensor_parallel and not mesh else ""]
    parts += ["sequence parallel" if strategy.sequence_parallel else ""]
    if strategy.pipeline_schedule:
        stages = max((stage.stages for stage in strategy.stages), default=0)
        schedule = strategy.pipeline_schedule.removeprefix("Schedule")
        parts += [f"pipeline {schedule}, {stages} stages, {strategy.microbatches} microbatches"]
    parts += ["recomputation" if any(each.strategy.recompute for each in known) else ""]
    return " · ".join(part for part in parts if part)


class StepLine(Record, frozen=True):
    """One step in the step file. Times in nanoseconds; phases add up to the step with `other_ns`."""

    step: int
    start_ns: int
    """Unix time."""
    dur_ns: int
    data_ns: int = 0
    forward_ns: int = 0
    backward_ns: int = 0
    optimizer_ns: int = 0
    wait_ns: int = 0
    """Waiting for collectives, where the backend makes the host wait."""
    other_ns: int = 0
