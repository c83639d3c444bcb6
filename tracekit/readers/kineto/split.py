"""Tells apart the recordings that one file holds: several processes merged into it, or several devices of one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.readers.kineto.columns import KIND_CODE
from tracekit.readers.kineto.events import ABSENT
from tracekit.readers.kineto.trace import Trace

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one recording; all of them when *rows* is None."""

    rows: Array | None
    key: int | None = None
    """Process or device that it was split by."""
    rank: int | None = None
    """Rank that follows from the split: the device's number."""


def parts(trace: Trace) -> list[Part]:
    """One part per host process that issues operators; of a single process, one per device that it drives."""
    devices = np.unique(trace["device"][trace.on_device])
    processes = _processes(trace)
    if len(processes) > 1 and len(devices) > 1:
        owner = _owners(trace, processes, devices)
        return [_part(trace, process, devices[owner == index]) for index, process in enumerate(processes)]
    if len(devices) > 1:
        host = ~trace.on_device
        return [
            Part(np.flatnonzero(host | (trace["device"] == device)), int(device), int(device)) for device in devices
        ]
    return [Part(None)]


def _processes(trace: Trace) -> Array:
    operators = trace["kind"] == KIND_CODE["cpu_op"]
    issuing = operators if operators.any() else trace["kind"] == KIND_CODE["runtime"]
    return np.unique(trace["process"][issuing])


def _part(trace: Trace, process: int, devices: Array) -> Part:
    device = trace.on_device
    mine = np.where(device, np.isin(trace["device"], devices), trace["process"] == process)
    return Part(np.flatnonzero(mine), int(process), int(devices[0]) if len(devices) == 1 else None)


def _owners(trace: Trace, processes: Array, devices: Array) -> Array:
    """For each device the index of the process that launched most of its events; ties go in order.

    Correlation ids of merged processes collide, so several processes may seem to have launched the same events.
    """
    calls = (trace["kind"] == KIND_CODE["runtime"]) & (trace["correlation"] != ABSENT)
    launched = [trace["correlation"][calls & (trace["process"] == process)] for process in processes]
    owners = np.zeros(len(devices), dtype=np.int64)
    for index, device in enumerate(devices):
        events = trace["correlation"][trace.on_device & (trace["device"] == device)]
        matched = np.array([np.isin(events, calls_of).sum() for calls_of in launched])
        best = np.flatnonzero(matched == matched.max())
        in_order = index * len(processes) // len(devices)
        owners[index] = in_order if in_order in best else best[0]
    return owners
