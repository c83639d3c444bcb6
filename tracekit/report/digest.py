"""From a report's tables to what fits on a screen: a bar for each rank, the typical one, and the ranks that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import polars as pl

from tracekit.model.report import Report
from tracekit.model.table import TIMELINE

PARTS: Final = ("compute", "communication", "copies", "idle")
"""What a step's time is spent on. Communication and copies count where nothing covers them: the parts add up."""

_PART_COLUMNS: Final = ("compute_ns", "exposed_comm_ns", "exposed_memory_ns", "idle_ns")
_STEP_LENGTH: Final = "window_ns"
_PAIR: Final = 2
_LEAST_SHOWN: Final = 3
_DIFFERS: Final = 0.10
"""Share of the typical step that one part must be off by before a rank is said to differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """Where the time of one recording goes, per step: the mean of its complete steps, or its whole window."""

    rank: int
    window: int
    parts: tuple[float, ...]
    """Nanoseconds of each of `PARTS`."""
    comm_ns: float
    overlapped_comm_ns: float
    steps: int
    """Complete steps that the figures are the mean of; 0 when they are of the whole window."""

    @property
    def total_ns(self) -> float:
        return sum(self.parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The part in which a rank differs most from the median of all ranks; of two ranks, from the other."""

    part: str
    ns: float
    differs: bool
    """Whether it is more than a tenth of the typical step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """The bars of a report, in the order of ranks, and how they compare."""

    bars: tuple[Bar, ...]
    differences: tuple[Difference, ...]
    """For each bar."""
    typical: Bar | None
    """The bar nearest to the median of every part. A real one, so that its parts add up."""
    windowed: tuple[int, ...]
    """Ranks whose figures are of the whole window because they have no complete step."""
    steps: int
    """Complete steps of all ranks together."""
    spread_ns: tuple[int, int] | None
    """The shortest and the longest of them; None when there are none."""
    idle: tuple[tuple[str, float], ...]
    """Causes of the typical bar's idle time, as in ``idle_spans``, with nanoseconds per step; the longest first."""

    @property
    def scale_ns(self) -> float:
        """Length of the longest bar."""
        return max((bar.total_ns for bar in self.bars), default=0.0)

    @property
    def differing(self) -> tuple[int, ...]:
        pairs = zip(self.bars, self.differences, strict=True)
        return tuple(sorted({bar.rank for bar, difference in pairs if difference.differs}))

    def shown(self, most: int) -> list[tuple[Bar, Difference]]:
        """The bars worth showing, in the order of ranks: all if they are at most *most*.

        Else the typical one and those that differ most; at least `_LEAST_SHOWN`, so that there is something to compare.
        """
        pairs = list(zip(self.bars, self.differences, strict=True))
        if len(pairs) <= most:
            return pairs
        differing = sum(difference.differs for difference in self.differences)
        room = min(most, max(1 + differing, _LEAST_SHOWN))
        kept = sorted(pairs, key=lambda pair: (pair[0] is not self.typical, -abs(pair[1].ns)))[:room]
        return sorted(kept, key=lambda pair: (pair[0].rank, pair[0].window))


def digest(report: Report) -> Digest:
    """Digest *report*; a run without device or host intervals gives no bars."""
    bars = _bars(report.tables.get("mean_step"))
    middle = [median(bar.parts[part] for bar in bars) for part in range(len(PARTS))] if bars else []
    typical = min(bars, key=lambda bar: _distance(bar, middle), default=None)
    return Digest(
        bars=bars,
        differences=tuple(
            _difference(bar, bars[1 - number].parts if len(bars) == _PAIR else middle)
            for number, bar in enumerate(bars)
        ),
        typical=typical,
        windowed=tuple(sorted({bar.rank for bar in bars if bar.steps == 0})),
        steps=sum(bar.steps for bar in bars),
        spread_ns=_spread(report.tables.get("step_breakdown")),
        idle=_idle(report.tables.get("idle_spans"), typical),
    )


def _bars(table: pl.DataFrame | None) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            rank=row["rank"],
            window=row["window"],
            parts=tuple(row[column] for column in _PART_COLUMNS),
            comm_ns=row["comm_ns"],
            overlapped_comm_ns=row["overlapped_comm_ns"],
            steps=row["steps"],
        )
        for row in (table.sort(TIMELINE).to_dicts() if table is not None else ())
    )


def _idle(spans: pl.DataFrame | None, bar: Bar | None) -> tuple[tuple[str, float], ...]:
    """The causes of *bar*'s idle time with their time per step, longest first."""
    if spans is None or bar is None:
        return ()
    causes = (
        spans.filter(rank=bar.rank, window=bar.window)
        .group_by("cause")
        .agg(pl.col("step_ns").sum() / max(bar.steps, 1))
        .filter(pl.col("step_ns") > 0)
    )
    return tuple(causes.sort("step_ns", "cause", descending=[True, False]).rows())


def _spread(steps: pl.DataFrame | None) -> tuple[int, int] | None:
    lengths = [] if steps is None else steps.filter(pl.col("step").is_not_null())[_STEP_LENGTH].to_list()
    return (min(lengths), max(lengths)) if lengths else None


def _distance(bar: Bar, middle: Sequence[float]) -> float:
    return sum(abs(part - usual) for part, usual in zip(bar.parts, middle, strict=True))


def _difference(bar: Bar, middle: Sequence[float]) -> Difference:
    apart = [part - usual for part, usual in zip(bar.parts, middle, strict=True)]
    most = max(
        range(len(PARTS)), key=lambda part: (abs(apart[part]), apart[part])
    )  # of equal ones, what it has more of
    return Difference(part=PARTS[most], ns=apart[most], differs=abs(apart[most]) > _DIFFERS * sum(middle))
