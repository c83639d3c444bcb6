"""Who wants to know when an optimizer has stepped.

Torch's own list of hooks must not change while it is walked, and recordings begin and end inside a step. So torch gets one hook, and
the listeners are kept here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[[Any], None]

_listeners: list[Listener] = []
_handles: list[Any] = []
_walking = False


def listen(listener: Listener) -> Callable[[], None]:
    """Call *listener* with each optimizer after its step. Returns what ends that."""
    if not _handles:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        _handles.append(register_optimizer_step_post_hook(_stepped))
    _listeners.append(listener)

    def remove() -> None:
        if listener in _listeners:
            _listeners.remove(listener)
        if not _listeners and not _walking:  # else torch's hook stays, with nobody to call
            while _handles:
                _handles.pop().remove()

    return remove


def _stepped(optimizer: Any, _args: Any, _kwargs: Any) -> None:
    global _walking  # noqa: PLW0603 - one process, one list of torch's
    _walking = True
    try:
        for listener in tuple(_listeners):
            listener(optimizer)
    finally:
        _walking = False
