"""Tables that several analyses need, derived once: device time, its segments, and the launches behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from tracekit.engine.host import innermost, join_once, named, with_operator
from tracekit.engine.intervals import sweep
from tracekit.engine.matching import MATCHED, matched
from tracekit.engine.steps import STEP_SPANS, in_complete_steps, step_spans, windows
from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns
from tracekit.model.tables import DEVICE_KINDS, Class, Name

SETS = ("compute", "communication", "memory")
"""What device time is spent on: the sets C, N and M of the definitions."""

_KEPT = (
    "device",
    "lane",
    "name",
    "class",
    "start_ns",
    "dur_ns",
    "correlation",
    "external_id",
    "step",
    "bytes",
    "occupancy_ratio",
)
_OF_STEPS = ("events", "collectives", "steps")
"""Recorded tables whose rows name their step."""

_ISSUES_ONLY = (
    r"^(autograd::engine::|c10d::|c10d_functional|_c10d_functional|record_param_comms$|nccl:|gloo:|mpi:|ucc:)"
)
"""Operators whose own time is no work of the model's: they hand communication to a backend, wait for it, or dispatch."""

DEVICE = Table(
    name="device",
    doc="Every interval of device time. On runs without an accelerator operators and backend ranges stand for it.",
    columns=(
        *timeline_columns(),
        Column(name="device", dtype=pl.Int32, doc="Device number; -1 on runs without an accelerator."),
        Column(name="lane", dtype=pl.Int64, doc="Stream, or thread."),
        Column(name="set", dtype=pl.Enum(SETS), doc="What the time is spent on: " + ", ".join(SETS) + "."),
        Column(name="name", dtype=Name, doc="Kernel, copy, operator or range."),
        Column(name="class", dtype=Class, doc="As in ``events``."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="end_ns", dtype=pl.Int64, unit="ns", doc="End."),
        Column(name="dur_ns", dtype=pl.Int64, unit="ns", doc="Duration."),
        Column(
            name="calls",
            dtype=pl.Int32,
            doc="1; 0 where an operator goes on after another that it called, so that the sum counts operators once.",
        ),
        Column(name="correlation", dtype=pl.Int64, nullable=True, doc="As in ``events``."),
        Column(name="external_id", dtype=pl.Int64, nullable=True, doc="As in ``events``."),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="As in ``events``."),
        Column(
            name="in_step",
            dtype=pl.Boolean,
            doc="Whether a complete step launched it; true for everything of a recording without steps.",
        ),
        Column(name="bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="As in ``events``."),
        Column(name="occupancy_ratio", dtype=pl.Float32, unit="ratio", nullable=True, doc="As in ``events``."),
    ),
)

SEGMENTS = Table(
    name="segments",
    doc="A timeline's window and its steps, cut wherever anything starts or ends: in each segment the same sets run throughout. No holes.",
    columns=(
        *timeline_columns(),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="end_ns", dtype=pl.Int64, unit="ns", doc="End."),
        *(Column(name=name, dtype=pl.Boolean, doc=f"Whether anything of the set {name} runs.") for name in SETS),
        Column(name="in_window", dtype=pl.Boolean, doc="Whether it lies between the first and the last device event."),
        Column(name="in_step", dtype=pl.Boolean, doc="Whether it lies in one of ``step_spans``."),
    ),
)

LAUNCHES = Table(
    name="launches",
    doc="Every kernel, copy and set with the host call that launched it.",
    columns=(
        *timeline_columns(),
        *(
            column
            for column in DEVICE.columns
            if column.name in {"device", "lane", "set", "name", "class", "start_ns", "end_ns", "in_step"}
        ),
        Column(
            name="external_id",
            dtype=pl.Int64,
            nullable=True,
            doc="Operator that issued it: the event's own, else its launch's.",
        ),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="As in ``events``."),
        Column(name="launch_name", dtype=Name, nullable=True, doc="The launching call."),
        Column(name="launch_thread", dtype=pl.Int64, nullable=True, doc="The launching thread."),
        Column(name="launch_start_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="Start of the launching call."),
        Column(name="launch_end_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="End of the launching call."),
        Column(name="operator", dtype=Name, nullable=True, doc="Innermost operator that issued it."),
        Column(name="operator_start_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="Start of that call."),
        Column(name="operator_end_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="End of that call."),
        Column(name="graph", dtype=pl.Boolean, doc="Launched as part of a CUDA or HIP graph."),
        Column(name="linked", dtype=pl.Boolean, doc="Whether the launch was recorded."),
    ),
)


def of_steps(run: RunTables, steps: Sequence[int]) -> RunTables:
    """*run* with nothing but what belongs to *steps*. Their spans are found before their neighbours are gone."""
    inside = pl.col("step").is_in(steps)
    spans = step_spans(run.with_table(DEVICE.name, device(run))).filter(inside)
    tables = {name: frame.filter(inside) if name in _OF_STEPS else frame for name, frame in run.tables.items()}
    return replace(run, tables={**tables, STEP_SPANS.name: spans})


def device(run: RunTables) -> pl.LazyFrame:
    """Rows of `DEVICE`, sorted by timeline and start."""
    kind = pl.col("kind")
    on_device = _of_view(run, "events", "device").filter(kind.is_in(DEVICE_KINDS))
    found = on_device.select(
        *TIMELINE,
        *_KEPT,
        set=pl.when(pl.col("class") == "communication")
        .then(pl.lit("communication"))
        .when(kind == "kernel")
        .then(pl.lit("compute"))
        .otherwise(pl.lit("memory"))
        .cast(pl.Enum(SETS)),
        calls=pl.lit(1),
    )
    parts = [found] if _has_no_host_view(run) else [found, _operators(run), _backend_ranges(run)]
    everything = pl.concat(parts, how="diagonal_relaxed").with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    return DEVICE.conform(in_complete_steps(everything, run["steps"])).sort(*TIMELINE, "start_ns")


def segments(run: RunTables) -> pl.LazyFrame:
    """Rows of `SEGMENTS`."""
    ends = (*TIMELINE, "start_ns", "end_ns")
    flagged = [
        run["device"].select(*ends, pl.col("set").cast(pl.String)),
        windows(run).select(*ends, set=pl.lit("in_window")),
        run["step_spans"].select(*ends, set=pl.lit("in_step")),
    ]
    return SEGMENTS.conform(sweep(pl.concat(flagged), "set", (*SETS, "in_window", "in_step"), TIMELINE))


def launches(run: RunTables) -> pl.LazyFrame:
    """Rows of `LAUNCHES`. Kernels of one graph launch share its call; an event without a recorded launch stays, unlinked."""
    key = [*TIMELINE, "correlation"]
    calls = (
        run["events"]
        .filter(pl.col("kind") == "runtime", pl.col("correlation").is_not_null())
        .select(
            *key,
            launch_name="name",
            launch_thread="lane",
            launch_start_ns="start_ns",
            launch_end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            launch_external_id="external_id",
        )
    )
    call = pl.col("launch_name")
    graph = (
        call.cat.starts_with("cudaGraphLaunch")
        | call.cat.starts_with("hipGraphLaunch")
        | call.cat.starts_with("cuGraphLaunch")
    )
    launched = join_once(run["device"].filter(pl.col("device") >= 0), calls, key)
    issued = launched.lazy().with_columns(
        external_id=pl.coalesce("external_id", "launch_external_id"),
        graph=graph.fill_null(False),
        linked=call.is_not_null(),
        thread="launch_thread",
        at_ns="launch_start_ns",
    )
    return LAUNCHES.conform(with_operator(issued, run["events"]))


def _has_no_host_view(run: RunTables) -> bool:
    return not (run.ranks["view"] == "host").any()


def _of_view(run: RunTables, table: str, view: str) -> pl.LazyFrame:
    """Rows of *table* whose timeline has the *view*; the table as it is when all have."""
    if (run.ranks["view"] == view).all():
        return run[table]
    return run[table].join(run.ranks.lazy().filter(pl.col("view") == view).select(TIMELINE), on=TIMELINE, how="semi")


def _operators(run: RunTables) -> pl.LazyFrame:
    """The time in which each operator of a run without an accelerator is the innermost of its thread.

    That is its own work: an operator that calls others (``aten::mm`` calls ``aten::resolve_conj``) keeps what they leave.
    """
    thread = [*TIMELINE, "lane"]
    operators = _of_view(run, "events", "host").filter(pl.col("kind") == "cpu_op").with_row_index("call")
    operators = operators.with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    own = innermost(operators, thread, ["call"]).with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns"))
    kept = [name for name in _KEPT if name not in {"lane", "start_ns", "dur_ns"}]
    named_own = own.join(operators.select("call", *kept, called_ns="start_ns"), on="call")
    return named(named_own, ~pl.col("name").str.contains(_ISSUES_ONLY)).select(
        *TIMELINE,
        *_KEPT,
        set=pl.lit("compute").cast(pl.Enum(SETS)),
        calls=(pl.col("start_ns") == pl.col("called_ns")).cast(pl.Int32),
    )


def _backend_ranges(run: RunTables) -> pl.LazyFrame:
    kept = [name for name in _KEPT if name not in {"class", "bytes", "occupancy_ratio"}]
    ranges = _of_view(run, "collectives", "host").filter(pl.col("device") == -1)
    return ranges.select(
        *TIMELINE,
        *kept,
        pl.lit("communication").cast(Class).alias("class"),
        set=pl.lit("communication").cast(pl.Enum(SETS)),
        calls=pl.lit(1),
    )


DERIVED: tuple[Analysis, ...] = (
    Analysis(table=DEVICE, needs=("events",), compute=device),
    Analysis(table=STEP_SPANS, needs=("device",), compute=step_spans),
    Analysis(table=SEGMENTS, needs=("device", "step_spans"), compute=segments),
    Analysis(table=LAUNCHES, needs=("device",), compute=launches),
    Analysis(table=MATCHED, needs=("collectives",), compute=matched),
)
"""Derived tables, in an order in which each finds what it needs."""
