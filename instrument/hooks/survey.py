"""What lives in the process at the end of a cycle: wrappers, meshes, stages and schedules tell the parallel strategy.

One pass over the objects that the garbage collector knows. It needs no hook into any of them and costs nothing while steps run.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from tracekit.instrument.facts import Facts
from tracekit.instrument.living import of_kinds
from tracekit.instrument.process import distributed
from tracekit.instrument.settings import Settings
from tracekit.model.records import Device, Group, MeshDimension, Model, Stage


def install(facts: Facts, _settings: Settings) -> Callable[[], None]:
    facts.at_end.append(lambda: survey(facts))
    return lambda: None


_SURVEYED = {
    "modules": ("torch.nn", "Module"),
    "meshes": ("torch.distributed.device_mesh", "DeviceMesh"),
    "stages": ("torch.distributed.pipelining.stage", "_PipelineStageBase"),
    "schedules": ("torch.distributed.pipelining.schedules", "_PipelineSchedule"),
}
"""What is looked for: classes of the framework parts that the process has imported."""


def survey(facts: Facts) -> None:
    """Fill in what the living objects say of the strategy."""
    found = living()
    facts.device, facts.versions = _device(), _versions()
    _parameters(facts)
    _data_parallel(facts, found["modules"])
    facts.learn(compiled=any(type(module).__name__ == "OptimizedModule" for module in found["modules"]))
    if dist := distributed():
        facts.backend = dist.get_backend()
        facts.groups = tuple(_groups(dist))
        facts.mesh = _mesh(dist, found["meshes"])
    _pipeline(facts, found["stages"], found["schedules"])


def living() -> dict[str, list[Any]]:
    """All living objects of the kinds in `_SURVEYED`."""
    return of_kinds(
        {name: kind for name, place in _SURVEYED.items() if (kind := _loaded(*place)) is not None}, _SURVEYED
    )


def roots(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Modules that are no part of another."""
    modules = list(modules)
    inside = {id(child) for module in modules for child in module.children()}
    return [module for module in modules if id(module) not in inside and any(True for _ in module.parameters())]


def _loaded(module: str, name: str) -> type | None:
    """A class of a framework part, if the process has imported that part."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def _parameters(facts: Facts) -> None:
    optimizers = [optimizer for ref in facts.optimizers if (optimizer := ref()) is not None]
    parameters = {id(p): p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
    local = [getattr(p, "_local_tensor", p) for p in parameters.values()]
    facts.model = Model(
        parameters=sum(p.numel() for p in local), parameter_bytes=sum(p.numel() * p.element_size() for p in local)
    )
    facts.learn(precision=", ".join(sorted({str(p.dtype).removeprefix("torch.") for p in local})))
    placements = {
        f"{dimension}: {placement}"
        for p in parameters.values()
        if hasattr(p, "placements")
        for dimension, placement in zip(p.device_mesh.mesh_dim_names or (), p.placements, strict=False)
        if dimension in {"tp", "sp"} or dimension.endswith("_tp")
    }
    facts.learn(
        tensor_parallel=", ".join(sorted(placements)),
        # Only sequence parallelism makes DTensors of parameters that stay whole: the norms'.
        sequence_parallel=any(placement.endswith(": R") for placement in placements),
    )
    if any(type(optimizer).__name__ == "ZeroRedundancyOptimizer" for optimizer in optimizers):
        facts.learn(data_parallel="ZeRO-1")


def _data_parallel(facts: Facts, modules: list[nn.Module]) -> None:
    for module in modules:
        if isinstance(module, nn.parallel.DistributedDataParallel):
            logged = module._get_ddp_logging_data()
            sizes = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes") or ""
            facts.learn(
                data_parallel=facts.strategy.data_parallel or "DDP",
                bucket_bytes=tuple(int(size) for size in str(sizes).split(",") if size.strip().isdigit()),
            )
    fsdp = _loaded("torch.distributed.fsdp", "FSDPModule")
    sharded: list[Any] = [module for module in modules if fsdp is not None and isinstance(module, fsdp)]
    groups = [group for module in sharded for group in _param_groups(module._get_fsdp_state())]
    if groups:
        replicated = any("HSDP" in type(group.mesh_info).__name__ for group in groups)
        # The root is never resharded after forward, so one group that is decides.
        resharded = any(group.post_forward_mesh_info is not None for group in groups)
        kind = "HSDP" if replicated else "FSDP2"
        stage, reshard = (3, "reshard") if resharded else (2, "no reshard")
        facts.learn(data_parallel=f"{kind} (ZeRO-{stage}: {reshard} after forward)")


def _param_groups(state: Any) -> list[Any]:
    one = getattr(state, "_fsdp_param_group", None)
    return [each for each in getattr(state, "_fsdp_param_groups", [one]) if each is not None]


def _groups(dist: Any) -> Iterable[Group]:
    world = dist.distributed_c10d._world
    for group, ranks in world.pg_group_ranks.items():
        yield Group(
            name=world.pg_names.get(group, ""),
            description=getattr(group, "group_desc", ""),
            backend=str(dist.get_backend(group)) if group in world.pg_map else "",
            ranks=tuple(sorted(ranks)),
        )


def _mesh(dist: Any, meshes: list[Any]) -> tuple[MeshDimension, ...]:
    """Dimensions of the DeviceMesh that has most: the others are its slices."""
    meshes = [mesh for mesh in meshes if mesh.mesh_dim_names and mesh.get_coordinate()]
    if not meshes:
        return ()
    mesh = max(meshes, key=lambda each: (each.ndim, each.size()))
    return tuple(
        MeshDimension(
            name=name,
            size=mesh.size(position),
            coordinate=mesh.get_coordinate()[position],
            ranks=tuple(dist.get_process_group_ranks(mesh.get_group(position))),
        )
        for position, name in enumerate(mesh.mesh_dim_names)
    )


def _pipeline(facts: Facts, stages: list[Any], schedules: list[Any]) -> None:
    facts.learn(
        stages=tuple(
            Stage(
                index=stage.stage_index,
                stages=stage.num_stages,
                parameters=sum(p.numel() for p in stage.submod.parameters()),
            )
            for stage in sorted(stages, key=lambda stage: stage.stage_index)
        )
    )
    for each in schedules:
        facts.learn(pipeline_schedule=type(each).__name__, microbatches=each._n_microbatches)


def _device() -> Device:
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return Device(kind="cpu", name=platform.machine())
    index = torch.accelerator.current_device_index()
    return Device(kind=accelerator.type, name=str(getattr(torch, accelerator.type).get_device_name(index)), index=index)


def _versions() -> dict[str, str]:
    found = {}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        found["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    return found
