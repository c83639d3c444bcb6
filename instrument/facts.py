"""What hooks learn during a recording, for the sidecar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tracekit.model.records import Clock, Collective, Device, Group, MeshDimension, Routing, Stage


class Declined(Exception):  # noqa: N818 - not an error: the framework part is not there
    """A hook has nothing to hook into; says why."""


@dataclass
class Facts:
    """Filled by the hooks, read by `sidecar.build` at the end of each cycle."""

    hooks: dict[str, str] = field(default_factory=dict)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called at the end of a cycle, for what is only looked up then."""
    optimizers: list[Any] = field(default_factory=list)
    """Optimizers that have stepped."""

    device: Device = Device(kind="cpu")  # noqa: RUF009 - frozen
    backend: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions that are not those of a Python distribution: CUDA, NCCL."""
    groups: tuple[Group, ...] = ()
    mesh: tuple[MeshDimension, ...] = ()
    data_parallel: str = ""
    bucket_bytes: tuple[int, ...] = ()
    tensor_parallel: str = ""
    sequence_parallel: bool = False
    pipeline_schedule: str = ""
    stages: tuple[Stage, ...] = ()
    microbatches: int = 0
    recompute: bool = False
    compiled: bool = False
    precision: str = ""
    parameters: int = 0
    parameter_bytes: int = 0
    collectives: tuple[Collective, ...] = ()
    routing: list[Routing] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    first_step: int = 0
    steps: int = 0
    complete: bool = True
    flops: int = 0
    clock: Clock | None = None
