"""What hooks learn during a recording, for the sidecar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tracekit.model.records import Clock, Collective, Device, Group, MeshDimension, Model, Routing, Strategy


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
    strategy: Strategy = Strategy()  # noqa: RUF009 - frozen
    """As the hooks see it; what the script declares is added when the sidecar is built."""
    recompute: bool = False
    """Set from within the backward, where a whole strategy would be too much to replace."""
    model: Model = Model()  # noqa: RUF009 - frozen
    collectives: tuple[Collective, ...] = ()
    routing: list[Routing] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    first_step: int = 0
    steps: int = 0
    complete: bool = True
    flops: int = 0
    clock: Clock | None = None

    def learn(self, **strategy: Any) -> None:
        """Fill in fields of `strategy`."""
        self.strategy = replace(self.strategy, **strategy)

    def recorded(self, first_step: int, steps: int, wanted: int) -> None:
        """Say which steps of the loop a cycle recorded, of the *wanted* number."""
        self.first_step, self.steps, self.complete = first_step, steps, steps == wanted
