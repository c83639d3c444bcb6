"""How far each rank's clock is off: from the recorder's ping-pong, else from collectives, which end everywhere at once.

A correction is a straight line: an offset at one moment and a drift. It is applied when tables are put together and stands in
``ranks``, so that it can be taken back. Ranks of one host share a clock: what lies within its own error is no offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import polars as pl

from tracekit.engine.matching import KEY, SYNCHRONISING, numbered
from tracekit.model.records import Clock

_FEWEST = 3
_FEWEST_FOR_DRIFT = 12
_LEAST_NS = 100_000
"""Offsets below this are not told from the ends of collectives: ranks leave one at slightly different moments."""
_SURE = 5
"""How many standard errors an offset or a drift must stand out from the scatter of the ends."""
_BAR = 3
"""How many of them the error bar is wide."""
_NORMAL = 1.4826 * 1.2533
"""Standard error of a median over the median deviation over the root of the number, where the scatter is normal."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What to add to a rank's times, and how far off that may be; *error_ns* None when nothing was measured."""

    offset_ns: int = 0
    """At the moment *at_ns* of the rank's own clock."""
    error_ns: int | None = None
    drift_ppb: float = 0.0
    """Growth of the offset in nanoseconds a second."""
    at_ns: int = 0

    def at(self, time_ns: int) -> int:
        """The offset at *time_ns* of the rank's own clock."""
        return self.offset_ns + round((time_ns - self.at_ns) * self.drift_ppb / 1e9)

    def put_right(self, time: pl.Expr) -> pl.Expr:
        """*time* of the rank's own clock on that of the run."""
        if not self.drift_ppb:
            return time + self.offset_ns
        return time + self.offset_ns + ((time - self.at_ns) * (self.drift_ppb / 1e9)).round().cast(pl.Int64)


UNCORRECTED = Correction()


def corrections(
    clocks: Mapping[int, Clock], starts: Sequence[int], collectives: Iterable[pl.LazyFrame]
) -> list[Correction]:
    """One correction for each recording that starts at one of *starts*. *clocks* are those that the recorder measured, by position.

    With any of them, recordings without one are left as they are, and *collectives* is not walked.
    """
    if clocks:
        return [measured(clocks[i], start) if i in clocks else UNCORRECTED for i, start in enumerate(starts)]
    return from_collectives(collectives) if len(starts) > 1 else [UNCORRECTED] * len(starts)


def measured(clock: Clock, start_ns: int) -> Correction:
    """The correction from *start_ns* on by the recorder's *clock*. An offset within its error is none."""
    offset = clock.offset_ns + round(clock.drift_ppb * (start_ns - clock.at_ns) / 1e9)
    if abs(offset) <= clock.error_ns:
        return Correction(0, clock.error_ns)
    return Correction(offset, clock.error_ns, clock.drift_ppb, start_ns)


def from_collectives(collectives: Iterable[pl.LazyFrame]) -> list[Correction]:
    """Corrections of recordings against the first, from their ``collectives`` in absolute time.

    Recordings that share no communicator with the first are compared through those that do, errors added. Matches by order count
    only within steps: a whole window may begin anywhere.
    """
    frames = [
        frame.with_columns(rank=pl.lit(i, pl.Int32), window=pl.lit(0, pl.Int16)) for i, frame in enumerate(collectives)
    ]
    found = {0: UNCORRECTED}
    edges = _apart(pl.concat(frames)) if frames else {}
    while reached := [(a, b) for a, b in edges if (a in found) != (b in found)]:
        for a, b in sorted(reached):
            if a in found and b not in found:
                found[b] = _through(found[a], edges[a, b])
            elif b in found and a not in found:
                found[a] = _through(found[b], _reversed(edges[a, b]))
    return [_if_it_stands_out(found.get(i, UNCORRECTED)) for i in range(len(frames))]


def _apart(collectives: pl.LazyFrame) -> dict[tuple[int, int], Correction]:
    """What to add to the times of *b* to get those of *a*, of recordings that meet in collectives; *a* is the first in each."""
    certain = (pl.col("match_quality") == "sequence") | pl.col("step").is_not_null()
    ends = (
        numbered(collectives)
        .filter(pl.col("match_quality").is_not_null(), certain, pl.col("op").is_in(SYNCHRONISING))
        .select(*KEY, "rank", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .sort("rank")
        .group_by(KEY)
        .agg(a=pl.col("rank").first(), a_ns=pl.col("end_ns").first(), b="rank", b_ns="end_ns")
        .explode("b", "b_ns")
        .filter(pl.col("a") != pl.col("b"))
        .sort("b_ns")
        .collect()
    )
    return {
        (a, b): line
        for (a, b), pairs in ends.group_by("a", "b", maintain_order=True)
        if isinstance(a, int) and isinstance(b, int) and (line := _line(pairs["b_ns"], pairs["a_ns"] - pairs["b_ns"]))
    }


def _line(times: pl.Series, apart: pl.Series) -> Correction | None:
    """The straight line through *apart* at *times*, robust against late ends; None of too few."""
    if len(apart) < _FEWEST:
        return None
    middle = round(_median(times))
    drift = _drift(times, apart)
    level = apart - ((times - middle) * (drift / 1e9))
    offset = round(_median(level))
    return Correction(offset, round(_BAR * _standard_error(level)), drift, middle)


def _drift(times: pl.Series, apart: pl.Series) -> float:
    """Growth of *apart* in nanoseconds a second, from its medians in the first and the last third; 0 if it does not stand out."""
    if len(apart) < _FEWEST_FOR_DRIFT:
        return 0.0
    third = len(apart) // 3
    first, last = apart.head(third), apart.tail(third)
    grown = _median(last) - _median(first)
    seconds = (_median(times.tail(third)) - _median(times.head(third))) / 1e9
    error = hypot(_standard_error(first), _standard_error(last))
    return grown / seconds if seconds > 0 and abs(grown) > max(_LEAST_NS, _SURE * error) else 0.0


def _standard_error(values: pl.Series) -> float:
    return _NORMAL * _median((values - _median(values)).abs()) / sqrt(len(values))


def _through(known: Correction, further: Correction) -> Correction:
    """The correction of a recording that *further* puts on the clock of one that *known* puts right."""
    error = (known.error_ns or 0) + (further.error_ns or 0)
    offset = further.offset_ns + known.at(further.at_ns + further.offset_ns)
    return Correction(offset, error, known.drift_ppb + further.drift_ppb, further.at_ns)


def _reversed(line: Correction) -> Correction:
    return Correction(-line.offset_ns, line.error_ns, -line.drift_ppb, line.at_ns + line.offset_ns)


def _if_it_stands_out(line: Correction) -> Correction:
    """*line*, or none where its offset is what ranks of one clock show, too."""
    least = max(_LEAST_NS, (line.error_ns or 0) * _SURE / _BAR)
    return line if abs(line.offset_ns) > least or line.drift_ppb else UNCORRECTED


def _median(values: pl.Series) -> float:
    middle = values.median()
    return float(middle) if isinstance(middle, int | float) else 0.0
