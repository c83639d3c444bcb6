"""Which ranks do the others wait for, why, and what does it cost the job?

**Question.** Waiting is charged to whoever came last. Is it one rank, always, or another one each time? And what did it do instead?

**Method.** The exposed waiting of every rank (``waits``), charged to the rank to blame (``blame``): the last one, or the one that
it had waited for itself in another group. A rank's cost is what the rank that waits most for it waits in a step; its lower
cost, how much later it came than the last but one. The cause is what it had more of than its peers, weighted by the waiting.

A rank is *persistent* when, in seven of ten steps, it is the one that is waited for most, and its cost is so even from step to step
that chance is ruled out (a t-test over steps, one in forty). Where it changes from step to step, the waiting is jitter, and no
rank is to be named.

**When it misleads.** Ranks that were not recorded cannot be named: the last of those that were is. With few steps, chance looks like
a habit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tracekit.analyses.blame import CAUSES
from tracekit.analyses.waits import EXPOSED
from tracekit.engine.intervals import total, union, within
from tracekit.engine.stats import one_in_forty
from tracekit.engine.steps import in_complete_steps
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity, severity_of
from tracekit.model.quantity import count, ns, percent
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table

TABLE = Table(
    name="stragglers",
    doc="The ranks that others waited for, dearest first: what it costs the job per step, how often, and why.",
    columns=(
        Column(name="rank", dtype=pl.Int32, doc="The rank to blame."),
        Column(name="collectives", dtype=pl.Int64, doc="Matched collectives that it took part in."),
        Column(name="times_last", dtype=pl.Int64, doc="Those to which it came last."),
        Column(name="steps", dtype=pl.Int64, doc="Complete steps of the run; 1 for a window."),
        Column(name="steps_worst", dtype=pl.Int64, doc="Those in which it is the rank that is waited for most."),
        Column(
            name="least_ns",
            dtype=pl.Float64,
            unit="ns",
            doc="How much later than the last but one it came, per step: what the job would win at least.",
        ),
        Column(
            name="cost_ns",
            dtype=pl.Float64,
            unit="ns",
            doc="Exposed waiting for it, per step, of the rank that waits most: what the job would win at most.",
        ),
        Column(
            name="error_ns",
            dtype=pl.Float64,
            unit="ns",
            nullable=True,
            doc="Standard error of that mean over steps; null of a single one.",
        ),
        Column(name="waiting_rank", dtype=pl.Int32, doc="The rank that waits most for it."),
        Column(
            name="waiting_ns",
            dtype=pl.Float64,
            unit="ns",
            doc="Exposed waiting of that rank for anybody, per step.",
        ),
        Column(
            name="cause",
            dtype=pl.Enum(CAUSES),
            doc="What it had more of than its peers: compute, communication, memory (copies), gc (garbage collection), or idleness by its cause.",
        ),
        Column(
            name="cause_ratio", dtype=pl.Float64, unit="ratio", doc="Share of the waiting that this cause stands for."
        ),
        Column(
            name="excess_ns",
            dtype=pl.Float64,
            unit="ns",
            doc="How much more of it than its peers, the median of the collectives it was late to for that cause.",
        ),
    ),
)

_LEAST_SHARE = 0.03
_MOST_NAMED = 4
_PERSISTENT = 0.7
_FEWEST_STEPS = 2


def compute(run: RunTables) -> pl.LazyFrame:
    charged = _charged(run).collect().lazy()
    steps = run["step_spans"].group_by("rank").len().select(pl.col("len").median()).collect().item() or 1
    costs = _costs(charged, run, int(steps))
    least = (
        charged.filter(pl.col("rank") == pl.col("last_rank"), "in_step")
        .select(blamed="rank", start_ns="runner_up_ns", end_ns="last_ns")
        .unique()
    )
    least = total(least, ["blamed"]).select(rank="blamed", least_ns=pl.col("total_ns") / steps)
    counts = run["matched"].filter(pl.col("wait_ns").is_not_null()).group_by("rank").agg(
        collectives=pl.len(), times_last=(pl.col("last_rank") == pl.col("rank")).sum()
    )  # fmt: skip
    return TABLE.conform(
        costs.join(least, on="rank", how="left")
        .join(counts, on="rank", how="left")
        .join(_main_causes(charged), on="rank", how="left")
        .join(_worst(charged, run), on="rank", how="left")
        .with_columns(
            pl.col("steps_worst", "collectives", "times_last").fill_null(0),
            steps=pl.lit(int(steps)),
            least_ns=pl.min_horizontal(pl.col("least_ns").fill_null(0.0), "cost_ns"),
        )
    ).sort("cost_ns", "rank", descending=[True, False])


def _charged(run: RunTables) -> pl.LazyFrame:
    """Every wait for a rank that can be named, with that rank as ``blamed``."""
    waits = run["matched"].filter(pl.col("wait_ns").is_not_null(), pl.col("last_rank").is_not_null())
    blamed = run["blame"].select("match_id", "cause", "excess_ns", blamed="rank")
    return (
        in_complete_steps(waits, run["steps"])
        .join(blamed, on="match_id", how="left", maintain_order="left")
        .with_columns(
            blamed=pl.coalesce("blamed", "last_rank"),
            cause=pl.col("cause").fill_null("unknown"),
            excess_ns=pl.col("excess_ns").fill_null(0),
            end_ns=pl.col("start_ns") + pl.col("wait_ns"),
        )
    )


def _exposed(waits: pl.LazyFrame, run: RunTables, by: Sequence[str]) -> pl.LazyFrame:
    """The exposed part of the union of *waits* for each of *by*, in steps: [*by, exposed_ns]."""
    spans = union(waits.filter(pl.col("wait_ns") > 0), by)
    exposed = within(spans, run["segments"], {"exposed_ns": EXPOSED & pl.col("in_step")}, TIMELINE)
    return exposed.group_by(by).agg(pl.col("exposed_ns").sum())


def _costs(charged: pl.LazyFrame, run: RunTables, steps: int) -> pl.LazyFrame:
    """Per blamed rank the exposed waiting of the rank that waits most for it.

    [rank, cost_ns, error_ns, waiting_rank, waiting_ns]
    """
    here = charged.filter("in_step").with_columns(step=pl.col("step").fill_null(-1))
    by_step = (
        _exposed(here, run, [*TIMELINE, "step", "blamed"])
        .group_by("rank", "blamed", "step")
        .agg(pl.col("exposed_ns").sum())
    )
    cost, squares = pl.col("exposed_ns").sum() / steps, (pl.col("exposed_ns").cast(pl.Float64) ** 2).sum() / steps
    waited = _exposed(charged, run, TIMELINE).group_by("rank").agg(waiting_ns=pl.col("exposed_ns").sum() / steps)
    return (
        by_step.group_by("rank", "blamed")
        .agg(cost_ns=cost, variance=(squares - cost**2).clip(0))  # steps without a row count as 0
        .filter(pl.col("cost_ns") > 0)
        .with_columns(error_ns=(pl.col("variance") / (steps - 1)).sqrt() if steps > 1 else None)
        .sort("cost_ns", "rank", descending=[True, False])
        .unique("blamed", keep="first", maintain_order=True)
        .join(waited, on="rank", how="left", maintain_order="left")
        .select("cost_ns", "error_ns", "waiting_ns", rank="blamed", waiting_rank="rank")
    )


def _main_causes(charged: pl.LazyFrame) -> pl.LazyFrame:
    """Per blamed rank the cause that most of the waiting stands for [rank, cause, cause_ratio, excess_ns]."""
    per_cause = (
        charged.group_by("blamed", "cause").agg(waited=pl.col("wait_ns").sum(), excess_ns=pl.col("excess_ns").median())
    ).with_columns(cause_ratio=pl.col("waited") / pl.col("waited").sum().over("blamed"))
    return (
        per_cause.sort("waited", "cause", descending=[True, False])
        .unique("blamed", keep="first", maintain_order=True)
        .select("cause", "cause_ratio", "excess_ns", rank="blamed")
    )


def _worst(charged: pl.LazyFrame, run: RunTables) -> pl.LazyFrame:
    """In how many steps each rank is the one that is waited for most [rank, steps_worst]."""
    here = charged.filter("in_step").with_columns(step=pl.col("step").fill_null(-1))
    per_step = _exposed(here, run, [*TIMELINE, "step", "blamed"]).group_by("step", "blamed").agg(
        pl.col("exposed_ns").sum()
    )  # fmt: skip
    return (
        per_step.filter(pl.col("exposed_ns") > 0)
        .sort("exposed_ns", "blamed", descending=[True, False])
        .unique("step", keep="first", maintain_order=True)
        .group_by("blamed")
        .agg(steps_worst=pl.len())
        .rename({"blamed": "rank"})
    )


_WHY = {
    "compute": (
        "it computes {more} longer than its peers since they were last together",
        "Compare its kernels with a peer's: more work (uneven batches, experts, stages) or the same work slower (clocks, a shared machine)?",
    ),
    "communication": (
        "it spends {more} more in communication of its own than its peers",
        "See what it sends that the others do not: `communication` by rank and group",
    ),
    "memory": (
        "it copies {more} longer than its peers",
        "See what it copies that the others do not: offloading, logging, checkpoints, a larger batch",
    ),
    "gc": (
        "Python's garbage collector holds it for {more} more than its peers",
        "Collect at chosen steps on all ranks together: gc.disable() and gc.collect() every k steps (torchtitan: gc_freq; Megatron: --manual-gc)",
    ),
    "sync": (
        "its host waits for its device {more} longer than its peers'",
        "Find what only this rank logs, prints or saves: .item(), loss logging, norms",
    ),
    "data": (
        "it waits {more} longer for its batch than its peers",
        "More loader workers and prefetching on that rank's host; even shards; a local copy of the data",
    ),
    "allocation": (
        "it allocates memory for {more} longer than its peers",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; even shapes across ranks",
    ),
    "host_bound": (
        "its device waits {more} longer for launches than its peers'",
        "Its host is slower or does more: CPU binding (numactl, --numa-binding), other processes, Python work that only this rank does",
    ),
    "dependency": (
        "its device waits {more} longer for another of its streams than its peers'",
        "Look at its other streams and at the ranks that it receives from",
    ),
    "other": (
        "it does nothing that was recorded for {more} longer than its peers",
        "Record with_stack=True to see what its Python does; logging, checkpoints, evaluation on this rank alone",
    ),
    "unknown": (
        "the recording does not reach back to when it and its peers were last together",
        "Record more steps",
    ),
}


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """A finding for each rank that is persistently waited for; where none is and much is waited, one for jitter."""
    least_ns = _LEAST_SHARE * context.step_ns
    rows = [row for row in table.to_dicts() if row["cost_ns"] > least_ns]
    found = [_straggler(row, context) for row in rows if _is_persistent(row, least_ns)]
    if not found and rows and rows[0]["waiting_ns"] > least_ns:
        return [_jitter(table, context)]
    return found


def _is_persistent(row: dict[str, Any], least_ns: float) -> bool:
    if row["steps"] < _FEWEST_STEPS or row["steps_worst"] < _PERSISTENT * row["steps"]:
        return False
    return bool(row["cost_ns"] - least_ns > one_in_forty(row["steps"] - 1) * row["error_ns"])


def _straggler(row: dict[str, Any], context: Context) -> Finding:
    told, remedy = _WHY[row["cause"]]
    share = row["cost_ns"] / context.step_ns
    return Finding(
        code="TK-STRAGGLER",
        title=f"Rank {row['rank']} keeps the others waiting: {percent(share)} of the step ({ns(row['cost_ns'])}) on rank {row['waiting_rank']}",
        cause=f"In {row['steps_worst']} of {row['steps']} steps it is the one they wait for; {told.format(more=ns(row['excess_ns']))}.",
        remedy=remedy,
        severity=severity_of(share),
        confidence=Confidence.HIGH if row["cause"] not in {"other", "unknown"} else Confidence.MEDIUM,
        cost_ns=(round(row["least_ns"]), round(row["cost_ns"])),
        share_ratio=share,
        ranks=(row["rank"],),
        evidence=(
            Quantity(label="collectives to which it came last", value=row["times_last"], unit="count"),
            Quantity(label="of matched collectives", value=row["collectives"], unit="count"),
            Quantity(label=f"more {row['cause']} than its peers", value=row["excess_ns"], unit="ns"),
            Quantity(label="share of the waiting with that cause", value=row["cause_ratio"], unit="ratio"),
        ),
    )


def _jitter(table: pl.DataFrame, context: Context) -> Finding:
    """Waiting that no rank is to blame for alone."""
    dearest = table.row(0, named=True)
    share = dearest["waiting_ns"] / context.step_ns
    last = table.sort("times_last", "rank", descending=[True, False]).head(_MOST_NAMED)
    times = ", ".join(f"rank {rank} {count(last)} times" for rank, last in last.select("rank", "times_last").rows())
    each = "step" if context.steps else "window"
    return Finding(
        code="TK-JITTER",
        title=f"Ranks wait for one another: {percent(share)} of the {each} ({ns(dearest['waiting_ns'])}) on rank {dearest['waiting_rank']}",
        cause=f"No rank is to blame alone. Last to come: {times}; when it is late, "
        f"rank {dearest['rank']} has more {_NOUNS[dearest['cause']]} than its peers.",
        remedy="Take out what hits ranks at random: garbage collection (gc.disable, collect every k steps), logging, "
        "other processes; bind CPUs; balance batches by work",
        severity=severity_of(share),
        confidence=Confidence.MEDIUM,
        cost_ns=(0, round(dearest["waiting_ns"])),
        share_ratio=share,
        evidence=(
            Quantity(label="ranks that come last", value=table.height, unit="count"),
            Quantity(label=f"waiting for rank {dearest['rank']}", value=dearest["cost_ns"], unit="ns"),
        ),
    )


_NOUNS = {
    "compute": "compute",
    "communication": "communication of its own",
    "memory": "copies",
    "gc": "garbage collection",
    "sync": "synchronisation",
    "data": "waiting for data",
    "allocation": "allocation",
    "host_bound": "idleness that its host causes",
    "dependency": "waiting for its other streams",
    "other": "idleness that nothing explains",
    "unknown": "to do, which the recording does not show,",
}

ANALYSIS = Analysis(
    table=TABLE,
    needs=("matched", "blame", "segments", "step_spans"),
    compute=compute,
    find=find,
    codes=("TK-STRAGGLER", "TK-JITTER"),
)
