"""Which kernels take the time?

**Question.** Device events by name: how many, how long, how much of all.

**Method.** Sums and quantiles of durations by timeline, name and class.

**When it misleads.** ``total_ns`` sums durations, so where streams overlap the totals exceed wall time; ``breakdown`` has
the wall's parts. Communication kernels include waiting. One name may stand for many shapes: look at minimum and maximum.
Figures per step are of what the complete steps launched, whenever it ran.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from tracekit.engine.host import named
from tracekit.engine.stats import burden
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity
from tracekit.model.quantity import count, percent
from tracekit.model.run import RunTables
from tracekit.model.short_names import short_name, shorten
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
        *(
            Column(name=f"step_{name}", dtype=pl.Int64, unit=unit, doc=f"{name}, of what complete steps launched.")
            for name, unit in (("count", ""), ("total_ns", "ns"), ("tiny", ""), ("tiny_ns", "ns"))
        ),
    ),
)

_TINY_NS = 10_000
_NAME_WIDTH = 80
_KEY = (*TIMELINE, "name", "class")


def compute(run: RunTables) -> pl.LazyFrame:
    dur, in_step, is_tiny = pl.col("dur_ns"), pl.col("in_step"), pl.col("dur_ns") < _TINY_NS
    sums = (
        run["device"]
        .group_by(_KEY)
        .agg(
            count=pl.max_horizontal(pl.col("calls").sum(), 1),
            total_ns=dur.sum(),
            min_ns=dur.min(),
            max_ns=dur.max(),
            tiny=is_tiny.sum(),
            tiny_ns=dur.filter(is_tiny).sum(),
            step_count=pl.col("calls").filter(in_step).sum(),
            step_total_ns=dur.filter(in_step).sum(),
            step_tiny=(in_step & is_tiny).sum(),
            step_tiny_ns=dur.filter(in_step & is_tiny).sum(),
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
    remedy: Callable[[Sequence[str]], str]
    """What to do, on devices of these names."""
    gain: tuple[float, float]
    """[lower, upper] part of the kernels' time that the remedy saves."""


_WITHOUT_BF16 = re.compile(r"\b[KPV]100\b|\bT4\b|TITAN|GTX|RTX 20[0-9]{2}|Quadro RTX|\bMI(25|50|60)\b")
_AMD = re.compile(r"AMD|MI[0-9]+")


def _faster_than_fp32(devices: Sequence[str]) -> str:
    """The setting that makes fp32 products faster on *devices*."""
    if any(_WITHOUT_BF16.search(device) for device in devices):
        return 'torch.autocast("cuda", dtype=torch.float16) with torch.amp.GradScaler; this device multiplies neither bf16 nor tf32 fast'
    bf16 = 'torch.autocast("cuda", dtype=torch.bfloat16)'
    if any(_AMD.search(device) for device in devices):
        return bf16
    return f'{bf16}; torch.set_float32_matmul_precision("high") for what must stay fp32'


def _always(remedy: str) -> Callable[[Sequence[str]], str]:
    return lambda _devices: remedy


_RULES = (
    _Rule(
        code="TK-GEMM-FP32",
        classes=("gemm", "convolution"),
        pattern=r"(?i)\b\w*sgemm|scudnn|_f32f32_f32f32_f32|Cijk_\w+?_SB_",
        of=("gemm", "convolution"),
        at_least=0.05,
        title="Matrix products in fp32 take {share} of all matrix product time",
        remedy=_faster_than_fp32,
        gain=(0.0, 0.75),
    ),
    _Rule(
        code="TK-GEMM-TF32",
        classes=("gemm", "convolution"),
        pattern=r"(?i)tf32|(?:^|[^_]|[^6]_)s1688gemm",  # but fp16_s1688gemm is half precision
        of=("gemm", "convolution"),
        at_least=0.05,
        title="Matrix products in tf32 take {share} of all matrix product time",
        remedy=_always('torch.autocast("cuda", dtype=torch.bfloat16); tf32 is on already'),
        gain=(0.0, 0.5),
    ),
    _Rule(
        code="TK-ATTN-UNFUSED",
        classes=("attention", "softmax"),
        pattern=r"(?i)softmax",
        of=("attention", "attention_flash", "softmax", "gemm"),
        at_least=0.10,
        title="Attention materialises its scores: softmax kernels take {share} of attention and matrix product time",
        remedy=_always(
            "torch.nn.functional.scaled_dot_product_attention with the flash backend, FlexAttention for masks; drop materialised masks"
        ),
        gain=(0.0, 0.9),
    ),
)


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    found = [_tiny(table, context), *(_by_name(rule, table, context) for rule in _RULES)]
    return [finding for finding in found if finding is not None]


def _tiny(table: pl.DataFrame, context: Context) -> Finding | None:
    """Kernels of under 10 µs: more than 30 % of all and more than 15 % of their time, on the rank with most."""
    kernels = table.filter(~pl.col("class").is_in(["communication", "memcpy", "memset", ""]))
    totals = kernels.group_by("rank").agg(pl.col("step_count", "step_tiny", "step_total_ns", "step_tiny_ns").sum())
    many = totals.filter(
        pl.col("step_tiny") > 0.30 * pl.col("step_count"), pl.col("step_tiny_ns") > 0.15 * pl.col("step_total_ns")
    )
    load = burden(many.select("rank", lower_ns=0, upper_ns=pl.col("step_tiny_ns") // 2), context, at_least=0.01)
    if load is None:
        return None
    worst = many.filter(rank=load.rank).row(0, named=True)
    tiny = context.per_step(load.rank, worst["step_tiny"])
    return load.finding(
        code="TK-KERNEL-TINY",
        title=f"{percent(worst['step_tiny'] / worst['step_count'])} of the kernels are shorter than 10 µs: "
        f"{count(tiny)} {load.each}",
        cause="Elementwise work in many small kernels reads and writes memory once for each.",
        remedy="torch.compile, fused operators (normalisation, activation, rotary embedding, cross-entropy), a fused optimizer",
        confidence=Confidence.MEDIUM,
        evidence=(
            Quantity(label=f"kernels under 10 µs per {load.unit}", value=tiny, unit="count"),
            Quantity(
                label=f"their time per {load.unit}", value=context.per_step(load.rank, worst["step_tiny_ns"]), unit="ns"
            ),
            Quantity(
                label="their share of kernel time", value=worst["step_tiny_ns"] / worst["step_total_ns"], unit="ratio"
            ),
        ),
    )


def _by_name(rule: _Rule, table: pl.DataFrame, context: Context) -> Finding | None:
    among = table.filter(pl.col("class").is_in(rule.classes)).lazy()
    picked = named(among, pl.col("name").str.contains(rule.pattern)).collect()
    whole = table.filter(pl.col("class").is_in(rule.of)).group_by("rank").agg(whole_ns=pl.col("step_total_ns").sum())
    mine = picked.group_by("rank").agg(pl.col("step_total_ns", "step_count").sum()).join(whole, on="rank")
    mine = mine.filter(pl.col("step_total_ns") > rule.at_least * pl.col("whole_ns"))
    lower, upper = ((pl.col("step_total_ns") * part).cast(pl.Int64) for part in rule.gain)
    load = burden(mine.select("rank", lower_ns=lower, upper_ns=upper), context, at_least=0.01)
    if load is None:
        return None
    worst = mine.filter(rank=load.rank).row(0, named=True)
    dearest = picked.filter(rank=load.rank).sort("step_total_ns", descending=True).row(0, named=True)
    share = worst["step_total_ns"] / worst["whole_ns"]
    per = {name: context.per_step(load.rank, worst[name]) for name in ("step_total_ns", "step_count")}
    calls = context.per_step(load.rank, dearest["step_count"])
    return load.finding(
        code=rule.code,
        title=rule.title.format(share=percent(share)),
        cause=f"{shorten(short_name(dearest['name']), _NAME_WIDTH)} has most of it, {count(calls)} {load.each}.",
        remedy=rule.remedy(context.devices),
        confidence=Confidence.MEDIUM,
        evidence=(
            Quantity(label=f"time per {load.unit}", value=per["step_total_ns"], unit="ns"),
            Quantity(label="share", value=share, unit="ratio"),
            Quantity(label=f"kernels per {load.unit}", value=per["step_count"], unit="count"),
        ),
    )


ANALYSIS = Analysis(
    table=TABLE,
    needs=("device",),
    compute=compute,
    find=find,
    codes=("TK-KERNEL-TINY", *(rule.code for rule in _RULES)),
)
