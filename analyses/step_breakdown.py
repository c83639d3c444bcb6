"""Where does each step's time go?

**Question.** The same as ``breakdown``, step by step, and which steps stand out.

**Method.** Two views. *Wall*: the device's segments inside the step's host interval; what of the interval lies outside the
device's window counts as idle, so the parts add up to the step's duration exactly. *Launched* (columns ``launched_*``): the
device events that the step launched, wherever they ran; their span starts with the first and ends with the last of them.
Only complete steps have rows.

**When it misleads.** The host runs ahead of the device: in the wall view a step may hold the end of the work of the step
before. Over several steps that evens out. Device work outside all steps (warm-up, a final synchronisation) is in
``breakdown`` and not here.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.analyses.breakdown import MASKS, RATIOS, SUMS, TIMES, metric_columns, ratios
from tracekit.engine.derived import SETS
from tracekit.engine.intervals import sweep, within
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity, severity_of
from tracekit.model.quantity import count, ns
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

_LAUNCHED = ("busy_ns", "compute_ns", "comm_ns", "memory_ns", "exposed_comm_ns")
_STEP = (*TIMELINE, "step")
_OF_THE_WINDOW = ("window_ns", "idle_ns")
"""What a step has beyond the device's window counts as idle, so these follow from the step's own length."""

TABLE = Table(
    name="step_breakdown",
    doc="Each complete step by what ran during it (wall view) and by what it launched (``launched_*``). ``window_ns`` is its duration.",
    columns=(
        *timeline_columns(),
        Column(name="step", dtype=pl.Int32, doc="Step number."),
        *metric_columns(TIMES, pl.Int64),
        *metric_columns(RATIOS, pl.Float64, nullable=True),
        Column(
            name="launched_span_ns",
            dtype=pl.Int64,
            unit="ns",
            doc="First to last device event that the step launched; 0 if none.",
        ),
        *(
            Column(
                name=f"launched_{name}",
                dtype=pl.Int64,
                unit="ns",
                doc=f"As {name}, of the device events that the step launched.",
            )
            for name in _LAUNCHED
        ),
    ),
)

_OUTLIER = 1.5
_FEWEST_STEPS = 4
_STEADY = 1.1


def compute(run: RunTables) -> pl.LazyFrame:
    steps = run["steps"].filter("complete").select(*_STEP, "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    inside = within(
        steps, run["segments"], {name: mask for name, mask in MASKS.items() if name not in _OF_THE_WINDOW}, TIMELINE
    )
    length = pl.col("end_ns") - pl.col("start_ns")
    wall = ratios(inside.with_columns(window_ns=length, idle_ns=length - pl.col("busy_ns")))
    by_launch = (
        run["device"]
        .filter(pl.col("step").is_not_null())
        .select(*_STEP, "start_ns", "end_ns", pl.col("set").cast(pl.String))
    )
    launched = (
        sweep(by_launch, "set", SETS, _STEP)
        .group_by(_STEP)
        .agg(launched_span_ns=SUMS["window_ns"], **{f"launched_{name}": SUMS[name] for name in _LAUNCHED})
    )
    joined = wall.join(launched, on=_STEP, how="left").with_columns(pl.col("^launched_.*$").fill_null(0))
    return TABLE.conform(joined).sort(_STEP)


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """Steps that take over 1.5 times the median while the others are steady (within 10 %)."""
    usual = context.step_ns
    outliers = table.filter(pl.col("window_ns") > _OUTLIER * usual)
    others = table.filter(pl.col("window_ns") <= _OUTLIER * usual)["window_ns"]
    if outliers.is_empty() or table["step"].n_unique() < _FEWEST_STEPS:
        return []
    spread = others.quantile(0.9)
    if spread is None or spread > _STEADY * usual or 2 * len(outliers) > len(table):
        return []
    steps = sorted(set(outliers["step"]))
    worst = outliers.sort("window_ns", descending=True).row(0, named=True)
    extra = int((worst["window_ns"] - usual) * len(steps) / table["step"].n_unique())
    which = (
        f"Step {steps[0]} takes"
        if len(steps) == 1
        else f"{count(len(steps))} steps ({', '.join(map(str, steps[:5]))}) take up to"
    )
    return [
        Finding(
            code="TK-STEP-OUTLIER",
            title=f"{which} {ns(worst['window_ns'])} where the median step takes {ns(usual)}",
            cause="Something that does not happen in every step: compilation, a checkpoint, garbage collection, an evaluation, a stalled loader.",
            remedy="Look at what the host does in that step; move checkpoints to async_save, collect garbage at chosen steps",
            severity=severity_of(extra, usual),
            confidence=Confidence.MEDIUM,
            cost_ns=(0, extra),
            ranks=tuple(sorted(set(outliers["rank"]))),
            evidence=(
                Quantity(label="longest step", value=worst["window_ns"], unit="ns"),
                Quantity(label="median step", value=usual, unit="ns"),
                Quantity(label="its idle time", value=worst["idle_ns"], unit="ns"),
            ),
        )
    ]


ANALYSIS = Analysis(
    table=TABLE,
    needs=("device", "segments", "steps"),
    compute=compute,
    find=find,
    codes=("TK-STEP-OUTLIER",),
)
