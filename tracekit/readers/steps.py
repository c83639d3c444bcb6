"""Which training step an event belongs to.

Steps come from the profiler's ``ProfilerStep#N`` ranges. A host event belongs to the step it starts in; a device event
to the step that launched it, however late it runs. Without ranges, steps are inferred: from the ends of the
``Optimizer.step`` ranges that torch records, else from the device's kernels when they repeat with one period that holds an
optimizer kernel (the layers of one forward pass repeat too, and are no steps). Otherwise there are none, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

STEP_PREFIX = "ProfilerStep#"
NO_STEP = -1
_FEWEST_PERIODS = 3
_LEAST_AGREEMENT = 0.95
_CANDIDATES = 32


@dataclass(frozen=True, slots=True)
class Steps:
    """Step intervals in time order, non-overlapping."""

    number: Integers
    start_ns: Integers
    end_ns: Integers
    source: str
    """``annotation`` or ``inferred``; empty when there are no steps."""

    def at(self, time_ns: Integers) -> Array:
        """Step number at each time; `NO_STEP` outside."""
        if not len(self.number):
            return np.full(len(time_ns), NO_STEP, dtype=np.int32)
        position = np.searchsorted(self.start_ns, time_ns, side="right") - 1
        inside = (position >= 0) & (time_ns < self.end_ns[position])
        return np.where(inside, self.number[position], NO_STEP).astype(np.int32)


NONE = Steps(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), "")


def annotated(number: Integers, start_ns: Integers, dur_ns: Integers) -> Steps:
    """Steps from their ranges. Of ranges with one number (host and device views) the first is taken."""
    order = np.argsort(start_ns, kind="stable")
    number, start_ns, end_ns = number[order], start_ns[order], (start_ns + dur_ns)[order]
    _, first = np.unique(number, return_index=True)
    first.sort()
    number, start_ns, end_ns = number[first], start_ns[first], end_ns[first]
    if len(start_ns) > 1:  # a range that laps into the next ends where the next begins
        end_ns = np.minimum(end_ns, np.append(start_ns[1:], end_ns[-1]))
    return Steps(number, start_ns, end_ns, "annotation")


def from_optimizer(end_ns: Integers) -> Steps:
    """Steps between the ends of the optimizer's ranges; what comes before the first end is no whole step."""
    bounds = np.unique(end_ns)
    if len(bounds) < _FEWEST_PERIODS:
        return NONE
    return Steps(np.arange(len(bounds) - 1, dtype=np.int64), bounds[:-1], bounds[1:], "inferred")


def from_period(name: Array, optimizer: Array, launch_ns: Integers, end_ns: Integers) -> Steps:
    """Steps from the period of a kernel sequence.

    *name* holds name codes in launch order, *optimizer* says which kernels are an optimizer's. A period is accepted if the
    sequence agrees with itself shifted by it in 95 % of places, fits at least three times and holds an optimizer kernel;
    a step starts after the optimizer of the one before.
    """
    period = _period(name)
    if not period or not optimizer[:period].any():
        return NONE
    starts = np.arange(_first_start(optimizer, period), len(name) - period + 1, period)
    if len(starts) < _FEWEST_PERIODS - 1:
        return NONE
    start_ns = launch_ns[starts]
    last = starts[-1] + period
    final = launch_ns[last] if last < len(name) else end_ns[starts[-1] :].max()
    bounds = np.append(start_ns, final)
    if not (np.diff(bounds) > 0).all():
        return NONE
    return Steps(np.arange(len(starts), dtype=np.int64), bounds[:-1], bounds[1:], "inferred")


def _period(name: Array) -> int:
    """Length of the period in kernels; 0 if there is none.

    A step's rarest kernels (its optimizer, its loss) repeat once a step: the distances between their occurrences are the
    candidates, tried from the rarest kernel on.
    """
    names, counts = np.unique(name, return_counts=True)
    regular = counts >= _FEWEST_PERIODS
    tried: set[int] = set()
    for code in names[regular][np.argsort(counts[regular], kind="stable")][:_CANDIDATES]:
        period = int(np.median(np.diff(np.flatnonzero(name == code))))
        if period in tried or period * _FEWEST_PERIODS > len(name):
            continue
        tried.add(period)
        if np.mean(name[:-period] == name[period:]) >= _LEAST_AGREEMENT:
            return period
    return 0


def _first_start(optimizer: Array, period: int) -> int:
    """Index of the first kernel after an optimizer: behind the optimizer kernel that the longest stretch without one follows."""
    places = np.flatnonzero(optimizer[:period])
    stretch = np.diff(np.append(places, places[0] + period))
    return int(places[np.argmax(stretch)] + 1) % period
