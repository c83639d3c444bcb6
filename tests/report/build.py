"""Reports and runs made of a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from statistics import median
from typing import Any, TypeAlias

import polars as pl
from rich.console import Console, RenderableType

from tracekit.analyses import mean_step
from tracekit.model.finding import Confidence, Finding, Quantity, Severity
from tracekit.model.report import Report
from tracekit.model.run import RunTables
from tracekit.model.table import Table
from tracekit.model.tables import COLLECTIVES, EVENTS, MEMORY, RANKS, STEPS

Rows: TypeAlias = Sequence[dict[str, Any]]
_RANK: dict[str, Any] = {
    "window": 0,
    "status": "read",
    "reason": "",
    "rank_source": "distributedInfo",
    "view": "device",
    "base_ns": 0,
    "clock_offset_ns": 0,
    "complete_events": 100,
    "device_events": 10,
    "events_read": 120,
    "events_repaired": 0,
    "events_dropped": 0,
    "device_ns_touched": 0,
    "notes": [],
}


def frame(table: Table, rows: Rows) -> pl.DataFrame:
    """*rows* as *table*; columns that are left out are null."""
    return pl.DataFrame(list(rows), schema=table.schema, orient="row") if rows else table.empty()


def ranks_frame(rows: Rows) -> pl.DataFrame:
    """The ``ranks`` table; a row says what is unusual about a recording."""
    return frame(RANKS, [{**_RANK, "source": f"rank{row['rank']}.json", **row} for row in rows])


def make_run(ranks: Rows, **rows: Rows) -> RunTables:
    """A run of *ranks* and the rows of its other tables, by name."""
    tables = {
        table.name: frame(table, rows.get(table.name, ())).lazy() for table in (EVENTS, COLLECTIVES, STEPS, MEMORY)
    }
    return RunTables(ranks=ranks_frame(ranks), tables=tables)


def screen(renderable: RenderableType, width: int) -> list[str]:
    """*renderable* as the lines of a terminal without colours."""
    file = StringIO()
    Console(file=file, width=width, markup=False, emoji=False, highlight=False).print(renderable)
    return file.getvalue().splitlines()


def breakdown_row(
    rank: int, *, compute: int, exposed: int, overlapped: int = 0, copies: int = 0, idle: int = 0, **extra: Any
) -> dict[str, Any]:
    """A row of ``breakdown`` or ``step_breakdown`` whose parts add up, from the parts that bars are made of."""
    busy = compute + exposed + copies
    window = busy + idle
    comm = exposed + overlapped
    return {
        "rank": rank,
        "window": 0,
        "compute_kernels": 3,
        "comm_kernels": 1 if comm else 0,
        "memory_ops": 1 if copies else 0,
        "window_ns": window,
        "busy_ns": busy,
        "idle_ns": idle,
        "compute_ns": compute,
        "comm_ns": comm,
        "memory_ns": copies,
        "overlapped_comm_ns": overlapped,
        "exposed_comm_ns": exposed,
        "exposed_memory_ns": copies,
        "utilization_ratio": busy / window if window else None,
        "compute_utilization_ratio": compute / window if window else None,
        "overlap_ratio": overlapped / comm if comm else None,
        "comm_to_compute_ratio": comm / compute if comm and compute else None,
        **extra,
    }


_KEYS = {"rank": pl.Int32, "window": pl.Int16, "step": pl.Int32}


def _table(rows: Rows) -> pl.DataFrame:
    table = pl.DataFrame(list(rows), infer_schema_length=None)
    return table.cast({name: dtype for name, dtype in _KEYS.items() if name in table.columns})


def make_report(
    breakdown: Rows,
    *,
    steps: Rows = (),
    ranks: Rows | None = None,
    tables: Mapping[str, Rows] | None = None,
    **values: Any,
) -> Report:
    """A report of a breakdown's rows and, for each step, those of a step breakdown; *values* replace its fields."""
    having = {(row["rank"], row["window"]) for row in steps}
    whole = [{**row, "step": None} for row in breakdown if (row["rank"], row["window"]) not in having]
    rows = {"breakdown": breakdown, "step_breakdown": [*steps, *whole], **(tables or {})}
    measured = {name: _table(table) for name, table in rows.items() if table}
    if breakdown:
        run = make_run([]).with_table("step_breakdown", measured["step_breakdown"].lazy())
        measured["mean_step"] = mean_step.compute(run).collect()
    fields: dict[str, Any] = {
        "title": "run/",
        "ranks": ranks_frame([{"rank": row["rank"]} for row in breakdown] if ranks is None else ranks),
        "tables": measured,
        "findings": (),
        "skipped": (),
        "step_ns": int(median([row["window_ns"] for row in steps or breakdown] or [0])),
        "steps": len({row["step"] for row in steps}),
        "step_source": "annotation" if steps else "",
    }
    return Report(**{**fields, **values})


FINDING = Finding(
    code="TK-COMM-EXPOSED",
    title="4.00 ms of communication is exposed",
    cause="it is launched after the compute that could hide it",
    remedy="DistributedDataParallel(..., bucket_cap_mb=100)",
    severity=Severity.HIGH,
    confidence=Confidence.MEDIUM,
    cost_ns=(1_000_000, 4_000_000),
    share_ratio=0.2,
    ranks=(0, 1),
    evidence=(Quantity(label="exposed communication", value=4_000_000, unit="ns"),),
)
