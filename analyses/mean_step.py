"""Where does a step's time go on each rank?

**Question.** One step of each rank, to compare ranks by: its length, and what it is spent on.

**Method.** The mean of the rows of ``step_breakdown``, so the parts add up to the mean step, and the mean step is time over
steps. Everything that a report says per step is a mean over the same steps.

**When it misleads.** When the steps of a rank differ much, no step is like the mean: see ``step_breakdown``.
"""

from __future__ import annotations

import polars as pl

from tracekit.analyses.breakdown import RATIOS, TIMES, metric_columns, ratios
from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

TABLE = Table(
    name="mean_step",
    doc="The mean step of each recording; its whole window where it has no complete step.",
    columns=(
        *timeline_columns(),
        Column(name="steps", dtype=pl.Int64, doc="Complete steps that it is the mean of; 0 for a window."),
        *metric_columns(TIMES, pl.Float64),
        *metric_columns(RATIOS, pl.Float64, nullable=True),
    ),
)


def compute(run: RunTables) -> pl.LazyFrame:
    means = run["step_breakdown"].group_by(TIMELINE).agg(pl.col(TIMES).mean(), steps=pl.col("step").count())
    return TABLE.conform(ratios(means)).sort(TIMELINE)


ANALYSIS = Analysis(table=TABLE, needs=("step_breakdown",), compute=compute)
