"""Where does a step's time go on each rank, and which ranks keep the others waiting?

**Question.** One step of each rank, to compare ranks by: its length, and what it is spent on.

**Method.** The mean of the rows of ``step_breakdown``, so the parts add up to the mean step, and the mean step is time over
steps. Everything that a report says per step is a mean over the same steps.

A rank that is *late* spends more of its step outside exposed communication than the median rank does: in compute, copies or
idleness. The others have that time as communication, in which they wait for it.

Nobody is called late where the mean steps of the ranks differ in length by more than a quarter: then they were not
recorded over the same steps.

**When it misleads.** Ranks that communicate less because they have less to communicate (the ends of a pipeline) look late.
When the steps of a rank differ much, no step is like the mean: see ``step_breakdown``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tracekit.analyses.breakdown import RATIOS, TIMES, metric_columns, ratios
from tracekit.engine.stats import burden
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity, severity_of
from tracekit.model.numbers import spans_text
from tracekit.model.quantity import ns, percent
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

_EXPOSED_SHARE = 0.03
_LATE_SHARE = 0.05
_ALIKE = 1.25
"""Ranks that train together take equally long for a step; beyond this ratio the recordings are not of the same steps."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the step outside communication, and what to do about a rank that has more of it."""

    noun: str
    verb: str
    remedy: str


_OWN_PARTS = {
    "compute_ns": _Part(
        "compute",
        "computes",
        "Compare its kernels with another rank's: more work (uneven batches, experts or stages) "
        "or the same work slower (clocks, a shared machine)?",
    ),
    "exposed_memory_ns": _Part(
        "copying",
        "copies",
        "See what it copies that the others do not: offloading, logging, checkpoints, a larger batch",
    ),
    "idle_ns": _Part(
        "idleness",
        "idles",
        "Its host is slower or does more: compare its idle causes with another rank's (--ranks), its CPU binding, "
        "its loader, what only this rank logs or saves",
    ),
}


def compute(run: RunTables) -> pl.LazyFrame:
    means = run["step_breakdown"].group_by(TIMELINE).agg(pl.col(TIMES).mean(), steps=pl.col("step").count())
    return TABLE.conform(ratios(means)).sort(TIMELINE)


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    late = _late(table)
    found = [_exposed(table, late, context), _uneven(late, context)]
    return [finding for finding in found if finding is not None]


def _late(table: pl.DataFrame) -> pl.DataFrame:
    """The ranks that are late, the latest first: their mean step, and ``more_ns`` and ``usual_*``, the median rank's.

    Late is who has 5 % of its step more outside exposed communication than the median rank; nobody, where their steps
    differ in length by more than a quarter.
    """
    weight = pl.col("steps").clip(1)
    own = pl.col("window_ns") - pl.col("exposed_comm_ns")
    per_rank = (
        table.group_by("rank")
        .agg((pl.col(TIMES) * weight).sum() / weight.sum())
        .with_columns(own_ns=own)
        .with_columns(pl.col("own_ns", *_OWN_PARTS).quantile(0.5, "lower").name.prefix("usual_"))
        .with_columns(more_ns=pl.col("own_ns") - pl.col("usual_own_ns"))
        .sort("more_ns", "rank", descending=[True, False])
    )
    late = pl.col("more_ns") > _LATE_SHARE * pl.col("window_ns")
    alike = pl.col("window_ns").max() <= _ALIKE * pl.col("window_ns").min()
    others_wait = pl.col("exposed_comm_ns").filter(~late).quantile(0.5, "lower").fill_null(0)
    waited = (others_wait - pl.col("exposed_comm_ns")).clip(0)  # what the others expose and it does not
    communicate = per_rank["comm_ns"].sum() > 0
    return per_rank.with_columns(waited_ns=pl.min_horizontal(waited, "more_ns")).filter(late & alike & communicate)


def _exposed(table: pl.DataFrame, late: pl.DataFrame, context: Context) -> Finding | None:
    """Exposed communication that takes more than 3 % of the step on some rank."""
    spans = pl.col("steps").clip(1)
    coverable = pl.min_horizontal("exposed_comm_ns", pl.col("compute_ns") - pl.col("overlapped_comm_ns"))
    exposed = burden(
        table.select("rank", lower_ns=0, upper_ns=pl.col("exposed_comm_ns") * spans), context, at_least=_EXPOSED_SHARE
    )
    if exposed is None:
        return None
    worst = table.filter(rank=exposed.rank).select(
        hidden=pl.col("overlapped_comm_ns").sum() / pl.col("comm_ns").sum(),
        coverable=(coverable * spans).sum() / spans.sum(),
    )
    hidden, could_cover = worst.row(0)
    remedy = "DDP bucket_cap_mb, FSDP2 set_modules_to_forward_prefetch, reshard_after_forward=False"
    if not late.is_empty():
        remedy = f"First mend what makes ranks late (TK-RANK-UNEVEN); for what remains: {remedy}"
    return exposed.finding(
        code="TK-COMM-EXPOSED",
        title=f"Communication that no compute covers takes {exposed}",
        cause=f"Compute covers {percent(hidden)} of the communication; "
        "what is exposed is transfer and waiting for late ranks together.",
        remedy=remedy,
        confidence=Confidence.MEDIUM,
        evidence=(
            *exposed.evidence("exposed communication"),
            Quantity(label="overlap efficiency", value=hidden, unit="ratio"),
            Quantity(label="compute that could cover it", value=could_cover, unit="ns"),
        ),
    )


def _uneven(late: pl.DataFrame, context: Context) -> Finding | None:
    """The late ranks, and what they have more of than the median rank."""
    if late.is_empty():
        return None
    worst = late.row(0, named=True)
    more = {part: worst[part] - worst[f"usual_{part}"] for part in _OWN_PARTS}
    part = max(more, key=lambda name: more[name])
    ranks, usual = tuple(late["rank"]), context.others
    named = (
        f"Rank {ranks[0]} is late: it" if len(ranks) == 1 else f"Ranks {spans_text(ranks)} are late: rank {ranks[0]}"
    )
    share = worst["more_ns"] / worst["window_ns"]
    return Finding(
        code="TK-RANK-UNEVEN",
        title=f"{named} {_OWN_PARTS[part].verb} {ns(more[part])} a step longer than {usual}",
        cause=f"Outside communication it needs {ns(worst['more_ns'])} more ({percent(share)} of its step); the other ranks wait for it in their collectives.",
        remedy=_OWN_PARTS[part].remedy,
        severity=severity_of(share),
        confidence=Confidence.MEDIUM,
        cost_ns=(round(worst["waited_ns"]), round(worst["more_ns"])),
        share_ratio=share,
        ranks=tuple(sorted(ranks)),
        evidence=(
            Quantity(label=f"{_OWN_PARTS[part].noun} of rank {worst['rank']} per step", value=worst[part], unit="ns"),
            Quantity(label=f"{_OWN_PARTS[part].noun} of {usual} per step", value=worst[f"usual_{part}"], unit="ns"),
            Quantity(
                label=f"exposed communication of rank {worst['rank']} per step",
                value=worst["exposed_comm_ns"],
                unit="ns",
            ),
        ),
    )


ANALYSIS = Analysis(
    table=TABLE, needs=("step_breakdown",), compute=compute, find=find, codes=("TK-COMM-EXPOSED", "TK-RANK-UNEVEN")
)
