"""Hooks into the frameworks, one file each. All are removed when the recording ends, and one that finds nothing declines.

A hook is a function ``install(facts, settings)`` that returns what removes it. It raises `Declined` where its part of the
framework is absent. What it adds to the trace are ranges called ``tracekit.<hook> ...``; what it learns it writes into `Facts`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from tracekit.instrument import say
from tracekit.instrument.facts import Declined, Facts
from tracekit.instrument.settings import Settings

Install = Callable[[Facts, Settings], Callable[[], None]]

HOOKS = (
    "optimizer",
    "pipeline",
    "recompute",
    "modules",
    "collector",
    "saving",
    "allocator",
    "collectives",
    "experts",
    "survey",
)
"""In the order of installation; they are removed, and their facts gathered, in the order given."""


class Hooks:
    """All hooks of one recording."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._facts = Facts()
        self._removers: list[tuple[str, Callable[[], None]]] = []

    def install(self) -> None:
        """Install every hook that finds its framework part."""
        for name in HOOKS:
            try:
                remover = _install_of(name)(self._facts, self._settings)
            except Declined as declined:
                self._facts.hooks[name] = str(declined)
            except Exception as error:  # noqa: BLE001 - a hook that breaks costs itself
                self._facts.hooks[name] = f"failed: {type(error).__name__}"
                say.warn(f"the hook {name} failed and is left out: {type(error).__name__}: {error}")
            else:
                self._facts.hooks[name] = "on"
                self._removers.append((name, remover))

    def facts(self) -> Facts:
        """What the hooks know at the end of a cycle."""
        for gather in self._facts.at_end:
            say.attempt(f"the hook {gather.__module__.rpartition('.')[2]}", gather)
        return self._facts

    def remove(self) -> None:
        """Leave the frameworks as they were."""
        for name, remover in self._removers:
            say.attempt(f"removing the hook {name}", remover)
        self._removers.clear()


def _install_of(name: str) -> Install:
    install: Install = import_module(f"tracekit.instrument.hooks.{name}").install
    return install
