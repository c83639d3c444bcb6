"""Builds the tables of small runs from rows that say only what a test is about.

    run(
        kernel("gemm", 0, 60, cls="gemm"),
        kernel("nccl", 40, 100, cls="communication"),
        launch(1, 0, 5),
    )

Times are start and end in nanoseconds. Rows belong to rank 0, window 0 unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tracekit.engine.derived import DERIVED
from tracekit.model.analysis import Analysis, Context
from tracekit.model.run import RunTables
from tracekit.model.table import Table
from tracekit.model.tables import COLLECTIVES, EVENTS, MEMORY, RANKS, STEPS

Row = dict[str, Any]

_HOST: Row = {"rank": 0, "window": 0, "process": 100, "device": -1, "lane": 100, "class": ""}
_DEVICE: Row = {"rank": 0, "window": 0, "process": 0, "device": 0, "lane": 7}


def kernel(name: str = "kernel", start: int = 0, end: int = 1, *, cls: str = "other", **columns: Any) -> Row:
    """A kernel on device 0, stream 7. *cls* is its class."""
    return {"table": "events", **_DEVICE, "kind": "kernel", "name": name, "class": cls, **_span(start, end), **columns}


def memcpy(
    name: str = "Memcpy HtoD (Pinned -> Device)",
    start: int = 0,
    end: int = 1,
    *,
    bytes: int | None = None,
    **columns: Any,
) -> Row:
    kind = "memset" if name.startswith("Memset") else "memcpy"
    return {
        "table": "events",
        **_DEVICE,
        "kind": kind,
        "name": name,
        "class": kind,
        "bytes": bytes,
        **_span(start, end),
        **columns,
    }


def host(kind: str, name: str, start: int, end: int, **columns: Any) -> Row:
    """A host event on thread 100: kind cpu_op, runtime, annotation, python, sync or other."""
    return {"table": "events", **_HOST, "kind": kind, "name": name, **_span(start, end), **columns}


def launch(correlation: int, start: int, end: int, name: str = "cudaLaunchKernel", **columns: Any) -> Row:
    """The runtime call that launched the device events of the same correlation."""
    return host("runtime", name, start, end, correlation=correlation, **columns)


def op(name: str, start: int, end: int, **columns: Any) -> Row:
    return host("cpu_op", name, start, end, **columns)


def annotation(name: str, start: int, end: int, **columns: Any) -> Row:
    return host("annotation", name, start, end, **columns)


def collective(op: str = "all_reduce", start: int = 0, end: int = 1, **columns: Any) -> Row:
    """A row of ``collectives`` alone; for its device time add a `kernel` of class communication."""
    fixed = {"name": f"nccl_{op}", "op": op, "op_source": "metadata", "lane": 20, "device": 0, "rank": 0, "window": 0}
    return {"table": "collectives", **fixed, **_span(start, end), **columns}


def step(number: int, start: int, end: int, **columns: Any) -> Row:
    fixed = {"rank": 0, "window": 0, "step": number, "complete": True, "source": "annotation"}
    return {"table": "steps", **fixed, **_span(start, end), **columns}


def rank(number: int, **columns: Any) -> Row:
    """A row of ``ranks``; made by itself for every rank that other rows name."""
    fixed: Row = {
        "window": 0,
        "source": f"rank{number}.json",
        "status": "read",
        "reason": "",
        "rank_source": "distributedInfo",
    }
    fixed |= {"view": "device", "base_ns": 0, "clock_offset_ns": 0, "notes": []}
    fixed |= dict.fromkeys(("complete_events", "device_events", "events_read", "events_repaired", "events_dropped"), 0)
    return {"table": "ranks", "rank": number, **fixed, "device_ns_touched": 0, **columns}


def run(*rows: Row, view: str = "device") -> RunTables:
    """The tables of a run that holds *rows*. *view* is the view of the ranks that have no row of their own."""
    given = [row for row in rows if row["table"] == "ranks"]
    known = {(row["rank"], row["window"]) for row in given}
    others = sorted({(row["rank"], row["window"]) for row in rows} - known)
    ranks = [*given, *(rank(number, window=window, view=view) for number, window in others)]
    tables = {table.name: _frame(table, rows).lazy() for table in (EVENTS, COLLECTIVES, STEPS, MEMORY)}
    return RunTables(ranks=_frame(RANKS, ranks), tables=tables)


def with_tables(tables: RunTables, *analyses: Analysis) -> RunTables:
    """*tables* with the derived tables, and those of *analyses*, computed in the order given."""
    for analysis in (*DERIVED, *analyses):
        tables = tables.with_table(analysis.name, analysis.compute(tables).collect().lazy())
    return tables


def compute(analysis: Analysis, *rows: Row, view: str = "device", before: Sequence[Analysis] = ()) -> pl.DataFrame:
    """The table that *analysis* answers with for *rows*; *before* names analyses whose tables it needs."""
    return analysis.compute(with_tables(run(*rows, view=view), *before)).collect()


def context(steps: int = 1, step_ns: int = 1000, ranks: Sequence[int] = (0,), devices: Sequence[str] = ()) -> Context:
    """Every rank has *steps* steps of *step_ns*; without steps, a window of that length."""
    schema = {"rank": pl.Int32, "spans": pl.UInt32, "step_ns": pl.Int64}
    per_rank = pl.DataFrame([(rank, max(steps, 1), step_ns) for rank in ranks], schema, orient="row")
    return Context(steps=steps, step_ns=step_ns, ranks=tuple(ranks), per_rank=per_rank, devices=tuple(devices))


def _span(start: int, end: int) -> Row:
    return {"start_ns": start, "dur_ns": end - start}


def _frame(table: Table, rows: Sequence[Row]) -> pl.DataFrame:
    mine = [{name: row.get(name) for name in table.schema} for row in rows if row["table"] == table.name]
    return pl.DataFrame(mine, schema=table.schema, strict=False)
