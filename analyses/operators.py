"""Which operators is the device time spent for?

**Question.** How much device time did each host operator launch, and how often was it called?

**Method.** A device event belongs to the operator that was current on the host when it was launched: the innermost one
(``aten::mm``, not the module around it), found by ``external_id``, or by the moment on the launching thread where ids lead
nowhere. What a CUDA or HIP graph launch replays has no operator any more and belongs to the launching call
(``cudaGraphLaunch``), each launch a call. Device events that neither explains are in the row whose operator is null.
On runs without an accelerator the operators' own time, in which no other runs inside them, is the device time.

``device_ns`` is a sum of durations, so that operators add up to the timeline's total of device event durations; where
streams overlap that total is longer than the busy time.

**When it misleads.** Communication launched by the backend's own code appears under its operator (``record_param_comms``,
``c10d::allreduce_``); its duration includes waiting for late ranks. ``host_ns`` adds up calls of one operator; a call that
runs inside another of the same name counts in both.
"""

from __future__ import annotations

import polars as pl

from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns
from tracekit.model.tables import Name

TABLE = Table(
    name="operators",
    doc="Device time by the host operator that launched it; the rows of a timeline add up to all its device events.",
    columns=(
        *timeline_columns(),
        Column(
            name="operator",
            dtype=Name,
            nullable=True,
            doc="Operator, or the graph launch; null where neither is known.",
        ),
        Column(name="graph", dtype=pl.Boolean, doc="Whether it is a graph launch."),
        Column(name="calls", dtype=pl.Int64, doc="Calls that launched something; 0 in the row without operator."),
        Column(name="kernels", dtype=pl.Int64, doc="Device events launched."),
        Column(name="device_ns", dtype=pl.Int64, unit="ns", doc="Sum of their durations."),
        Column(name="host_ns", dtype=pl.Int64, unit="ns", doc="Sum of the calls' durations on the host."),
        Column(name="device_ratio", dtype=pl.Float64, unit="ratio", doc="Share of the timeline's sum of durations."),
    ),
)

_LENGTH = pl.col("end_ns") - pl.col("start_ns")
_TOTALS = ("calls", "kernels", "device_ns", "host_ns")


def compute(run: RunTables) -> pl.LazyFrame:
    table = (
        pl.concat([_by_operator(run), _by_graph_launch(run), _on_host(run)])
        .group_by(*TIMELINE, "operator", "graph")
        .agg(pl.col(_TOTALS).sum())
        .with_columns(device_ratio=pl.col("device_ns") / pl.col("device_ns").sum().over(TIMELINE))
    )
    order = pl.col("device_ns"), pl.col("operator").cast(pl.String)
    return TABLE.conform(table.sort(*TIMELINE, *order, descending=[False, False, True, False]))


def _by_operator(run: RunTables) -> pl.LazyFrame:
    """A row per operator call that launched something, and one without operator for all else."""
    call = (*TIMELINE, "operator", "operator_start_ns", "operator_end_ns")
    return (
        run["launches"]
        .filter(~pl.col("graph"))
        .group_by(call)
        .agg(kernels=pl.len().cast(pl.Int64), device_ns=_LENGTH.sum())
        .select(
            *TIMELINE,
            "operator",
            graph=pl.lit(False),
            calls=pl.col("operator").is_not_null().cast(pl.Int64),
            kernels="kernels",
            device_ns="device_ns",
            host_ns=(pl.col("operator_end_ns") - pl.col("operator_start_ns")).fill_null(0),
        )
    )


def _by_graph_launch(run: RunTables) -> pl.LazyFrame:
    """A row per launch of a graph. What it replays shares the launch, and has no operator of its own."""
    launch = (*TIMELINE, "launch_name", "launch_start_ns", "launch_end_ns")
    replayed = run["launches"].filter("graph").group_by(launch).agg(kernels=pl.len(), device_ns=_LENGTH.sum())
    return replayed.select(
        *TIMELINE,
        operator="launch_name",
        graph=pl.lit(True),
        calls=pl.lit(1, pl.Int64),
        kernels=pl.col("kernels").cast(pl.Int64),
        device_ns="device_ns",
        host_ns=pl.col("launch_end_ns") - pl.col("launch_start_ns"),
    )


def _on_host(run: RunTables) -> pl.LazyFrame:
    """A row per span of runs without an accelerator, in which the innermost operator is the device time."""
    return (
        run["device"]
        .filter(pl.col("device") == -1)
        .select(
            *TIMELINE,
            operator="name",
            graph=pl.lit(False),
            calls=pl.col("calls").cast(pl.Int64),
            kernels=pl.col("calls").cast(pl.Int64),
            device_ns="dur_ns",
            host_ns="dur_ns",
        )
    )


ANALYSIS = Analysis(table=TABLE, needs=("device",), compute=compute)
