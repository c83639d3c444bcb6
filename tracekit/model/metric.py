"""The metric catalogue: every number's unit, direction and meaning, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Which way is better. ``neutral`` numbers describe; nobody is to improve them."""

    LOWER = "lower"
    HIGHER = "higher"
    NEUTRAL = "neutral"


class Unit(StrEnum):
    """Units that values are stored in; `tracekit.model.quantity` turns them into text."""

    NS = "ns"
    BYTES = "bytes"
    BYTES_PER_S = "bytes_per_s"
    RATIO = "ratio"
    COUNT = "count"


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One entry of the catalogue."""

    key: str
    title: str
    unit: Unit
    direction: Direction
    doc: str


def _m(key: str, title: str, unit: Unit, direction: Direction, doc: str) -> Metric:
    return Metric(key=key, title=title, unit=unit, direction=direction, doc=doc)


_NS, _RATIO, _COUNT = Unit.NS, Unit.RATIO, Unit.COUNT
_LOW, _HIGH, _NEUTRAL = Direction.LOWER, Direction.HIGHER, Direction.NEUTRAL

METRICS: tuple[Metric, ...] = (
    _m("step_ns", "step time", _NS, _LOW, "Mean of a rank's complete steps; of several ranks, the median one's."),
    _m(
        "complete_events",
        "complete events",
        _COUNT,
        _NEUTRAL,
        "Complete events in the file (`ph` X, or paired B and E).",
    ),
    _m("device_events", "device events", _COUNT, _NEUTRAL, "Kernel, memcpy and memset events."),
    _m("compute_kernels", "compute kernels", _COUNT, _LOW, "Device events that compute."),
    _m("comm_kernels", "communication kernels", _COUNT, _LOW, "Device events that communicate."),
    _m("memory_ops", "memory operations", _COUNT, _LOW, "Device copies and sets."),
    _m("window_ns", "window", _NS, _LOW, "First device event's start to the last device event's end."),
    _m("busy_ns", "busy", _NS, _NEUTRAL, "Union of compute, communication and memory intervals."),
    _m("idle_ns", "idle", _NS, _LOW, "Window minus busy."),
    _m("compute_ns", "compute", _NS, _NEUTRAL, "Union of compute intervals."),
    _m("comm_ns", "communication", _NS, _LOW, "Union of communication intervals."),
    _m("memory_ns", "memory operations", _NS, _LOW, "Union of copy and set intervals."),
    _m("overlapped_comm_ns", "overlapped communication", _NS, _NEUTRAL, "Communication under compute."),
    _m("exposed_comm_ns", "exposed communication", _NS, _LOW, "Communication with no compute under it."),
    _m(
        "exposed_memory_ns",
        "exposed memory operations",
        _NS,
        _LOW,
        "Memory operations with neither compute nor communication under them.",
    ),
    _m("utilization_ratio", "utilization", _RATIO, _HIGH, "Busy over window."),
    _m("compute_utilization_ratio", "compute utilization", _RATIO, _HIGH, "Compute over window."),
    _m(
        "overlap_ratio",
        "overlap efficiency",
        _RATIO,
        _HIGH,
        "Overlapped communication over communication; absent when there is none.",
    ),
    _m("comm_to_compute_ratio", "communication-to-compute ratio", _RATIO, _LOW, "Communication over compute."),
    _m(
        "sm_utilization_ratio",
        "SM-weighted utilization",
        _RATIO,
        _HIGH,
        "Kernel time weighted by estimated occupancy, over the window; absent without occupancy.",
    ),
)

CATALOGUE = {metric.key: metric for metric in METRICS}
"""Catalogue by key."""
