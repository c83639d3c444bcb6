"""What the recorder tells the user: one line each, through logging, never twice, and nothing that stops the training."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_logger = logging.getLogger("tracekit")
_told: set[str] = set()


def tell(message: str) -> None:
    """A line of progress, on standard error unless the program has set up logging for itself."""
    _ensure_visible()
    _logger.info(message)


def warn(message: str) -> None:
    """A line about what goes wrong, once."""
    if message not in _told:
        _told.add(message)
        _ensure_visible()
        _logger.warning(message)


def attempt(what: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call *function*; whatever it raises becomes a warning that *what* did not work, and None. Training goes on."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - the one place that keeps the recorder's faults out of the training loop
        warn(f"{what} did not work and was left out: {type(error).__name__}: {error}")
        return None


def succeeds(what: str, function: Callable[[], None]) -> bool:
    """`attempt`, for whoever must know."""

    def call() -> bool:
        function()
        return True

    return attempt(what, call) is True


def _ensure_visible() -> None:
    if not _logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("tracekit: %(message)s"))
        _logger.addHandler(handler)
        _logger.setLevel(logging.INFO)
        _logger.propagate = False
