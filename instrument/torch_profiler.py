"""Records with `torch.profiler` and hands what it recorded to the writer."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from isal import igzip
from torch.profiler import ProfilerActivity, record_function

from tracekit.instrument import hooks, say, sidecar
from tracekit.instrument.clock import ClockWatch
from tracekit.instrument.flops import FlopCount
from tracekit.instrument.journal import Journal
from tracekit.instrument.process import this_process
from tracekit.instrument.settings import Settings
from tracekit.instrument.writer import Files, Writer

_FAST = 1
"""igzip's level: 15 % larger files than gzip's default, in a tenth of its time."""


class TorchProfiler:
    """A `tracekit.instrument.recorder.Profiler` of torch. Raises ``OSError`` when the output folder cannot be written."""

    annotate: type[record_function] = record_function

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._writer = Writer(settings.out)
        self._hooks = hooks.Hooks(settings)
        self._clock = ClockWatch()
        self._flops = FlopCount(settings.flops and settings.warmup > 0)
        self._step = 0
        self._cycle = 0
        self._journal: Journal | None = None
        self._begun_ns = 0
        self._profiler = torch.profiler.profile(
            activities=_activities(),
            schedule=_schedule(settings),
            on_trace_ready=self._ready,
            record_shapes=settings.shapes,
            with_stack=settings.stacks,
            profile_memory=settings.memory,
        )

    def start(self) -> None:
        self._hooks.install()
        if self._settings.records(0):  # who answers
            say.attempt("measuring the clock", self._clock.start)
        with _quiet():
            self._profiler.start()
        self._begin_step()

    def step(self) -> None:
        self._flops.stop()
        if self._journal is not None:
            self._journal.step(self._step, self._begun_ns, time.time_ns())
        self._step += 1
        first = self._settings.first_recorded(self._cycle)
        if first < self._step < first + self._settings.active:
            self._profiler.step()  # within a cycle torch has nothing to warn of
        else:
            with _quiet():
                self._profiler.step()
        self._begin_step()

    def stop(self) -> None:
        self._flops.stop()
        try:
            with _quiet():
                self._profiler.stop()
        finally:
            self._hooks.remove()

    def abandon(self) -> None:
        """After a failed `start` or `step`: leave torch's profiler as it is, for stopping it once more may crash the process."""
        self._hooks.remove()

    def wait(self) -> None:
        self._writer.wait()
        self._clock.stop()  # only now: other ranks may have been asking

    def _begin_step(self) -> None:
        if self._step == self._settings.skip:
            self._flops.start()
        if self._step == self._settings.first_recorded(self._cycle) and self._cycle < self._settings.repeat:
            self._journal = say.attempt("the journal", self._writer.journal, this_process(), self._files())
        self._begun_ns = time.time_ns()

    def _files(self) -> Files:
        return Files(this_process().rank, self._cycle)

    def _ready(self, profiler: Any) -> None:
        """A cycle was recorded. Learn what only this thread can know; the rest is the writer's."""
        who = this_process()
        files, first, expected = self._files(), self._settings.first_recorded(self._cycle), self._settings.active
        steps = min(self._step - first, expected)
        facts = self._hooks.facts()
        facts.first_step, facts.steps, facts.complete = first, steps, steps == expected
        facts.flops = self._flops.count
        facts.clock = say.attempt("measuring the clock", self._clock.measure)
        record = say.attempt("the sidecar", sidecar.build, self._settings, who, facts, files)
        journal, self._journal = self._journal, None
        self._cycle += 1
        self._writer.write(partial(_export, profiler.profiler), record, files, journal)


def _export(recorded: Any, path: Path) -> None:
    """Have torch write its JSON beside *path*, and compress that to *path*. Torch's own compression holds up Python as well."""
    plain = path.with_suffix(".json")
    try:
        recorded.export_chrome_trace(str(plain))
        with plain.open("rb") as source, igzip.open(path, "wb", compresslevel=_FAST) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    finally:
        plain.unlink(missing_ok=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch's profiler warns while it changes its state; where warnings are errors that leaves it broken, to the point of crashing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _schedule(settings: Settings) -> Callable[[int], torch.profiler.ProfilerAction]:
    with _quiet():  # torch warns of a warm-up of 0, which is what was asked for
        return torch.profiler.schedule(
            skip_first=settings.skip, wait=0, warmup=settings.warmup, active=settings.active, repeat=settings.repeat
        )


def _activities() -> list[ProfilerActivity]:
    """What this machine's profiler supports: host operators and every kind of accelerator that is there."""
    available = torch.profiler.supported_activities()
    return [a for a in ProfilerActivity.__members__.values() if a in available and _is_there(a.name)]


def _is_there(activity: str) -> bool:
    """Torch's profiler supports more than the machine has, and warns of what it has not."""
    if activity == "CPU":
        return True
    module = getattr(
        torch, {"PrivateUse1": torch._C._get_privateuse1_backend_name()}.get(activity, activity.lower()), None
    )
    return bool(module is not None and getattr(module, "is_available", bool)())
