"""Which ranks a cost falls on, how much of the step it takes there, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tracekit.model.analysis import Context
from tracekit.model.finding import Quantity
from tracekit.model.quantity import count, ns, percent


@dataclass(frozen=True, kw_only=True, slots=True)
class Burden:
    """A cost per step on the rank that bears the most of it."""

    rank: int
    cost_ns: tuple[int, int]
    """[lower, upper] cost per step on that rank."""
    ratio: float
    """Upper cost over the step."""
    median_ratio: float
    """Upper cost over the step on the median rank; ranks without a row count as 0."""
    ranks: tuple[int, ...]
    """Ranks that reach the share asked for; empty when all do."""
    alone: bool
    """Whether only one rank was analysed."""

    def __str__(self) -> str:
        """The share of the step and the time, and which rank that is: ``12.5 % of the step (1.25 ms)``."""
        text = f"{percent(self.ratio)} of the step ({ns(self.cost_ns[1])})"
        return text if self.alone else f"{text} on rank {self.rank}, {percent(self.median_ratio)} on the median rank"

    def evidence(self, label: str) -> tuple[Quantity, ...]:
        """The burden as measured numbers; *label* says what takes the time."""
        return (
            Quantity(label=label, value=self.cost_ns[1], unit="ns"),
            Quantity(label="share of the step", value=self.ratio, unit="ratio"),
            Quantity(label="share of the step on the median rank", value=self.median_ratio, unit="ratio"),
        )


def burden(totals: pl.DataFrame, context: Context, *, at_least: float) -> Burden | None:
    """The heaviest burden of *totals* [rank, lower_ns, upper_ns], or None when it is *at_least* that share of the step on no rank.

    *totals* are sums over everything recorded of a rank, several rows of one rank are added; costs are per step.
    """
    if context.step_ns <= 0:
        return None
    unit = context.units
    costs = (
        totals.group_by("rank")
        .agg((pl.col("lower_ns", "upper_ns").sum() / unit).cast(pl.Int64))
        .with_columns(ratio=pl.col("upper_ns") / context.step_ns)
        .sort("upper_ns", "rank", descending=[True, False])
    )
    over = costs.filter(pl.col("ratio") >= at_least)
    if over.is_empty():
        return None
    rank, lower, upper, ratio = over.row(0)
    known = max(len(context.ranks), len(costs))
    ratios = pl.Series([*costs["ratio"], *[0.0] * (known - len(costs))], dtype=pl.Float64)
    return Burden(
        rank=rank,
        cost_ns=(lower, upper),
        ratio=ratio,
        median_ratio=float(ratios.quantile(0.5, "lower") or 0.0),
        ranks=() if len(over) == known else tuple(sorted(over["rank"])),
        alone=known == 1,
    )


def counted(number: int, one: str, many: str) -> str:
    """A number of things in words: ``1 gap``, ``1,614 gaps``."""
    return f"{count(number)} {one if number == 1 else many}"
