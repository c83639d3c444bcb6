"""Durations that cannot be: a device event that runs far into what follows it on its own stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

_TIMES_ITS_PEERS = 100
_FEWEST_PEERS = 3
_LEAST_MEDIAN_NS = 1000.0


def overflowing(lane: Array, name: Array, start_ns: Integers, dur_ns: Integers) -> tuple[Array, Integers]:
    """Indices of device events whose duration overflows, and the durations to use instead.

    Events of one stream run one after the other, give or take; some streams hold several hardware queues, so overlap alone
    proves nothing. An event overflows if it laps into its successor *and* either lasts 100 times the median of the events
    of its name, or ends after everything else by more than the length of everything else. It is clipped at its successor.
    """
    successor = _successor(lane, start_ns)
    end_ns = start_ns + dur_ns
    laps = np.flatnonzero(end_ns > successor)
    if not len(laps):
        return laps, dur_ns[laps]
    others = np.setdiff1d(np.arange(len(lane)), laps)
    last = end_ns[others].max(initial=start_ns.max())
    beyond = end_ns[laps] - last > last - start_ns.min()
    suspects = laps[beyond | (dur_ns[laps] > _TIMES_ITS_PEERS * _median_of_peers(name, dur_ns, laps))]
    return suspects, successor[suspects] - start_ns[suspects]


def _successor(lane: Array, start_ns: Integers) -> Integers:
    """Start of the next event on each event's lane; the largest time for the last ones."""
    successor = np.full(len(lane), np.iinfo(np.int64).max)
    for each in np.unique(lane):
        rows = np.flatnonzero(lane == each)
        start = start_ns[rows]
        if (np.diff(start) < 0).any():  # the profiler writes a stream's events in order, nearly always
            rows = rows[np.argsort(start, kind="stable")]
        successor[rows[:-1]] = start_ns[rows[1:]]
    return successor


def _median_of_peers(name: Array, dur_ns: Integers, rows: Array) -> Array:
    """For each of *rows*, the median duration of the events of its name; infinite when they are too few to tell."""
    medians = np.full(len(rows), np.inf)
    for code in np.unique(name[rows]):
        peers = dur_ns[name == code]
        if len(peers) >= _FEWEST_PEERS:
            medians[name[rows] == code] = max(float(np.median(peers)), _LEAST_MEDIAN_NS)
    return medians
