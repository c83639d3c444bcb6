"""How far each rank's clock is off: from the recorder's ping-pong, else from collectives, which end everywhere at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tracekit.model.records import Clock

_ENDS_TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Operations that no rank can leave before every rank has come."""
_FEWEST = 5
_LEAST_NS = 100_000
"""Offsets below this are not told from the ends of collectives: ranks leave one at slightly different moments."""
_SPREADS = 4


@dataclass(frozen=True, slots=True)
class Correction:
    """What to add to a rank's times, and how far off that may be; *error_ns* None when nothing was measured."""

    offset_ns: int = 0
    error_ns: int | None = None


UNCORRECTED = Correction()


def measured(clock: Clock, middle_ns: int) -> Correction:
    """The correction in the middle of a recording, by the recorder's *clock*. An offset within its error is none."""
    offset = clock.offset_ns + round(clock.drift_ppb * (middle_ns - clock.at_ns) / 1e9)
    return Correction(offset if abs(offset) > clock.error_ns else 0, clock.error_ns)


def from_collectives(collectives: Iterable[pl.LazyFrame]) -> list[Correction]:
    """Corrections of recordings against the first, from their ``collectives`` in absolute time.

    The n-th operation of a kind in a group is the same on all its members, or that with the same sequence number where there is
    one. The median difference of their ends is the offset. It is used only where it stands out from the scatter of the ends.
    """
    ends = [_ends(frame) for frame in collectives]
    return [UNCORRECTED] + [_between(ends[0], other) for other in ends[1:]] if ends else []


def _ends(frame: pl.LazyFrame) -> pl.DataFrame:
    keys = ("group", "group_ranks", "op")
    return (
        frame.filter(pl.col("op").is_in(_ENDS_TOGETHER))
        .sort("start_ns")
        .select(
            *(pl.col(key).fill_null("") for key in keys),
            pl.coalesce("seq", pl.int_range(pl.len()).over(keys)).alias("number"),
            (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"),
        )
        .unique(["group", "group_ranks", "op", "number"], keep="none")
        .collect()
    )


def _between(reference: pl.DataFrame, other: pl.DataFrame) -> Correction:
    both = reference.join(other, on=["group", "group_ranks", "op", "number"], suffix="_other")
    apart = both["end_ns"] - both["end_ns_other"]
    if len(apart) < _FEWEST:
        return UNCORRECTED
    offset = round(_median(apart))
    spread = _median((apart - offset).abs())
    if abs(offset) < max(_LEAST_NS, _SPREADS * spread):
        return UNCORRECTED
    return Correction(offset, round(spread))


def _median(values: pl.Series) -> float:
    middle = values.median()
    return float(middle) if isinstance(middle, int | float) else 0.0


def corrections(
    clocks: Mapping[int, Clock], middles: Sequence[int], collectives: Iterable[pl.LazyFrame]
) -> list[Correction]:
    """One correction for each recording. *clocks* are those that the recorder measured, by position.

    With any of them, recordings without one are left as they are, and *collectives* is not walked.
    """
    if clocks:
        return [measured(clocks[i], middle) if i in clocks else UNCORRECTED for i, middle in enumerate(middles)]
    return from_collectives(collectives) if len(middles) > 1 else [UNCORRECTED] * len(middles)
