"""The objects that live in the process, as far as the garbage collector tracks them."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from typing import Any


def of_kinds(kinds: Mapping[str, type], names: Iterable[str] = ()) -> dict[str, list[Any]]:
    """Objects of each of *kinds*, by its name, in one pass; *names* without a kind have none."""
    found: dict[str, list[Any]] = {name: [] for name in (*kinds, *names)}
    name_of: dict[type, str | None] = {}  # there are far fewer types than objects
    for each in gc.get_objects():
        kind = type(each)
        if kind not in name_of:
            name_of[kind] = next((name for name, base in kinds.items() if issubclass(kind, base)), None)
        if (name := name_of[kind]) is not None:
            found[name].append(each)
    return found
