"""Which kernels take the time?

**Question.** Device events by name: how many, how long, how much of all.

**Method.** Sums and quantiles of durations by timeline, name and class.

**When it misleads.** ``total_ns`` sums durations, so where streams overlap the totals exceed wall time; ``breakdown`` has
the wall's parts. Communication kernels include waiting. One name may stand for many shapes: look at minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tracekit.engine.host import named
from tracekit.engine.stats import burden
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity, severity_of
from tracekit.model.quantity import count, percent
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns
from tracekit.model.tables import Class, Name

TABLE = Table(
    name="kernels",
    doc="Device events by name. Totals are sums of durations.",
    columns=(
        *timeline_columns(),
        Column(name="name", dtype=Name, doc="Name as recorded."),
        Column(name="class", dtype=Class, doc="Class."),
        Column(
            name="count", dtype=pl.Int64, doc="Number of events; on runs without an accelerator, of operator calls."
        ),
        Column(name="total_ns", dtype=pl.Int64, unit="ns", doc="Sum of their durations."),
        Column(name="mean_ns", dtype=pl.Float64, unit="ns", doc="Mean duration."),
        Column(name="min_ns", dtype=pl.Int64, unit="ns", doc="Shortest."),
        Column(name="max_ns", dtype=pl.Int64, unit="ns", doc="Longest."),
        Column(name="tiny", dtype=pl.Int64, doc="How many are shorter than 10 µs."),
        Column(name="tiny_ns", dtype=pl.Int64, unit="ns", doc="Sum of the durations of those."),
        Column(
            name="share_ratio",
            dtype=pl.Float64,
            unit="ratio",
            doc="Total over the total of all device events of the timeline.",
        ),
    ),
)

_TINY_NS = 10_000
_KEY = (*TIMELINE, "name", "class")


def compute(run: RunTables) -> pl.LazyFrame:
    dur = pl.col("dur_ns")
    sums = (
        run["device"]
        .group_by(_KEY)
        .agg(
            count=pl.max_horizontal(pl.col("calls").sum(), 1),
            total_ns=dur.sum(),
            min_ns=dur.min(),
            max_ns=dur.max(),
            tiny=(dur < _TINY_NS).sum(),
            tiny_ns=dur.filter(dur < _TINY_NS).sum(),
        )
    )
    whole = pl.col("total_ns").sum().over(TIMELINE)
    shares = sums.with_columns(
        mean_ns=pl.col("total_ns") / pl.col("count"),
        share_ratio=pl.when(whole > 0).then(pl.col("total_ns") / whole).otherwise(0.0),
    )
    return TABLE.conform(shares).sort(
        *TIMELINE, "total_ns", pl.col("name").cast(pl.String), descending=[False, False, True, False]
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """Kernels that a pattern of names picks out of a class, and what is said when they take enough of the step."""

    code: str
    classes: tuple[str, ...]
    pattern: str
    of: tuple[str, ...]
    """Classes whose time the kernels' time is compared with."""
    at_least: float
    title: str
    remedy: str
    gain: tuple[float, float]
    """[lower, upper] part of the kernels' time that the remedy saves."""


_RULES = (
    _Rule(
        code="TK-GEMM-FP32",
        classes=("gemm", "convolution"),
        pattern=r"(?i)\b\w*sgemm|_f32f32_f32f32_f32|s1688gemm|_tf32|Cijk_\w+?_SB_",
        of=("gemm", "convolution"),
        at_least=0.05,
        title="Matrix products in fp32 or tf32 take {share} of all matrix product time",
        remedy='torch.autocast("cuda", dtype=torch.bfloat16); torch.set_float32_matmul_precision("high") for what must stay fp32',
        gain=(0.0, 0.75),
    ),
    _Rule(
        code="TK-ATTN-UNFUSED",
        classes=("attention", "softmax"),
        pattern=r"(?i)softmax",
        of=("attention", "attention_flash", "softmax", "gemm"),
        at_least=0.10,
        title="Attention materialises its scores: softmax kernels take {share} of attention and matrix product time",
        remedy="torch.nn.functional.scaled_dot_product_attention with the flash backend, FlexAttention for masks; drop materialised masks",
        gain=(0.0, 0.9),
    ),
)


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    on_device = table.filter(pl.col("count") > 0)
    found = [_tiny(on_device, context), *(_by_name(rule, on_device, context) for rule in _RULES)]
    return [finding for finding in found if finding is not None]


def _tiny(table: pl.DataFrame, context: Context) -> Finding | None:
    """Kernels of under 10 µs: more than 30 % of all and more than 15 % of their time, on the rank with most."""
    kernels = table.filter(~pl.col("class").is_in(["communication", "memcpy", "memset", ""]))
    totals = kernels.group_by("rank").agg(pl.col("count", "tiny", "total_ns", "tiny_ns").sum())
    many = totals.filter(pl.col("tiny") > 0.30 * pl.col("count"), pl.col("tiny_ns") > 0.15 * pl.col("total_ns"))
    load = burden(many.select("rank", lower_ns=0, upper_ns=pl.col("tiny_ns") // 2), context, at_least=0.01)
    if load is None:
        return None
    worst = many.filter(pl.col("rank") == load.rank).row(0, named=True)
    return Finding(
        code="TK-KERNEL-TINY",
        title=f"{percent(worst['tiny'] / worst['count'])} of the kernels are shorter than 10 µs: "
        f"{count(worst['tiny'] / context.units)} a step on rank {load.rank}",
        cause="Elementwise work in many small kernels reads and writes memory once for each.",
        remedy="torch.compile, fused operators (normalisation, activation, rotary embedding, cross-entropy), a fused optimizer",
        severity=severity_of(load.cost_ns[1], context.step_ns),
        confidence=Confidence.MEDIUM,
        cost_ns=(0, load.cost_ns[1]),
        ranks=load.ranks,
        evidence=(
            Quantity(label="kernels under 10 µs per step", value=worst["tiny"] / context.units, unit="count"),
            Quantity(label="their time per step", value=worst["tiny_ns"] / context.units, unit="ns"),
            Quantity(label="their share of kernel time", value=worst["tiny_ns"] / worst["total_ns"], unit="ratio"),
        ),
    )


def _by_name(rule: _Rule, table: pl.DataFrame, context: Context) -> Finding | None:
    among = table.filter(pl.col("class").is_in(rule.classes)).lazy()
    picked = named(among, pl.col("name").str.contains(rule.pattern)).collect()
    whole = table.filter(pl.col("class").is_in(rule.of)).group_by("rank").agg(whole_ns=pl.col("total_ns").sum())
    mine = picked.group_by("rank").agg(pl.col("total_ns").sum(), pl.col("count").sum()).join(whole, on="rank")
    mine = mine.filter(pl.col("total_ns") > rule.at_least * pl.col("whole_ns"))
    lower, upper = ((pl.col("total_ns") * part).cast(pl.Int64) for part in rule.gain)
    load = burden(mine.select("rank", lower_ns=lower, upper_ns=upper), context, at_least=0.01)
    if load is None:
        return None
    worst = mine.filter(pl.col("rank") == load.rank).row(0, named=True)
    dearest = picked.filter(pl.col("rank") == load.rank).sort("total_ns", descending=True).row(0, named=True)
    share = worst["total_ns"] / worst["whole_ns"]
    return Finding(
        code=rule.code,
        title=rule.title.format(share=percent(share)),
        cause=f"{dearest['name'][:80]} has most of it, {count(dearest['count'] / context.units)} a step.",
        remedy=rule.remedy,
        severity=severity_of(load.cost_ns[1], context.step_ns),
        confidence=Confidence.MEDIUM,
        cost_ns=load.cost_ns,
        ranks=load.ranks,
        evidence=(
            Quantity(label="time per step", value=worst["total_ns"] / context.units, unit="ns"),
            Quantity(label="share", value=share, unit="ratio"),
            Quantity(label="kernels per step", value=worst["count"] / context.units, unit="count"),
        ),
    )


ANALYSIS = Analysis(
    table=TABLE,
    needs=("device",),
    compute=compute,
    find=find,
    codes=("TK-KERNEL-TINY", *(rule.code for rule in _RULES)),
)
