"""tracekit: where the step time of a parallel training run goes, and which change would help.

``tracekit.open(path)`` loads traces; ``run.analyze()`` measures them. Names are imported when they are first used, so
that ``import tracekit`` costs a training script nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracekit.version import __version__

if TYPE_CHECKING:
    from tracekit.api import Run, open
    from tracekit.instrument.profiling import profile
    from tracekit.instrument.spans import span
    from tracekit.model.errors import TracekitError

__all__ = ["Run", "TracekitError", "__version__", "open", "profile", "span"]

_HOMES = {
    "Run": "tracekit.api",
    "open": "tracekit.api",
    "TracekitError": "tracekit.model.errors",
    "profile": "tracekit.instrument.profiling",
    "span": "tracekit.instrument.spans",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tracekit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
