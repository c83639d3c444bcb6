"""Which optimizers step: their parameters are the model that is trained."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tracekit.instrument.facts import Facts
from tracekit.instrument.optimizer_steps import listen
from tracekit.instrument.settings import Settings


def install(facts: Facts, _settings: Settings) -> Callable[[], None]:
    """Note every optimizer at its first step. Torch itself writes the ranges ``Optimizer.step#...``."""
    seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def note(optimizer: Any) -> None:
        if optimizer not in seen:
            seen.add(optimizer)
            facts.optimizers.append(weakref.ref(optimizer))

    return listen(note)
