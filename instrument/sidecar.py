"""Builds the sidecar: who this rank is, how the model is parallelised, and what the recording was."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from msgspec.structs import replace

from tracekit.instrument.facts import Facts
from tracekit.instrument.process import Process
from tracekit.instrument.settings import Settings
from tracekit.instrument.writer import Files
from tracekit.model.records import SIDECAR_VERSION, Sidecar
from tracekit.version import __version__

_LIBRARIES = (
    "torch",
    "triton",
    "transformer-engine",
    "flash-attn",
    "deepspeed",
    "megatron-core",
    "torchtitan",
    "jax",
    "jaxlib",
    "libtpu",
)
_ALLOWED = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_BUFFSIZE", "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_NVLS_ENABLE", "NCCL_CTA_POLICY",
    "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_GRAPH_MIXING_SUPPORT", "RCCL_MSCCL_ENABLE", "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_HIGH_PRIORITY", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_FR_BUFFER_SIZE", "TORCH_DISTRIBUTED_DEBUG",
    "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "GPU_MAX_HW_QUEUES", "HSA_FORCE_FINE_GRAIN_PCIE",
)  # fmt: skip
"""Settings that change speed and hold no names, paths or secrets. Nothing else of the environment is read."""


def build(settings: Settings, who: Process, facts: Facts, files: Files) -> Sidecar:
    """The sidecar of one cycle."""
    return Sidecar(
        version=SIDECAR_VERSION,
        tracekit=__version__,
        trace=files.trace,
        rank=who.rank,
        world_size=who.world_size,
        local_rank=who.local_rank,
        backend=facts.backend,
        launcher=who.launcher,
        device=facts.device,
        groups=facts.groups,
        mesh=facts.mesh,
        strategy=replace(facts.strategy, recompute=facts.recompute, declared=dict(settings.strategy)),
        model=replace(facts.model, flops_per_step=facts.flops, tokens_per_step=settings.tokens_per_step),
        collectives=facts.collectives,
        routing=tuple(facts.routing),
        clock=facts.clock,
        versions={"python": platform.python_version(), **_versions(), **facts.versions},
        settings={name: os.environ[name] for name in _ALLOWED if name in os.environ},
        profiler={
            name: getattr(settings, name)
            for name in ("skip", "warmup", "active", "repeat", "shapes", "stacks", "memory")
        },
        first_step=facts.first_step,
        steps=facts.steps,
        hooks=dict(facts.hooks),
        dropped=dict(facts.dropped),
        complete=facts.complete,
    )


def _versions() -> dict[str, str]:
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
