"""One recording of one rank, from the first warm-up step to the files on disk. Never raises into the training loop."""

from __future__ import annotations

import atexit
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from types import FrameType
from typing import Any, Protocol

from tracekit.instrument import say
from tracekit.instrument.process import this_process
from tracekit.instrument.settings import Settings, is_off
from tracekit.instrument.spans import Annotate, switch


class Profiler(Protocol):
    """What records: `torch_profiler.TorchProfiler` or `jax_profiler.JaxProfiler`."""

    @property
    def annotate(self) -> Annotate: ...

    def start(self) -> None: ...
    def step(self) -> None:
        """A step of the loop has ended."""

    def stop(self) -> None:
        """The loop has ended, or the process is about to. What was recorded and not yet written is handed to the writer."""

    def abandon(self) -> None:
        """A call has failed: undo what can be undone safely."""

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
        self._unwritten: Profiler | None = None
        self._left = settings.steps
        self._terminator = Terminator(self.stop)
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
        atexit.register(self.stop)
        if (
            multiprocessing.parent_process() is not None
        ):  # forked ones end without calling what is registered with atexit
            Finalize(None, self.stop, exitpriority=10)
        self._terminator.install()
        if self._does("starting the profiler", self._profiler.start):
            switch.annotate = self._profiler.annotate

    def step(self) -> None:
        """A step has ended. After the last recorded one everything is written and nothing is left behind in the loop."""
        if self._profiler is None:
            return
        if self._does("the profiler's step", self._profiler.step):
            self._left -= 1
            if self._left <= 0:
                self._end()

    def stop(self) -> None:
        """End the recording, whatever is missing of it, and return when it is written."""
        with self._terminator.held():
            self._end()
            unwritten, self._unwritten = self._unwritten, None
            if unwritten is not None:
                say.attempt("writing the trace", unwritten.wait)
                atexit.unregister(self.stop)

    def _end(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            switch.annotate = None
            self._unwritten = profiler
            say.attempt("stopping the profiler", profiler.stop)
            _running.remove(self)

    def _does(self, what: str, call: Callable[[], None]) -> bool:
        """Whether *call* works. If it does not, that was the recording; what it has is still written."""
        if say.succeeds(what, call):
            return True
        profiler, self._profiler = self._profiler, None
        switch.annotate = None
        if profiler is not None:
            self._unwritten = profiler
            say.attempt("undoing the hooks", profiler.abandon)
            _running.remove(self)
        return False


class Terminator:
    """Has *stop* called when the process is told to end: torchrun sends SIGTERM to all ranks when one has failed.

    Only the main thread may set handlers; elsewhere this does nothing.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._before: Any = None
        self._installed = self._holding = self._told = False

    def install(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._handle)
            self._installed = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """A signal that comes inside waits for the end of it. Afterwards the old handler is back."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
            told, self._told = self._told, False
            if self._installed and threading.current_thread() is threading.main_thread():
                self._installed = False
                if signal.getsignal(signal.SIGTERM) == self._handle:
                    signal.signal(signal.SIGTERM, self._before)
            if told:
                signal.raise_signal(signal.SIGTERM)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._told = True
        if not self._holding:
            self._stop()
