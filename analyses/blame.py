"""Why did the last rank of a collective come late?

**Question.** Of each collective that ranks waited in: who is to blame, and what did that rank do instead?

**Method.** All ranks leave a synchronising collective at one moment, so that the time from there to the next arrival can be compared.
The late rank has more of something than the median of its peers: compute, copies, garbage collection, or idleness of some
cause (``idle_spans``). If it has more communication it waited itself, for the last rank of a collective of another group, and the
blame goes on to that one. The first collective of a recording is compared from the start of its step on.

**When it misleads.** The moment before the first recorded collective is not a common one: ranks may have entered the step late.
Work that overlaps (compute under communication) counts once, as compute.
"""

from __future__ import annotations

import polars as pl

from tracekit.engine.activity import ACTIVITIES, activity
from tracekit.engine.intervals import within
from tracekit.engine.matching import SYNCHRONISING
from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table

CAUSES = (*ACTIVITIES, "unknown")

TABLE = Table(
    name="blame",
    doc="Of each collective that somebody came late to: the rank that is to blame, and what it did instead.",
    columns=(
        Column(name="match_id", dtype=pl.Int64, doc="The collective: see ``matched``."),
        Column(name="last_rank", dtype=pl.Int32, doc="The rank that came last."),
        Column(
            name="rank",
            dtype=pl.Int32,
            doc="The rank to blame: the last one, or whom that one had waited for in another group, and so on.",
        ),
        Column(
            name="cause",
            dtype=pl.Enum(CAUSES),
            doc="What it had more of than the median of its peers, since they were last together; ``unknown`` where that moment was not recorded.",
        ),
        Column(name="excess_ns", dtype=pl.Int64, unit="ns", doc="How much more."),
        Column(name="steps_back", dtype=pl.Int32, doc="How many ranks the blame was passed on by."),
    ),
)

_LEAST_SHARE = 0.002
"""Share of the step that the arrivals must be apart by before anybody asks why."""
_LONGEST_CHAIN = 16
_EXPLAINS = 0.25
"""Share of the lateness that the excess must make up to be its cause."""


def compute(run: RunTables) -> pl.LazyFrame:
    """Rows of `TABLE`, sorted by match."""
    matched = run["matched"].filter(pl.col("wait_ns").is_not_null(), pl.col("op").is_in(SYNCHRONISING)).collect()
    late = _late(matched, run)
    if late.is_empty():
        return TABLE.empty().lazy()
    spent = _spent(_since(matched.lazy(), late.lazy(), run["step_spans"]), run)
    return TABLE.conform(_passed_on(_causes(late, spent), matched).lazy()).sort("match_id")


def _late(matched: pl.DataFrame, run: RunTables) -> pl.DataFrame:
    """The matches that are worth a question: [match_id, communicator, last_rank, first_ns, last_ns, late_ns].

    ``late_ns`` is how much later than the median of the others the last rank came.
    """
    length = pl.col("end_ns") - pl.col("start_ns")
    step_ns = run["step_spans"].select(length.mean()).collect().item() or 0.0
    apart = pl.col("last_ns") - pl.col("first_ns")
    return (
        matched.group_by("match_id", maintain_order=True)
        .agg(
            pl.col("communicator", "last_rank", "last_ns").first(),
            first_ns=pl.col("start_ns").min(),
            late_ns=pl.col("wait_ns").filter(pl.col("rank") != pl.col("last_rank")).median(),
        )
        .filter(pl.col("last_rank").is_not_null(), apart > _LEAST_SHARE * step_ns)
    )


def _since(matched: pl.LazyFrame, late: pl.LazyFrame, steps: pl.LazyFrame) -> pl.LazyFrame:
    """From when on the members of each late match can be compared: [match_id, *TIMELINE, start_ns, end_ns].

    From the end of the last collective of the group that all had left before the first came; the first one of a step that
    has none before it, from the start of the step.
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    over = matched.group_by("match_id").agg(pl.col("communicator").first(), over_ns=end.max()).sort("over_ns")
    before = late.sort("first_ns").join_asof(
        over.select("communicator", "over_ns", before_id="match_id"),
        left_on="first_ns", right_on="over_ns", by="communicator", check_sortedness=False,
    )  # fmt: skip
    arrivals = matched.select("match_id", *TIMELINE, "step", end_ns="start_ns")
    left = matched.select(*TIMELINE, before_id="match_id", left_ns=end)
    return (
        before.select("match_id", "before_id")
        .join(arrivals, on="match_id")
        .join(left, on=["before_id", *TIMELINE], how="left")
        .join(steps.select(*TIMELINE, "step", step_ns="start_ns"), on=[*TIMELINE, "step"], how="left", nulls_equal=True)
        .with_columns(start_ns=pl.coalesce("left_ns", "step_ns"))
        .filter(pl.col("start_ns") <= pl.col("end_ns"))
        .select("match_id", *TIMELINE, "start_ns", "end_ns")
    )


def _spent(spans: pl.LazyFrame, run: RunTables) -> pl.LazyFrame:
    """*spans* with the time that each of `ACTIVITIES` takes in them."""
    masks = {name: pl.col("activity") == name for name in ACTIVITIES}
    return within(spans, activity(run), masks, TIMELINE)


def _causes(late: pl.DataFrame, spent: pl.LazyFrame) -> pl.DataFrame:
    """*late* with ``cause`` and ``excess_ns``, and from when on the late rank was compared (``since_ns``)."""
    long = spent.unpivot(
        ACTIVITIES, index=["match_id", "rank", "start_ns"], variable_name="cause", value_name="spent_ns"
    ).join(late.lazy().select("match_id", "last_rank"), on="match_id")
    own, spent_ns = pl.col("rank") == pl.col("last_rank"), pl.col("spent_ns")
    more = (
        long.group_by("match_id", "cause")
        .agg(
            excess_ns=spent_ns.filter(own).max() - spent_ns.filter(~own).median().round().cast(pl.Int64),
            since_ns=pl.col("start_ns").filter(own).max(),
        )
        .sort("excess_ns", "cause", descending=[True, False], nulls_last=True)
        .unique("match_id", keep="first", maintain_order=True)
    )
    return (
        late.lazy()
        .join(more, on="match_id", how="left", maintain_order="left")
        .with_columns(pl.when(pl.col("excess_ns") > _EXPLAINS * pl.col("late_ns")).then(pl.col("cause", "excess_ns")))
        .with_columns(pl.col("cause").fill_null("unknown"), pl.col("excess_ns").fill_null(0))
        .collect()
    )


def _passed_on(causes: pl.DataFrame, matched: pl.DataFrame) -> pl.DataFrame:
    """*causes* with the blame passed on, as far as ranks had waited for others: rows of `TABLE`.

    Ranks that waited for one another in a circle keep the blame.
    """
    via = _waited_in(causes, matched).join(causes.select(via_id="match_id"), on="via_id", how="semi")
    chain = causes.select("match_id", at_id="match_id", steps_back=pl.lit(0, pl.Int32), further=pl.lit(value=True))
    for _ in range(_LONGEST_CHAIN):
        if via.is_empty() or not chain["further"].any():
            break
        further = pl.col("via_id").is_not_null()
        chain = chain.join(via, left_on="at_id", right_on="match_id", how="left", maintain_order="left").select(
            "match_id",
            at_id=pl.coalesce("via_id", "at_id"),
            steps_back=pl.col("steps_back") + further.cast(pl.Int32),
            further=further,
        )
    circle = pl.col("further") & (pl.col("steps_back") == _LONGEST_CHAIN)
    ended = chain.with_columns(
        at_id=pl.when(circle).then("match_id").otherwise("at_id"),
        steps_back=pl.when(circle).then(0).otherwise("steps_back"),
    )
    roots = causes.select("cause", "excess_ns", at_id="match_id", rank="last_rank")
    return ended.join(causes.select("match_id", "last_rank"), on="match_id").join(roots, on="at_id")


def _waited_in(causes: pl.DataFrame, matched: pl.DataFrame) -> pl.DataFrame:
    """Of each match whose last rank had communicated more: in which other one it had waited longest [match_id, via_id]."""
    asked = causes.filter(pl.col("cause") == "communication").select(
        "match_id", "since_ns", "last_ns", "communicator", rank="last_rank"
    )
    waited = matched.filter(pl.col("wait_ns") > 0).select(
        "rank", "start_ns", "wait_ns", via_id="match_id", other="communicator"
    )
    inside = pl.col("start_ns").is_between("since_ns", "last_ns", closed="left") & (
        pl.col("other") != pl.col("communicator")
    )
    return (
        asked.join(waited, on="rank")
        .filter(inside)
        .sort("wait_ns", descending=True)
        .unique("match_id", keep="first", maintain_order=True)
        .select("match_id", "via_id")
    )


ANALYSIS = Analysis(table=TABLE, needs=("matched", "segments", "idle_spans", "step_spans"), compute=compute)
