"""`StepTimer`: how long steps and their phases take, for weeks of training and for CI; no profiler.

One line of JSON a step and rank, appended to ``rank<N>.steps.jsonl`` (`tracekit.model.records.StepLine`). On an accelerator the phases are
timed by events on the device's stream, which are read a few steps later, so that nothing ever waits for the device.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from tracekit.instrument import say
from tracekit.instrument.process import this_process
from tracekit.instrument.settings import is_off
from tracekit.model.records import STEPS_SUFFIX, STEPS_VERSION

PHASES = ("data", "forward", "backward", "optimizer", "wait")
_LAG = 4
"""Steps after which a step's device events are read: by then the device has passed them."""
_FLUSH_EVERY_S = 1.0


class StepTimer:
    """Times steps.

        with StepTimer("timings") as timer:
            for batch in timer.data(loader):
                with timer.phase("forward"):
                    loss = model(batch)
                with timer.phase("backward"):
                    loss.backward()
                with timer.phase("optimizer"):
                    optimizer.step()
                timer.step()

    Phases are optional and may repeat within a step (microbatches); what they leave is ``other``. Costs about 25 µs a step with three phases.
    Never raises into the loop: a full disk costs the rest of the file.
    """

    def __init__(self, out: str = "timings") -> None:
        self._out = Path(out)
        self._file: BinaryIO | None = None
        self._clock: Clock = HostClock()
        self._pending: deque[tuple[int, int, list[Any]]] = deque()
        self._marks: list[Any] = []
        self._number = 0
        self._written = 0.0

    def __enter__(self) -> StepTimer:
        if not is_off():
            say.attempt("the step timer", self._open)
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            say.attempt("the step timer", self._write_pending, 0)
            with suppress(OSError):
                self._file.close()
            self._file = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what happens inside as *name*, one of `PHASES`. ``ValueError`` for another."""
        if name not in PHASES:
            raise ValueError(f"no phase {name!r}: there are {', '.join(PHASES)}")
        if self._file is None:
            yield
            return
        begin = self._clock.mark()
        try:
            yield
        finally:
            self._marks.append((name, begin, self._clock.mark()))

    def data(self, batches: Any) -> Iterator[Any]:
        """Iterate *batches*, timing each wait for the next one as ``data``."""
        iterator = iter(batches)
        while True:
            with self.phase("data"):
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
            yield batch

    def step(self) -> None:
        """Say that a step has ended."""
        if self._file is None:
            return
        end = self._clock.mark()
        self._pending.append((self._number, self._begun_ns, [("step", self._begin_mark, end), *self._marks]))
        self._number += 1
        self._begin(end)
        if len(self._pending) > _LAG:
            say.attempt("the step timer", self._write_pending, _LAG)

    def _begin(self, mark: Any = None) -> None:
        """Begin a step at *mark*, where the one before it ended, or now."""
        self._marks = []
        self._begun_ns = time.time_ns()
        self._begin_mark = self._clock.mark() if mark is None and self._file is not None else mark

    def _open(self) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        self._clock = clock_of_this_device()
        path = self._out / f"rank{this_process().rank}{STEPS_SUFFIX}"
        new = not path.exists() or path.stat().st_size == 0
        self._file = path.open("ab")
        if new:
            self._file.write(b'{"version":%d,"clock":"%b"}\n' % (STEPS_VERSION, self._clock.name.encode()))

    def _write_pending(self, keep: int) -> None:
        """Write all but the last *keep* steps."""
        if self._file is None:
            return
        try:
            while len(self._pending) > keep:
                number, begun_ns, marks = self._pending.popleft()
                self._file.write(line(number, begun_ns, [(name, self._clock.between(a, b)) for name, a, b in marks]))
            if (now := time.monotonic()) - self._written > _FLUSH_EVERY_S or not keep:
                self._written = now
                self._file.flush()
        except OSError:
            self._file = None
            raise


def line(number: int, begun_ns: int, durations: list[tuple[str, int]]) -> bytes:
    """One line of the file. The phases and ``other_ns`` add up to ``dur_ns``."""
    total = dict.fromkeys(PHASES, 0)
    dur_ns = 0
    for name, ns in durations:
        if name == "step":
            dur_ns = ns
        else:
            total[name] += ns
    fields = {"step": number, "start_ns": begun_ns, "dur_ns": dur_ns}
    fields |= {f"{name}_ns": ns for name, ns in total.items() if ns}
    fields["other_ns"] = dur_ns - sum(total.values())
    return b"{%b}\n" % ",".join(f'"{name}":{value}' for name, value in fields.items()).encode()


class Clock(Protocol):
    """What marks moments and says how far apart they are."""

    name: str

    def mark(self) -> Any:
        """The moment of the call."""

    def between(self, begin: Any, end: Any) -> int:
        """Nanoseconds between two marks."""


class HostClock(Clock):
    """The host's clock, where it does the computing."""

    name = "host"

    def mark(self) -> int:
        return time.perf_counter_ns()

    def between(self, begin: int, end: int) -> int:
        return end - begin


class DeviceClock(Clock):
    """Events on the current stream of an accelerator."""

    name = "device"

    def __init__(self, event: Callable[[], Any]) -> None:
        self._event = event

    def mark(self) -> Any:
        event = self._event()
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> int:
        end.synchronize()  # passed long ago, but for the last steps of a loop
        return int(begin.elapsed_time(end) * 1e6)


def clock_of_this_device() -> Clock:
    """Events where there is an accelerator that torch knows, else the host's clock."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return DeviceClock(lambda: torch.cuda.Event(enable_timing=True))
    return HostClock()
