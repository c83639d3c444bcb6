"""Activation checkpointing: forward work done again inside the backward gets the range ``tracekit.recompute``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.profiler import record_function
from torch.utils import checkpoint

from tracekit.instrument.facts import Declined, Facts
from tracekit.instrument.hooks.patching import all_of, replace
from tracekit.instrument.settings import Settings

RANGE = "tracekit.recompute"


def install(facts: Facts, _settings: Settings) -> Callable[[], None]:
    frame, function = getattr(checkpoint, "_CheckpointFrame", None), checkpoint.CheckpointFunction
    if frame is None:
        raise Declined("this torch keeps its checkpoints elsewhere")

    def annotated(recompute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(recompute)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            facts.recompute = True
            with record_function(RANGE):
                return recompute(*args, **kwargs)

        return wrapper

    start, backward = frame.__init__, function.backward

    def remember(self: Any, recompute_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        start(self, annotated(recompute_fn), *args, **kwargs)

    def reentrant(ctx: Any, *gradients: Any) -> Any:
        ctx.run_function = annotated(ctx.run_function)
        return backward(ctx, *gradients)

    return all_of(replace(frame, "__init__", remember), replace(function, "backward", reentrant))
