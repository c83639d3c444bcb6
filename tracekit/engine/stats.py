"""Which ranks a cost falls on, how much of the step it takes there, and the finding that says so."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tracekit.model.analysis import Context
from tracekit.model.finding import Confidence, Finding, Quantity, Severity, severity_of
from tracekit.model.quantity import count, ns, percent


@dataclass(frozen=True, kw_only=True, slots=True)
class Burden:
    """A cost per step on the rank that bears the most of it."""

    rank: int
    cost_ns: tuple[int, int]
    """[lower, upper] cost per step on that rank."""
    ratio: float
    """Upper cost over the step of that rank."""
    median_ratio: float
    """The same on the median rank; ranks without a row count as 0."""
    ranks: tuple[int, ...]
    """Ranks that reach the share asked for; empty when all do."""
    others: str
    """What the rank is compared with; empty when it is alone."""
    unit: str
    """What the cost is a share of: ``step``, or ``window`` when the run has no steps."""

    def __str__(self) -> str:
        """The share of the step and the time, and which rank that is: ``12.5 % of the step (1.25 ms)``."""
        text = f"{percent(self.ratio)} of the {self.unit} ({ns(self.cost_ns[1])})"
        if not self.others:
            return text
        return f"{text} on rank {self.rank}, {percent(self.median_ratio)} on {self.others}"

    @property
    def each(self) -> str:
        """What a number is counted in: ``a step``, or ``in the window`` when the run has no steps; and on which rank."""
        each = "a step" if self.unit == "step" else "in the window"
        return f"{each} on rank {self.rank}" if self.others else each

    def evidence(self, label: str) -> tuple[Quantity, ...]:
        """The burden as measured numbers; *label* says what takes the time."""
        per = f"share of the {self.unit}"
        shares = [Quantity(label=per, value=self.ratio, unit="ratio")]
        if self.others:
            shares.append(Quantity(label=f"{per} on {self.others}", value=self.median_ratio, unit="ratio"))
        return (Quantity(label=f"{label} per {self.unit}", value=self.cost_ns[1], unit="ns"), *shares)

    def finding(  # noqa: PLR0913  what a finding says besides its cost
        self,
        *,
        code: str,
        title: str,
        cause: str,
        remedy: str,
        confidence: Confidence,
        evidence: tuple[Quantity, ...],
        cost_ns: tuple[int, int] | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """The finding of this burden, as severe as its share of the step; *cost_ns* and *severity* replace its own."""
        return Finding(
            code=code,
            title=title,
            cause=cause,
            remedy=remedy,
            severity=severity or severity_of(self.ratio),
            confidence=confidence,
            cost_ns=cost_ns or self.cost_ns,
            share_ratio=self.ratio,
            ranks=self.ranks,
            evidence=evidence,
        )


def burden(totals: pl.DataFrame, context: Context, *, at_least: float) -> Burden | None:
    """The heaviest burden of *totals* [rank, lower_ns, upper_ns], or None when it is *at_least* that share of the step on no rank.

    *totals* are sums over the complete steps of a rank (over everything, where it has none); several rows of one rank are
    added. Costs are per step, shares are of the rank's own step.
    """
    costs = (
        totals.group_by("rank")
        .agg(pl.col("lower_ns", "upper_ns").sum())
        .join(context.per_rank.filter(pl.col("step_ns") > 0), on="rank")
        .with_columns(pl.col("lower_ns", "upper_ns") / pl.col("spans"))
        .with_columns(ratio=pl.col("upper_ns") / pl.col("step_ns"))
        .sort("ratio", "rank", descending=[True, False])
    )
    over = costs.filter(pl.col("ratio") >= at_least)
    if over.is_empty():
        return None
    worst = over.row(0, named=True)
    known = max(len(context.ranks), len(costs))
    ratios = sorted([*costs["ratio"], *[0.0] * (known - len(costs))])
    return Burden(
        rank=worst["rank"],
        cost_ns=(round(worst["lower_ns"]), round(worst["upper_ns"])),
        ratio=worst["ratio"],
        median_ratio=ratios[(known - 1) // 2],
        ranks=() if len(over) == known else tuple(sorted(over["rank"])),
        others=context.others if known > 1 else "",
        unit="step" if context.steps else "window",
    )


def counted(number: float, one: str, many: str) -> str:
    """A number of things in words: ``1 gap``, ``1,614 gaps``."""
    return f"{count(number)} {one if number == 1 else many}"


_T_975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)


def one_in_forty(degrees: int) -> float:
    """How many standard errors a mean exceeds its true value by chance once in forty times: Student's t, one-sided.

    *degrees* of freedom: values minus one, at least one. Beyond ten by an expansion, exact to two digits.
    """
    normal = 1.96
    return _T_975[degrees - 1] if degrees <= len(_T_975) else normal + (normal**3 + normal) / (4 * degrees)
