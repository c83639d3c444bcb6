"""Gathers decoded events into arrays, block by block: 1.3 million events cost arrays of a few dozen megabytes, no objects."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tracekit.model.tables import DEVICE_KINDS, KINDS
from tracekit.readers.health import Health
from tracekit.readers.kineto import times
from tracekit.readers.kineto.blocks import Block
from tracekit.readers.kineto.decode import COLLECTIVE_KEY, MEMORY_KEY, add_details
from tracekit.readers.kineto.events import (
    ABSENT,
    KIND_OF_CATEGORY,
    MEMORY_EVENT,
    MTIA_CATEGORY,
    MTIA_KIND_OF_NAME,
    AnyEvent,
    Args,
    Complete,
    Details,
    ExactEvent,
    FlowEnd,
    FlowStart,
    FlowStep,
    Metadata,
    Skipped,
)

Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
IS_DEVICE = np.array([kind in DEVICE_KINDS for kind in KINDS])
"""Whether a kind is device time, by code."""
_MTIA_CODE = len(KINDS)
_HAS_DEVICE_FIELDS = np.append(IS_DEVICE, True)
_INT32 = 1 << 31
_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_PASSED_OVER = frozenset({Complete, FlowStart, FlowStep, FlowEnd, Metadata})
"""Types of which no incomplete event is. Most blocks hold nothing else, which types tell sooner than phases."""
_USED_PHASES = frozenset("BEi")
"""Phases besides complete events that anything is taken from: begin, end, instant."""


def _kind_of_category(category: str | None) -> int:
    lower = str(category).lower()
    return _MTIA_CODE if lower == MTIA_CATEGORY else KIND_CODE[KIND_OF_CATEGORY.get(lower, "other")]


class _Growing:
    """An array that grows by doubling: unlike a list of small arrays it leaves no holes in the heap when it is done.

    What is reserved and not yet written takes no memory. Widens itself when a block needs 8 bytes after blocks of 4.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._array: Array = np.empty(1 << 16, dtype=dtype)
        self._used = 0

    def extend(self, values: Array) -> None:
        need = self._used + len(values)
        dtype = np.promote_types(self._array.dtype, values.dtype)
        if need > len(self._array) or dtype != self._array.dtype:
            grown = np.empty(max(need, 2 * len(self._array)), dtype=dtype)
            grown[: self._used] = self._array[: self._used]
            self._array = grown
        self._array[self._used : need] = values
        self._used = need

    def array(self) -> Array:
        return self._array[: self._used]


class Columns:
    """The events of one file as parallel arrays. `add` blocks, then `finish`."""

    def __init__(self, health: Health) -> None:
        self.health = health
        self.names: dict[str, int] = {}
        """Code of every distinct name, counting from 0."""
        self.collectives: list[tuple[int, Details]] = []
        """(row, args) of every event that carries collective metadata."""
        self.memory: list[tuple[Integers, list[Details]]] = []
        """Times and arguments of the allocator's events, block by block."""
        self.rows = 0
        self._kinds: dict[str | None, int] = {}
        self._columns: dict[str, _Growing] = {}
        self._open: list[AnyEvent] = []

    def add(self, events: Sequence[AnyEvent | Skipped], block: Block) -> None:
        """Append the *events* of *block*. `times.InexactError` leaves the columns as they were."""
        complete: list[Any] = [event for event in events if event.ph == "X"]
        start, dur, usable = self._times(complete, block)
        if len(complete) < len(events) and not _PASSED_OVER.issuperset(map(type, events)):
            self._add_incomplete(events, block)
        if usable is not None:
            complete = [event for event, good in zip(complete, usable, strict=True) if good]
            start, dur = start[usable], dur[usable]
        args = [event.args for event in complete]
        if carrying := [i for i, a in enumerate(args) if a.collective is not None]:
            add_details([complete[i] for i in carrying], COLLECTIVE_KEY, events, block)
            self.collectives += [(self.rows + i, a) for i in carrying if isinstance(a := complete[i].args, Details)]
        self._append(complete, args, start, dur)
        self.health.read += len(events)

    def finish(self) -> dict[str, Array]:
        """Pair the B and E events, resolve kinds that depend on names, and hand over the columns."""
        self._pair_open_events()
        columns = {name: column.array() for name, column in self._columns.items()}
        self._columns.clear()
        if columns:
            self._resolve_mtia(columns)
        return columns

    def _add_incomplete(self, events: Sequence[AnyEvent | Skipped], block: Block) -> None:
        used: list[Any] = [event for event in events if event.ph in _USED_PHASES]
        self._open += [event for event in used if event.ph != "i"]
        if memory := [event for event in used if event.name == MEMORY_EVENT]:
            add_details(memory, MEMORY_KEY, events, block)
            detailed = [event for event in memory if isinstance(event.args, Details)]
            self.memory.append((_nanoseconds([event.ts for event in detailed]), [event.args for event in detailed]))

    def _times(self, events: Sequence[AnyEvent], block: Block) -> tuple[Integers, Integers, Array | None]:
        start, dur = _nanoseconds([event.ts for event in events]), _nanoseconds([event.dur for event in events])
        if events and not isinstance(events[0], ExactEvent):
            times.raise_if_inexact(start, block.listed)
        bad = (dur < 0) | (dur > times.LIMIT_NS) | (np.abs(start) > times.LIMIT_NS)
        if not bad.any():
            return start, dur, None
        self.health.drop("a negative or impossible time or duration", block.offset, int(bad.sum()))
        return start, dur, ~bad

    def _append(self, events: Sequence[AnyEvent], args: Sequence[Args], start: Integers, dur: Integers) -> None:
        if not events:
            return
        kinds = self._kind_codes(events)
        process = _integers([event.pid for event in events])
        lane = _integers([event.tid for event in events])
        device = np.full(len(events), ABSENT, dtype=np.int32)
        size = np.full(len(events), ABSENT, dtype=np.int64)
        occupancy = np.full(len(events), np.nan, dtype=np.float32)
        rows = np.flatnonzero(_HAS_DEVICE_FIELDS[kinds])
        if len(rows):
            on_device = [args[row] for row in rows.tolist()]
            given = _integers([a.device for a in on_device])
            given = np.where(given == ABSENT, process[rows], given)
            device[rows] = np.where((given >= 0) & (given < _INT32), given, 0)  # whatever it is called, it is a device
            streams = _integers([a.stream for a in on_device])
            lane[rows] = np.where(streams == ABSENT, lane[rows], streams)
            size[rows] = _integers([a.size if a.bytes == ABSENT else a.bytes for a in on_device])
            occupancy[rows] = _ratios([a.occupancy for a in on_device])
        block = {
            "name": self._name_codes(events),
            "kind": kinds,
            "process": _narrow(process),
            "device": device,
            "lane": _narrow(lane),
            "start_ns": start,
            "dur_ns": dur,
            "correlation": _narrow(_integers([a.correlation for a in args])),
            "external_id": _narrow(_integers([a.external_id for a in args])),
            "sequence": _narrow(_integers([a.sequence for a in args])),
            "bytes": _narrow(size),
            "occupancy_ratio": occupancy,
        }
        for name, values in block.items():
            if name not in self._columns:
                self._columns[name] = _Growing(values.dtype)
            self._columns[name].extend(values)
        self.rows += len(events)

    def _name_codes(self, events: Sequence[AnyEvent]) -> Array:
        """Codes of the events' names. Nearly every block has no new name: then it is one lookup each."""
        names = self.names
        try:
            return np.frombuffer(array("I", [names[event.name] for event in events]), dtype=np.uint32)
        except KeyError:
            for event in events:
                names.setdefault(event.name, len(names))
        return self._name_codes(events)

    def _kind_codes(self, events: Sequence[AnyEvent]) -> Array:
        kinds = self._kinds
        try:
            return np.frombuffer(bytes([kinds[event.cat] for event in events]), dtype=np.uint8)
        except KeyError:
            kinds.update((category, _kind_of_category(category)) for category in {event.cat for event in events})
        return self._kind_codes(events)

    def _pair_open_events(self) -> None:
        """B and E events nest per thread, in time order. An end without a beginning, or the reverse, is dropped."""
        stacks: dict[tuple[Any, Any], list[AnyEvent]] = {}
        begun: list[AnyEvent] = []
        ended: list[AnyEvent] = []
        order = np.argsort(_nanoseconds([event.ts for event in self._open]), kind="stable")
        for event in (self._open[i] for i in order):
            stack = stacks.setdefault((str(event.pid), str(event.tid)), [])
            if event.ph == "B":
                stack.append(event)
            elif stack:
                begun.append(stack.pop())
                ended.append(event)
        if unpaired := len(self._open) - 2 * len(begun):
            self.health.drop("a begin or end event without its partner", 0, unpaired)
        start = _nanoseconds([event.ts for event in begun])
        self._append(begun, [event.args for event in begun], start, _nanoseconds([event.ts for event in ended]) - start)
        self._open.clear()

    def _resolve_mtia(self, columns: dict[str, Array]) -> None:
        rows = np.flatnonzero(columns["kind"] == _MTIA_CODE)
        if len(rows):
            code_of_name = np.full(len(self.names), KIND_CODE["kernel"], dtype=np.uint8)
            for name, kind in MTIA_KIND_OF_NAME.items():
                if name in self.names:
                    code_of_name[self.names[name]] = KIND_CODE[kind]
            columns["kind"][rows] = code_of_name[columns["name"][rows]]


def _nanoseconds(values: Sequence[Any]) -> Integers:
    if values and isinstance(values[0], msgspec.Raw):
        exact = [times.from_text(value) for value in values]
        return np.array([-times.LIMIT_NS - 1 if value is None else value for value in exact], dtype=np.int64)
    return times.from_numbers(values)


def _integers(values: Sequence[Any]) -> Integers:
    """*values* as int64; what is no integer of that size becomes `ABSENT`."""
    if values and values[0] == values[-1] and type(values[0]) is int and values.count(values[0]) == len(values):
        # a block is mostly of one thread, or without correlations
        return np.full(len(values), _integer(values[0]), dtype=np.int64)
    try:  # array.array takes a list in half the time that numpy does
        return np.frombuffer(array("q", values), dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.array([v if type(v) is int and _LEAST <= v <= _MOST else _integer(v) for v in values], dtype=np.int64)


def _integer(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return ABSENT
    return number if _LEAST <= number <= _MOST else ABSENT


def _ratios(percents: Sequence[Any]) -> Array:
    """Percentages as ratios; what is no number becomes NaN."""
    try:
        return np.array(percents, dtype=np.float32) / 100
    except (TypeError, ValueError):
        return np.array([p if isinstance(p, int | float) else np.nan for p in percents], dtype=np.float32) / 100


def _narrow(values: Integers) -> Array:
    """The same in 4 bytes where they fit: most ids, pids and streams do, and a million events hold six of them."""
    fits = values.size and values.min() >= -_INT32 and values.max() < _INT32
    return values.astype(np.int32) if fits else values
