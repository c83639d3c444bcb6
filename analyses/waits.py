"""How much of the exposed communication is waiting for other ranks?

**Question.** Communication that nothing covers costs step time. Is it the network, or is it ranks that come late?

**Method.** The union of a rank's waits (``matched``), where it communicates and does not compute, inside its steps: *exposed
waiting*. The rest of its exposed communication is transfer, and what could not be matched. Both are means per step, as in
``mean_step``, and add up to its exposed communication.

**When it misleads.** While one operation waits another may transfer on another stream: the moment counts as waiting. Of a job of
which only some ranks were recorded, waiting for the others reads as transfer.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.engine.intervals import union, within
from tracekit.engine.stats import burden
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity
from tracekit.model.quantity import ns, percent
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

TABLE = Table(
    name="waits",
    doc="Exposed communication of each rank's mean step, as waiting for other ranks and the rest; the two add up.",
    columns=(
        *timeline_columns(),
        Column(name="steps", dtype=pl.Int64, doc="Complete steps that it is the mean of; 0 for a window."),
        Column(name="step_ns", dtype=pl.Float64, unit="ns", doc="The mean step."),
        Column(name="exposed_comm_ns", dtype=pl.Float64, unit="ns", doc="Exposed communication of a step."),
        Column(name="exposed_wait_ns", dtype=pl.Float64, unit="ns", doc="Of that, waiting for another rank."),
        Column(name="exposed_rest_ns", dtype=pl.Float64, unit="ns", doc="The rest: transfer, and what is unmatched."),
        Column(name="overlap_ratio", dtype=pl.Float64, unit="ratio", nullable=True, doc="Overlap efficiency."),
        Column(
            name="coverable_ns",
            dtype=pl.Float64,
            unit="ns",
            doc="Compute of a step that covers no communication, at most the exposed communication.",
        ),
        Column(
            name="matched_ratio",
            dtype=pl.Float64,
            unit="ratio",
            doc="Share of the rank's time in operations that was matched with other ranks'.",
        ),
    ),
)

_EXPOSED_SHARE = 0.03
_ENOUGH_MATCHED = 0.5


def compute(run: RunTables) -> pl.LazyFrame:
    waits = (
        run["matched"]
        .filter(pl.col("wait_ns") > 0)
        .select(*TIMELINE, "start_ns", end_ns=pl.col("start_ns") + pl.col("wait_ns"))
    )
    exposed = {"exposed_wait_ns": EXPOSED & pl.col("in_step")}
    waited = (
        within(union(waits, TIMELINE), run["segments"], exposed, TIMELINE)
        .group_by(TIMELINE)
        .agg(pl.col("exposed_wait_ns").sum())
    )
    told = pl.col("wait_ns").is_not_null()
    matched = run["matched"].group_by(TIMELINE).agg(
        matched_ratio=pl.col("dur_ns").filter(told).sum() / pl.col("dur_ns").sum()
    )  # fmt: skip
    coverable = pl.min_horizontal("exposed_comm_ns", pl.col("compute_ns") - pl.col("overlapped_comm_ns"))
    return TABLE.conform(
        run["mean_step"]
        .join(waited, on=TIMELINE, how="left")
        .join(matched, on=TIMELINE, how="left")
        .with_columns(
            pl.col("matched_ratio").fill_nan(None).fill_null(0.0),
            step_ns="window_ns",
            coverable_ns=coverable,
            exposed_wait_ns=pl.min_horizontal(
                pl.col("exposed_wait_ns").fill_null(0) / pl.col("steps").clip(1), "exposed_comm_ns"
            ),
        )
        .with_columns(exposed_rest_ns=pl.col("exposed_comm_ns") - pl.col("exposed_wait_ns"))
    ).sort(TIMELINE)


EXPOSED = pl.col("communication") & ~pl.col("compute")
"""Segments of exposed communication."""


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """Exposed communication that is no waiting, of 3 % of the step or more. Waiting is the finding of who came late."""
    spans = pl.col("steps").clip(1)
    exposed = burden(
        table.select("rank", lower_ns=0, upper_ns=pl.col("exposed_rest_ns") * spans), context, at_least=_EXPOSED_SHARE
    )
    if exposed is None:
        return []
    mean = (pl.col("exposed_comm_ns", "exposed_wait_ns", "coverable_ns", "overlap_ratio") * spans).sum() / spans.sum()
    row = table.filter(rank=exposed.rank).select(mean, matched=pl.col("matched_ratio").mean()).row(0, named=True)
    known = row["matched"] >= _ENOUGH_MATCHED
    covered = f"Compute covers {percent(row['overlap_ratio'])} of the communication"
    if not known:
        told = "; transfer and waiting for late ranks are not told apart, for want of the other ranks' operations"
    elif row["exposed_wait_ns"]:
        told = f"; {ns(row['exposed_wait_ns'])} more of what is exposed is waiting for other ranks"
    else:
        told = "; none of what is exposed is waiting for other ranks"
    return [
        exposed.finding(
            code="TK-COMM-EXPOSED",
            title=f"{'Transfer' if known else 'Communication'} that no compute covers takes {exposed}",
            cause=f"{covered}{told}.",
            remedy="DDP bucket_cap_mb, FSDP2 set_modules_to_forward_prefetch, reshard_after_forward=False",
            confidence=Confidence.HIGH if known else Confidence.MEDIUM,
            evidence=(
                *exposed.evidence("exposed transfer" if known else "exposed communication"),
                Quantity(label="exposed communication with waiting", value=row["exposed_comm_ns"], unit="ns"),
                Quantity(label="overlap efficiency", value=row["overlap_ratio"], unit="ratio"),
                Quantity(label="compute that could cover it", value=row["coverable_ns"], unit="ns"),
            ),
        )
    ]


ANALYSIS = Analysis(
    table=TABLE, needs=("matched", "mean_step", "segments"), compute=compute, find=find, codes=("TK-COMM-EXPOSED",)
)
