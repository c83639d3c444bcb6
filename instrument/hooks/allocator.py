"""CUDA's caching allocator: its history as a snapshot beside the trace, with ``memory=True``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from tracekit.instrument.facts import Declined, Facts
from tracekit.instrument.process import this_process
from tracekit.instrument.settings import Settings

_ENTRIES = 200_000


def install(facts: Facts, settings: Settings) -> Callable[[], None]:
    if not settings.memory:
        raise Declined("memory is off")
    if not torch.cuda.is_available():
        raise Declined("no CUDA device: the profiler records the allocator's events alone")
    torch.cuda.memory._record_memory_history(max_entries=_ENTRIES, stacks="python")

    def dump() -> None:
        path = Path(settings.out) / f"rank{this_process().rank}.memory.pickle"
        torch.cuda.memory._dump_snapshot(str(path))

    facts.at_end.append(dump)
    return lambda: torch.cuda.memory._record_memory_history(enabled=None)
