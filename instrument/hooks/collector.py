"""Pauses of Python's garbage collector: the range ``tracekit.gc``, with the generation. The youngest one takes microseconds
and comes several times a step: it is left out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from torch.profiler import record_function

from tracekit.instrument.facts import Facts
from tracekit.instrument.settings import Settings

RANGE = "tracekit.gc generation "


def install(_facts: Facts, _settings: Settings) -> Callable[[], None]:
    opened: list[record_function] = []

    def watch(phase: str, info: dict[str, Any]) -> None:
        if not info["generation"]:
            return
        if phase == "start":
            opened.append(record_function(f"{RANGE}{info['generation']}").__enter__())
        elif opened:
            opened.pop().__exit__(None, None, None)

    gc.callbacks.append(watch)

    def remove() -> None:
        if watch in gc.callbacks:
            gc.callbacks.remove(watch)

    return remove
