"""From the columns of a file to its recordings: who is in it, which step, which class, what communicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.model.tables import CLASSES, EVENTS, KINDS, MEMORY, STEPS, Class, Kind, Name
from tracekit.readers import repair, steps
from tracekit.readers.health import Health
from tracekit.readers.kineto import pipeline
from tracekit.readers.kineto.collectives import Communication, communication
from tracekit.readers.kineto.columns import KIND_CODE, Columns
from tracekit.readers.kineto.events import ABSENT
from tracekit.readers.kineto.metadata import Metadata
from tracekit.readers.kineto.split import Part, parts
from tracekit.readers.kineto.trace import Trace
from tracekit.readers.names import kernel_class
from tracekit.readers.recording import Info, Recording

Array = npt.NDArray[Any]

_CLASS_CODE = {name: code for code, name in enumerate(CLASSES)}
_UNKEYED = ("rank", "window")
_DICTIONARIES = {"kind": ("kind", KINDS, Kind), "class": ("class", CLASSES, Class)}
_NULLABLE = ("correlation", "external_id", "sequence", "bytes", "step")
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), " ")
_OPTIMIZER_PREFIX = "Optimizer.step#"


def recordings(columns: Columns, metadata: Metadata, health: Health) -> list[Recording]:
    """Finish *columns* and split them into recordings."""
    arrays = columns.finish()
    if not arrays:
        reason = "metadata events only, nothing was recorded" if health.read else "no events in the file"
        return [Recording(_info(metadata, health, status="empty", reason=health.truncated or reason), {})]
    trace = Trace(arrays, [str(name).translate(_CONTROL) for name in columns.names], metadata, health)
    trace["start_ns"][:] += metadata.base_ns
    _clip_overflows(trace)
    comm = communication(trace, columns.collectives)
    trace.columns["class"] = _classes(trace, comm)
    trace.columns["collective"] = comm.row_of_event
    memory = _memory(columns, metadata.base_ns)
    return [_recording(trace, part, comm, memory) for part in parts(trace)]


def _clip_overflows(trace: Trace) -> None:
    rows = np.flatnonzero(trace.on_device)
    lane = (trace["device"][rows].astype(np.int64) << 48) + trace["lane"][rows]
    found, dur_ns = repair.overflowing(lane, trace["name"][rows], trace["start_ns"][rows], trace["dur_ns"][rows])
    if len(found):
        trace["dur_ns"][rows[found]] = dur_ns
        trace.health.repaired += len(found)
        trace.health.device_ns_touched += int(dur_ns.sum())
        worst = trace.names[trace["name"][rows[found[0]]]]
        trace.health.note(
            f"durations that ran into the next event of their stream and were clipped there: {len(found):,}, e.g. of {worst[:60]}"
        )


def _classes(trace: Trace, comm: Communication) -> Array:
    """Class code of every event: by name, once per distinct name of a kernel; communication as already decided."""
    codes = np.full(len(trace["kind"]), _CLASS_CODE[""], dtype=np.uint8)
    kernels = trace["kind"] == KIND_CODE["kernel"]
    of_name = np.zeros(len(trace.names), dtype=np.uint8)
    for name in np.unique(trace["name"][kernels]):
        of_name[name] = _CLASS_CODE[kernel_class(trace.names[name])]
    codes[kernels] = of_name[trace["name"][kernels]]
    for kind in ("memcpy", "memset"):
        codes[trace["kind"] == KIND_CODE[kind]] = _CLASS_CODE[kind]
    codes[kernels & (comm.row_of_event >= 0)] = _CLASS_CODE["communication"]
    return codes


def _recording(trace: Trace, part: Part, comm: Communication, memory: pl.DataFrame) -> Recording:
    trace = trace if part.rows is None else trace.take(part.rows)
    found = _steps(trace)
    step = _step_of_events(trace, found)
    device = trace.on_device
    rank, rank_source = _claimed_rank(trace, part, comm)
    info = _info(
        trace.metadata,
        trace.health,
        status="truncated" if trace.health.truncated else "read",
        reason=trace.health.truncated,
        process=part.key,
        rank=rank,
        rank_source=rank_source,
        view="device" if device.any() else "host",
        start_ns=int(trace["start_ns"].min()),
        end_ns=int((trace["start_ns"] + trace["dur_ns"]).max()),
        complete_events=len(device),
        device_events=int(device.sum()),
        device_name=_device_name(trace),
    )
    tables = {
        "collectives": comm.table(trace, step),
        "steps": _steps_table(trace, found, step),
        "pipeline": pipeline.table(trace, step),
        "memory": memory,
        "events": _events(trace, step),  # last: it uses the trace up
    }
    return Recording(info, tables)


def _info(metadata: Metadata, health: Health, **known: Any) -> Info:
    distributed = metadata.distributed
    defaults = {
        "rank": distributed.rank,
        "rank_source": "distributedInfo" if distributed.rank is not None else "",
        "world_size": distributed.world_size,
        "backend": distributed.backend,
        "base_ns": metadata.base_ns,
        "events_read": health.read,
        "events_repaired": health.repaired,
        "events_dropped": health.dropped,
        "device_ns_touched": health.device_ns_touched,
        "notes": tuple(health.sentences()),
    }
    return Info(**{**defaults, **known})


def _claimed_rank(trace: Trace, part: Part, comm: Communication) -> tuple[int | None, str]:
    """What the file says of its rank: its own word, unless it holds several; else the process groups it took part in."""
    if part.rank is not None:
        return part.rank, "device"
    if trace.metadata.distributed.rank is not None:
        return trace.metadata.distributed.rank, "distributedInfo"
    rank = comm.only_common_rank()
    return rank, "process group" if rank is not None else ""


def _device_name(trace: Trace) -> str | None:
    """Name of the device that was used, or of all if they are of one make."""
    devices = trace.metadata.devices
    used = set(np.unique(trace["device"][trace.on_device]).tolist())
    names = {device.name for device in devices if device.id in used} or {device.name for device in devices}
    return names.pop().translate(_CONTROL) or None if len(names) == 1 else None


def _steps(trace: Trace) -> steps.Steps:
    annotations = np.isin(trace["kind"], (KIND_CODE["annotation"], KIND_CODE["cpu_op"]))
    numbers = {code: _number(trace.names[code]) for code in trace.codes_of(steps.STEP_PREFIX)}
    rows = np.flatnonzero(
        annotations & np.isin(trace["name"], [code for code, number in numbers.items() if number >= 0])
    )
    if len(rows):
        number = np.array([numbers[code] for code in trace["name"][rows]], dtype=np.int64)
        return steps.annotated(number, trace["start_ns"][rows], trace["dur_ns"][rows])
    rows = np.flatnonzero(annotations & np.isin(trace["name"], trace.codes_of(_OPTIMIZER_PREFIX)))
    found = steps.from_optimizer(trace["start_ns"][rows] + trace["dur_ns"][rows])
    if found.source:
        return found
    rows = np.flatnonzero(trace["kind"] == KIND_CODE["kernel"])
    launch_ns = _launch_start(trace, rows)
    order = np.argsort(launch_ns, kind="stable")
    optimizer = trace["class"][rows] == _CLASS_CODE["optimizer"]
    end_ns = trace["start_ns"][rows] + trace["dur_ns"][rows]
    return steps.from_period(trace["name"][rows][order], optimizer[order], launch_ns[order], end_ns[order])


def _number(name: str) -> int:
    digits = name.removeprefix(steps.STEP_PREFIX)
    return int(digits) if digits.isdecimal() and len(digits) < 10 else steps.NO_STEP


def _launch_start(trace: Trace, rows: Array) -> Array:
    """Start of the runtime call that launched each of *rows*; the event's own start where there is none."""
    calls = np.flatnonzero((trace["kind"] == KIND_CODE["runtime"]) & (trace["correlation"] != ABSENT))
    start = trace["start_ns"][rows].copy()
    if len(calls):
        correlation = trace["correlation"][calls]
        order = np.argsort(correlation, kind="stable")
        wanted = trace["correlation"][rows]
        position = np.minimum(np.searchsorted(correlation[order], wanted), len(calls) - 1)
        linked = correlation[order][position] == wanted
        start[linked] = trace["start_ns"][calls[order[position[linked]]]]
    return start


def _step_of_events(trace: Trace, found: steps.Steps) -> Array:
    if not found.source:
        return np.full(len(trace["kind"]), steps.NO_STEP, dtype=np.int32)
    step = found.at(trace["start_ns"])
    rows = np.flatnonzero(trace.on_device)
    step[rows] = found.at(_launch_start(trace, rows))
    return step


def _steps_table(trace: Trace, found: steps.Steps, step: Array) -> pl.DataFrame:
    complete = np.ones(len(found.number), dtype=bool)
    if trace.health.truncated and len(complete) and not trace.metadata.journal:
        complete = _whole_steps(trace, found, step)
    frame = pl.DataFrame(
        {
            "step": found.number,
            "start_ns": found.start_ns,
            "dur_ns": found.end_ns - found.start_ns,
            "complete": complete,
            "source": pl.repeat(found.source, len(complete), eager=True, dtype=pl.String),
        }
    )
    return _conform(frame, STEPS.schema)


def _whole_steps(trace: Trace, found: steps.Steps, step: Array) -> Array:
    """Of a file that was cut off: the steps all of whose launches still have their device events, and never the last."""
    launches = trace.codes_of("cudaLaunch") + trace.codes_of("hipLaunch") + trace.codes_of("cuLaunch")
    calls = np.flatnonzero((trace["kind"] == KIND_CODE["runtime"]) & np.isin(trace["name"], launches))
    on_device = trace["correlation"][trace.on_device]
    lost = np.unique(step[calls[~np.isin(trace["correlation"][calls], on_device)]])
    whole = ~np.isin(found.number, lost)
    whole[-1] = False
    return np.asarray(whole)


def _events(trace: Trace, step: Array) -> pl.DataFrame:
    """The ``events`` table. Takes the columns out of *trace* one by one, so that they are not held twice."""
    series: dict[str, pl.Series] = {}
    for name, dtype in EVENTS.schema.items():
        if name in _UNKEYED:
            continue
        values = step if name == "step" else trace.columns.pop(name)
        if name in _DICTIONARIES:
            series[name] = pl.Series(*_DICTIONARIES[name]).gather(values)
        elif name == "name":
            series[name] = pl.Series(trace.names, dtype=Name).gather(values)
        elif name == "occupancy_ratio":
            series[name] = pl.Series(values, nan_to_null=True)
        else:
            plain = pl.Series(values).cast(dtype)
            series[name] = plain.set(plain == ABSENT, None) if name in _NULLABLE else plain
    return pl.DataFrame([column.alias(name) for name, column in series.items()])


def _memory(columns: Columns, base_ns: int) -> pl.DataFrame:
    rows = [
        (at, _within(a.memory_device, 31) if a.memory_device_type else ABSENT, size, *totals)
        for times, args in columns.memory
        for at, a in zip((times + base_ns).tolist(), args, strict=True)
        if (size := _within(a.memory_bytes, 62)) is not None
        for totals in [(_within(a.memory_allocated, 62), _within(a.memory_reserved, 62))]
    ]
    names = ("time_ns", "device", "delta_bytes", "allocated_bytes", "reserved_bytes")
    schema = {name: MEMORY.schema[name] for name in names}
    return _conform(pl.DataFrame(rows, schema=schema, orient="row", strict=False), MEMORY.schema)


def _conform(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items() if name not in _UNKEYED)


def _within(value: Any, bits: int) -> int | None:
    """*value* if it is an integer of that many bits."""
    return value if type(value) is int and -(1 << bits) < value < 1 << bits else None
