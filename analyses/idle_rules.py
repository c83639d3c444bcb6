"""When idle time of a cause is a finding, and what is said of it: the findings of ``idle_spans``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from tracekit.engine.stats import burden, counted
from tracekit.model.analysis import Context
from tracekit.model.finding import Confidence, Finding, Quantity, Severity
from tracekit.model.quantity import ns, percent
from tracekit.model.short_names import short_name, shorten

_LENGTH = pl.col("step_ns")
_NAME_WIDTH = 60


def _dearest(spans: pl.DataFrame) -> str:
    """The call and operator that the largest part of *spans* goes to, in a sentence."""
    calls = spans.group_by("call", "operator").agg(idle_ns=_LENGTH.sum(), gaps=pl.struct("window", "gap").n_unique())
    ranked = calls.with_columns(pl.col("call", "operator").cast(pl.String)).sort(
        "idle_ns", "call", descending=[True, False]
    )
    call, operator, idle_ns, gaps = ranked.row(0)
    share = percent(idle_ns / calls["idle_ns"].sum())
    where = f"{call} in {operator}" if operator else call or "after the last launch"
    return f"Largest part: {where}, {share} in {counted(gaps, 'gap', 'gaps')}."


def _longest(spans: pl.DataFrame) -> str:
    """The longest of *spans* and what ended it, in a sentence."""
    span = spans.sort("step_ns", "start_ns", descending=[True, False]).row(0, named=True)
    before = f" before {shorten(short_name(span['kernel']), _NAME_WIDTH)}" if span["kernel"] else " at the end"
    queued = "work was in the queue by then" if span["cause"] == "dependency" else "nothing tells what the host did"
    return f"Longest: {ns(span['step_ns'])}{before}; {queued}."


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """When idle time of some causes is a finding, and what is said of it."""

    code: str
    causes: tuple[str, ...]
    at_least: float
    """Share of the step from which on it is one."""
    high_from: float | None = None
    """Share of the step from which on it is severe; None where the usual limits hold."""
    lower: pl.Expr
    """What of a span is won at least, when the cause goes."""
    title: str
    tell: Callable[[pl.DataFrame], str] = _dearest
    """The sentence about the spans of the rank that bears most."""
    remedy: str
    confidence: Confidence


_WHILE_BLOCKED = pl.when("returned").then(0).otherwise(_LENGTH)
_GRAPH_NODE_NS = 2_000  # what a replayed graph still pauses between two kernels

_RULES = (
    _Rule(
        code="TK-HOST-BOUND",
        causes=("host_bound",),
        at_least=0.10,
        lower=(_LENGTH - _GRAPH_NODE_NS).clip(0),
        title="The device waits for the host to launch work",
        remedy='torch.compile(mode="reduce-overhead") or CUDA graphs (Megatron: --cuda-graph-impl); a larger micro-batch; fused operators and optimizer',
        confidence=Confidence.MEDIUM,
    ),
    _Rule(
        code="TK-SYNC",
        causes=("sync",),
        at_least=0.01,
        lower=_WHILE_BLOCKED,
        title="The host waits for the device and leaves it dry",
        remedy='Log every k-th step, no .item() or boolean indexing in the step; torch.cuda.set_sync_debug_mode("warn") names the lines',
        confidence=Confidence.HIGH,
    ),
    _Rule(
        code="TK-DATA-STALL",
        causes=("data",),
        at_least=0.05,
        high_from=0.20,
        lower=_LENGTH,
        title="The device waits for the next batch",
        remedy="DataLoader(num_workers=4 or more, persistent_workers=True, pin_memory=True, prefetch_factor=4), copies with non_blocking=True",
        confidence=Confidence.HIGH,
    ),
    _Rule(
        code="TK-ALLOC",
        causes=("allocation",),
        at_least=0.01,
        lower=_WHILE_BLOCKED,
        title="The device waits while the host allocates or frees device memory",
        remedy="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (not with NCCL user buffers); static shapes; a smaller batch if memory is full",
        confidence=Confidence.HIGH,
    ),
    _Rule(
        code="TK-IDLE-UNEXPLAINED",
        causes=("dependency", "other"),
        at_least=0.25,
        lower=pl.lit(0, pl.Int64),
        title="Nothing runs, and the trace does not say why",
        tell=_longest,
        remedy="Record with with_stack=True to see what Python does in the gaps; look at what the other streams and ranks do at that time",
        confidence=Confidence.LOW,
    ),
)

CODES = tuple(rule.code for rule in _RULES)


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """A finding for each cause that takes enough of the step; costs are of the rank that bears most."""
    found = (_find(rule, table.filter(pl.col("cause").is_in(rule.causes)), context) for rule in _RULES)
    return [finding for finding in found if finding is not None]


def _find(rule: _Rule, spans: pl.DataFrame, context: Context) -> Finding | None:
    load = burden(spans.select("rank", lower_ns=rule.lower, upper_ns=_LENGTH), context, at_least=rule.at_least)
    if load is None:
        return None
    lower, upper = load.cost_ns
    if "data" in rule.causes:  # fetching beside the step hides as much as the step is long without it
        lower = min(lower, max(round(upper / load.ratio) - upper, 0))
    severity = None
    if rule.high_from is not None:
        severity = Severity.HIGH if load.ratio >= rule.high_from else Severity.MEDIUM
    here = spans.filter(pl.col("step_ns") > 0, rank=load.rank)
    gaps = context.per_step(load.rank, here.select("window", "gap").n_unique())
    return load.finding(
        code=rule.code,
        title=f"{rule.title}: {load}",
        cause=rule.tell(here),
        remedy=rule.remedy,
        severity=severity,
        confidence=rule.confidence,
        cost_ns=(lower, upper),
        evidence=(
            *load.evidence("idle time"),
            Quantity(label=f"gaps per {load.unit}", value=gaps, unit="count"),
            Quantity(label="longest span", value=here.select(_LENGTH.max()).item(), unit="ns"),
        ),
    )
