"""Which rank this process is: from torch.distributed when it is up, else from what the launcher put in the environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_WORLD = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_LAUNCHERS = (
    ("TORCHELASTIC_RUN_ID", "torchrun"),
    ("OMPI_COMM_WORLD_RANK", "mpi"),
    ("PMI_RANK", "mpi"),
    ("SLURM_PROCID", "slurm"),
)


@dataclass(frozen=True, slots=True)
class Process:
    """A rank of a run."""

    rank: int
    world_size: int
    local_rank: int
    launcher: str


def this_process() -> Process:
    """Who this process is now. Ask again after ``init_process_group``: before it, only the environment knows."""
    dist = distributed()
    rank = dist.get_rank() if dist else _first(_RANK, 0)
    world = dist.get_world_size() if dist else _first(_WORLD, 1)
    launcher = next((name for variable, name in _LAUNCHERS if variable in os.environ), "")
    return Process(rank, world, _first(_LOCAL, rank if world == 1 else 0), launcher)


def distributed() -> Any:
    """`torch.distributed`, if it is imported and its default process group is up; else None."""
    dist = sys.modules.get("torch.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def _first(variables: tuple[str, ...], otherwise: int) -> int:
    values = (os.environ.get(variable, "") for variable in variables)
    return next((int(value) for value in values if value.isdecimal()), otherwise)
