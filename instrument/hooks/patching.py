"""Replacing a function of a framework, and putting it back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def wrap(owner: Any, name: str, around: Callable[..., AbstractContextManager[Any]]) -> Callable[[], None]:
    """Have every call of *owner*'s function *name* run inside ``around(*args, **kwargs)``. Returns what puts it back."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with around(*args, **kwargs):
            return original(*args, **kwargs)

    return replace(owner, name, wrapper)


def replace(owner: Any, name: str, replacement: Any) -> Callable[[], None]:
    """Set *owner*'s attribute *name*. Returns what puts the old one back, unless somebody else has replaced it since."""
    raw = vars(owner).get(name) if isinstance(owner, type) else getattr(owner, name)
    setattr(owner, name, staticmethod(replacement) if isinstance(raw, staticmethod) else replacement)
    mine = vars(owner).get(name)

    def restore() -> None:
        if vars(owner).get(name) is mine:
            setattr(owner, name, raw)

    return restore


def all_of(*restorers: Callable[[], None]) -> Callable[[], None]:
    """One function that calls them all."""

    def restore() -> None:
        for each in reversed(restorers):
            each()

    return restore
