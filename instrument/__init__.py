"""Runs inside somebody's training job: records what every rank did. Imports torch and jax only when they are used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracekit.instrument.moe import routing
    from tracekit.instrument.profiling import Profile, profile
    from tracekit.instrument.spans import span
    from tracekit.instrument.timer import StepTimer

__all__ = ["Profile", "StepTimer", "profile", "routing", "span"]

_HOMES = {"StepTimer": "timer", "Profile": "profiling", "profile": "profiling", "routing": "moe", "span": "spans"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tracekit.instrument' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tracekit.instrument.{_HOMES[name]}"), name)
