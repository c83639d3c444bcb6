"""Pauses of Python's garbage collector: the range ``tracekit.gc``, with the generation. The youngest one takes microseconds
and comes several times a step: it is left out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from tracekit.instrument.facts import Facts
from tracekit.instrument.hooks.ranges import Ranges
from tracekit.instrument.settings import Settings

RANGE = "tracekit.gc generation "


def install(_facts: Facts, _settings: Settings) -> Callable[[], None]:
    ranges = Ranges()

    def watch(phase: str, info: dict[str, Any]) -> None:
        if not info["generation"]:
            return
        if phase == "start":
            ranges.begin(f"{RANGE}{info['generation']}")
        else:
            ranges.end()

    gc.callbacks.append(watch)

    def remove() -> None:
        if watch in gc.callbacks:
            gc.callbacks.remove(watch)

    return remove
