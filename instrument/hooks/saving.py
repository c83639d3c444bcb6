"""Saving of checkpoints: the range ``tracekit.save`` around ``torch.save`` and ``torch.distributed.checkpoint``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import record_function

from tracekit.instrument.facts import Facts
from tracekit.instrument.hooks.patching import all_of, wrap
from tracekit.instrument.settings import Settings

RANGE = "tracekit.save"


def install(_facts: Facts, _settings: Settings) -> Callable[[], None]:
    def saving(*_args: Any, **_kwargs: Any) -> record_function:
        return record_function(RANGE)

    restorers = [wrap(torch, "save", saving)]
    sharded = sys.modules.get("torch.distributed.checkpoint")  # only who saves with it has imported it
    if sharded is not None:
        restorers += [wrap(sharded, name, saving) for name in ("save", "async_save") if hasattr(sharded, name)]
    return all_of(*restorers)
