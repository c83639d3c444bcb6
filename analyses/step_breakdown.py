"""Where does each step's time go, and which steps stand out?

**Question.** The same as ``breakdown``, step by step.

**Method.** Two views. *Wall*: the device's segments inside the step's span (``step_spans``): the parts add up to its length
exactly, and the spans of consecutive steps follow one another, so that their mean is time over steps. *Launched* (columns
``launched_*``): the device events that the step launched, wherever they ran; their span starts with the first and ends with
the last of them. Only complete steps have rows; a recording without one has a single row, its window.

The span of a step begins when the host has begun with it and the device is done with the step before, so it is the
device's step where the host runs ahead, and the host's where they meet at the end of each step (``loss.item()``).

**When it misleads.** A stream that lags behind the one that computes most (communication) may end in the next step's span.
Device work outside all steps (warm-up) is in ``breakdown`` and not here. What is called communication includes waiting
for late ranks.
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
"""These follow from the step's own length."""

TABLE = Table(
    name="step_breakdown",
    doc="Each complete step by what ran in its span (wall view) and by what it launched (``launched_*``). ``window_ns`` is its length.",
    columns=(
        *timeline_columns(),
        Column(
            name="step",
            dtype=pl.Int32,
            nullable=True,
            doc="Step number; null for a recording without complete steps, whose window is the row.",
        ),
        *metric_columns(TIMES, pl.Int64),
        *metric_columns(RATIOS, pl.Float64, nullable=True),
        Column(name="host_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="How long the step took on the host."),
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
    masks = {name: mask for name, mask in MASKS.items() if name not in _OF_THE_WINDOW}
    inside = within(run["step_spans"], run["segments"], masks, TIMELINE)
    length = pl.col("end_ns") - pl.col("start_ns")
    wall = ratios(inside.with_columns(window_ns=length, idle_ns=length - pl.col("busy_ns")))
    by_launch = run["device"].filter("in_step").select(*_STEP, "start_ns", "end_ns", pl.col("set").cast(pl.String))
    launched = (
        sweep(by_launch, "set", SETS, _STEP)
        .group_by(_STEP)
        .agg(launched_span_ns=SUMS["window_ns"], **{f"launched_{name}": SUMS[name] for name in _LAUNCHED})
    )
    joined = wall.join(launched, on=_STEP, how="left", nulls_equal=True)
    return TABLE.conform(joined.with_columns(pl.col("^launched_.*$").fill_null(0))).sort(_STEP)


def find(table: pl.DataFrame, _context: Context) -> Sequence[Finding]:
    """Steps that take over 1.5 times the median while the others are steady (within 10 %)."""
    steps = table.filter(pl.col("step").is_not_null())
    number = steps["step"].n_unique()
    if number < _FEWEST_STEPS:
        return []
    usual = int(steps["window_ns"].quantile(0.5, "lower") or 0)
    outliers = steps.filter(pl.col("window_ns") > _OUTLIER * usual)
    spread = steps.filter(pl.col("window_ns") <= _OUTLIER * usual)["window_ns"].quantile(0.9) or 0
    if outliers.is_empty() or spread > _STEADY * usual or 2 * len(outliers) > len(steps):
        return []
    which = sorted(set(outliers["step"]))
    worst = outliers.sort("window_ns", descending=True).row(0, named=True)
    extra = int((worst["window_ns"] - usual) * len(which) / number)
    named = (
        f"Step {which[0]} takes"
        if len(which) == 1
        else f"{count(len(which))} steps ({', '.join(map(str, which[:5]))}) take up to"
    )
    return [
        Finding(
            code="TK-STEP-OUTLIER",
            title=f"{named} {ns(worst['window_ns'])} where the median step takes {ns(usual)}",
            cause="Something that does not happen in every step: compilation, a checkpoint, garbage collection, an evaluation, a stalled loader.",
            remedy="Look at what the host does in that step; move checkpoints to async_save, collect garbage at chosen steps",
            severity=severity_of(extra / usual if usual else 0.0),
            confidence=Confidence.MEDIUM,
            cost_ns=(0, extra),
            share_ratio=extra / usual if usual else 0.0,
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
    needs=("device", "segments", "step_spans"),
    compute=compute,
    find=find,
    codes=("TK-STEP-OUTLIER",),
)
