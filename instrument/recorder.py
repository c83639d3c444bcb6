"""One recording of one rank, from the first warm-up step to the files on disk. Never raises into the training loop."""

from __future__ import annotations

import atexit
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from tracekit.instrument import say
from tracekit.instrument.process import this_process
from tracekit.instrument.settings import Settings, is_off
from tracekit.instrument.spans import Annotate, switch


class Profiler(Protocol):
    """What records: `torch_profiler.TorchProfiler`."""

    @property
    def annotate(self) -> Annotate: ...

    def start(self) -> None: ...
    def step(self) -> None:
        """A step of the loop has ended."""

    def stop(self) -> None:
        """The loop has ended, or the process is about to. What was recorded and not yet written is handed to the writer."""

    def wait(self) -> None:
        """Return when everything is on disk."""


_running: list[Recorder] = []
_lock = threading.Lock()


class Recorder:
    """Drives a profiler through the steps of a loop. `start`, then `step` after each step, then `stop`; `stop` may come twice."""

    def __init__(self, settings: Settings, profiler: Callable[[Settings], Profiler]) -> None:
        self._settings = settings
        self._make = profiler
        self._profiler: Profiler | None = None
        self._left = settings.skip + settings.repeat * (settings.warmup + settings.active)
        self._restore_signal: Callable[[], None] = lambda: None
        self.started = False

    @property
    def recording(self) -> bool:
        """Whether steps are still being recorded (or warmed up, or skipped before that)."""
        return self._profiler is not None

    def start(self) -> None:
        """Begin, unless tracekit is off, this rank is not to be recorded, or another recording is under way."""
        self.started = True
        if is_off() or not self._settings.records(this_process().rank):
            return
        with _lock:
            if _running:
                say.warn("another recording is under way in this process: this one is not made")
                return
            _running.append(self)
        self._profiler = say.attempt("the recording", self._make, self._settings)
        if self._profiler is None:
            _running.remove(self)
            return
        say.attempt("starting the profiler", self._profiler.start)
        switch.annotate = self._profiler.annotate
        atexit.register(self.stop)
        self._restore_signal = _on_terminate(self.stop)

    def step(self) -> None:
        """A step has ended. After the last recorded one everything is written and nothing is left behind in the loop."""
        if self._profiler is None:
            return
        say.attempt("the profiler's step", self._profiler.step)
        self._left -= 1
        if self._left <= 0:
            self._finish(wait=False)

    def stop(self) -> None:
        """End the recording, whatever is missing of it, and wait until it is written."""
        self._finish(wait=True)

    def _finish(self, *, wait: bool) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            switch.annotate = None
            say.attempt("stopping the profiler", profiler.stop)
            self._restore_signal()
            _running.remove(self)
            self._finished = profiler
        if wait and (finished := getattr(self, "_finished", None)) is not None:
            atexit.unregister(self.stop)
            say.attempt("writing the trace", finished.wait)


def _on_terminate(stop: Callable[[], Any]) -> Callable[[], None]:
    """Have *stop* called when the process is told to end (SIGTERM: torchrun does so to all ranks when one fails).

    Returns what puts the old handler back. Only the main thread may set handlers; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        stop()
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, handle)
    return lambda: _put_back(handle, before)


def _put_back(mine: Any, before: Any) -> None:
    if signal.getsignal(signal.SIGTERM) is mine:
        signal.signal(signal.SIGTERM, before)
