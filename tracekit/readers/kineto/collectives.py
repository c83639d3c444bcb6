"""Which events communicate, and what is known of each: the event's own metadata first, then its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.model.dtypes import bytes_of_dtype
from tracekit.model.tables import COLLECTIVES, Name
from tracekit.readers import names
from tracekit.readers.kineto.columns import KIND_CODE
from tracekit.readers.kineto.events import ABSENT, NO_DETAILS, Details
from tracekit.readers.kineto.trace import Trace

Array = npt.NDArray[Any]

_UNKEYED = ("rank", "window")


@dataclass(slots=True)
class Communication:
    """Communication events of a file, one row each; `row_of_event` points from events to rows (-1: none)."""

    row_of_event: Array
    known: list[dict[str, Any]] = field(default_factory=list)

    def table(self, trace: Trace, step: Array) -> pl.DataFrame:
        """The ``collectives`` table of *trace*, which may be a part of the file."""
        at = np.flatnonzero(trace["collective"] >= 0)
        rows = [self.known[row] for row in trace["collective"][at]]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in _KNOWN}
        columns |= {name: trace[name][at] for name in ("device", "lane", "start_ns", "dur_ns")}
        columns |= {name: _nullable(trace[name][at]) for name in ("correlation", "external_id")}
        columns["name"] = pl.Series([trace.names[code] for code in trace["name"][at]], dtype=Name)
        columns["step"] = _nullable(step[at])
        schema = {name: dtype for name, dtype in COLLECTIVES.schema.items() if name not in _UNKEYED}
        strings = {name: pl.String for name in _KNOWN if schema[name] == pl.String}
        frame = pl.DataFrame(columns, schema_overrides=strings, strict=False)
        return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())

    def only_common_rank(self) -> int | None:
        """The one rank that is a member of every process group seen here, if the groups leave no other."""
        groups = {row["group_ranks"] for row in self.known if row["group_ranks"]}
        members = [_members(group) for group in groups]
        common = set.intersection(*members) if members and all(members) else set()
        return common.pop() if len(common) == 1 else None


_KNOWN = (
    "group",
    "group_desc",
    "group_ranks",
    "op",
    "op_source",
    "algorithm",
    "seq",
    "dtype",
    "in_bytes",
    "out_bytes",
    "group_size",
)


def communication(trace: Trace, carrying: list[tuple[int, Details]]) -> Communication:
    """Find the communication events of *trace*. *carrying* lists the rows whose arguments hold collective metadata."""
    own = dict(carrying)
    operator = {a.external_id: a for row, a in carrying if trace["kind"][row] == KIND_CODE["cpu_op"]}
    kernels = trace["kind"] == KIND_CODE["kernel"]
    by_name = _by_name(trace, kernels, names.communication_of)
    candidates = kernels & np.isin(trace["name"], list(by_name))
    candidates[[row for row in own if kernels[row]]] = True
    if not trace.on_device.any():
        host = np.isin(trace["kind"], (KIND_CODE["cpu_op"], KIND_CODE["annotation"]))
        by_name = _by_name(trace, host, names.host_communication_of)
        candidates = host & np.isin(trace["name"], list(by_name))
    found = Communication(np.full(len(kernels), -1, dtype=np.int32))
    for row in np.flatnonzero(candidates):
        external_id = int(trace["external_id"][row])
        args = own.get(int(row)) or (operator.get(external_id, NO_DETAILS) if external_id != ABSENT else NO_DETAILS)
        found.row_of_event[row] = len(found.known)
        found.known.append(_describe(args, by_name.get(int(trace["name"][row]))))
    return found


def _by_name(trace: Trace, rows: Array, decide: Any) -> dict[int, names.Communication]:
    """What *decide* says of each distinct name among *rows*, where it says something."""
    decided = ((int(code), decide(trace.names[code])) for code in np.unique(trace["name"][rows]))
    return {code: communicates for code, communicates in decided if communicates is not None}


def _describe(args: Details, by_name: names.Communication | None) -> dict[str, Any]:
    told = args.collective is not None
    dtype = str(args.dtype) if args.dtype is not None else None
    size = bytes_of_dtype(dtype or "")
    return {
        "group": _text(args.group),
        "group_desc": _text(args.group_desc),
        "group_ranks": _text(args.group_ranks),
        "op": names.operation_of(str(args.collective)) if told else by_name.op if by_name else "unknown",
        "op_source": "metadata" if told else "name",
        "algorithm": by_name.algorithm if by_name else None,
        "seq": _count(args.seq),
        "dtype": dtype,
        "in_bytes": _bytes(args.in_elements, size),
        "out_bytes": _bytes(args.out_elements, size),
        "group_size": _count(args.group_size),
    }


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else None


def _bytes(elements: Any, size: int | None) -> int | None:
    usable = isinstance(elements, int) and size is not None and 0 <= elements < 1 << 50
    return elements * size if usable else None


def _members(group: str) -> set[int]:
    """Ranks of ``[0, 1]``; empty when the profiler shortened the list (``[0, 1, ..., 7]``)."""
    parts = group.strip("[]").split(",")
    return {int(part) for part in parts} if all(part.strip().isdecimal() for part in parts) else set()


def _nullable(values: Array) -> pl.Series:
    series = pl.Series(values)
    return series.set(series == ABSENT, None)
