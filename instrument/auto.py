"""Recording without a line in the script: a step is found where an optimizer steps.

`arm` is called before the script runs, by ``python -m tracekit.instrument`` or, in every Python process below ``tracekit record``, by
``startup/sitecustomize.py``. It waits for torch's optimizers to be imported, then for one of them to step. Processes that train nothing,
such as launchers and data loaders, are left alone.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tracekit.instrument import say
from tracekit.instrument.optimizer_steps import listen
from tracekit.instrument.settings import Settings, SettingsError, from_environment, is_off

_OPTIMIZERS = "torch.optim.optimizer"
_armed: list[_Automatic] = []


def arm(settings: Settings | None = None) -> None:
    """Record this process once an optimizer steps, with *settings* or those in the environment."""
    try:
        wanted = settings or from_environment()
    except SettingsError as error:
        say.warn(f"nothing is recorded: {error}")
        return
    if wanted is None or is_off() or _armed:
        return
    automatic = _Automatic(wanted)
    _armed.append(automatic)
    if _OPTIMIZERS in sys.modules:
        automatic.hook()
    else:
        sys.meta_path.insert(0, _AfterImport(_OPTIMIZERS, automatic.hook))


def disarm() -> None:
    """Leave the recording to the script, which has its own `profile`."""
    while _armed:
        _armed.pop().unhook()


class _Automatic:
    """Takes each step of the optimizer that stepped first as the end of a training step."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recorder: Any = None
        self._first: Any = None
        self._remove: Callable[[], None] | None = None
        self._disarmed = False

    def hook(self) -> None:
        if not self._disarmed:
            self._remove = listen(self._stepped)

    def unhook(self) -> None:
        self._disarmed = True
        if self._remove is not None:
            self._remove()

    def _stepped(self, optimizer: Any) -> None:
        if self._recorder is None:
            # The end of the loop's first step: what is skipped and warmed up is counted from here.
            from tracekit.instrument.profiling import profiler_for_this_process
            from tracekit.instrument.recorder import Recorder

            self._first = id(optimizer)
            self._recorder = Recorder(self._settings, profiler_for_this_process)
            self._recorder.start()
        elif id(optimizer) == self._first:
            self._recorder.step()
            if not self._recorder.recording:
                self.unhook()


class _AfterImport:
    """A finder that imports one module as usual, then calls a function."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                say.attempt("waiting for an optimizer to step", self._then)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
