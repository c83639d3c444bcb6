"""Modules down to a depth: ranges for their forward and backward. Opt-in, because each costs a few microseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from tracekit.instrument.facts import Declined, Facts
from tracekit.instrument.hooks.ranges import Ranges
from tracekit.instrument.hooks.survey import living, roots
from tracekit.instrument.settings import Settings

FORWARD, BACKWARD = "tracekit.forward ", "tracekit.backward "


def install(_facts: Facts, settings: Settings) -> Callable[[], None]:
    if not settings.module_depth:
        raise Declined("module_depth is 0")
    handles = [
        handle
        for root in roots(living()["modules"])
        for name, module in _named(root, settings.module_depth)
        for handle in _hook(module, name)
    ]
    if not handles:
        raise Declined("no module exists yet: start the recording after the model is made")

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def _named(module: nn.Module, depth: int, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    for child, inside in module.named_children():
        path = f"{name}.{child}" if name else child
        yield path, inside
        if depth > 1:
            yield from _named(inside, depth - 1, path)


def _hook(module: nn.Module, name: str) -> Iterator[Any]:
    yield from _between(module.register_forward_pre_hook, module.register_forward_hook, FORWARD + name)
    yield from _between(module.register_full_backward_pre_hook, module.register_full_backward_hook, BACKWARD + name)


def _between(register_begin: Callable[..., Any], register_end: Callable[..., Any], name: str) -> Iterator[Any]:
    ranges = Ranges()

    def begin(*_args: Any) -> None:
        ranges.begin(name)

    def end(*_args: Any) -> None:
        ranges.end()

    yield register_begin(begin)
    yield register_end(end)
