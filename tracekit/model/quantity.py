"""Numbers as short text with a unit: the only place that divides by a thousand or a million.

Three significant digits, rounded half up from the exact decimal value, so that the same number always reads the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite
from types import MappingProxyType
from typing import Final

_ROUND: Final = Context(prec=3, rounding=ROUND_HALF_UP)
_TIMES: Final = ("ns", "µs", "ms", "s")
_SIZES: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_LEAST_PERCENT: Final = Decimal("0.01")

UNKNOWN: Final = "unknown"
"""Text of a number that is not one: it could not be measured."""


def ns(value: float) -> str:
    """Nanoseconds as text: ``850 ns``, ``12.3 µs``, ``1.25 ms``, ``95.1 s``."""
    return _scaled(value, _TIMES)


def size(value: float) -> str:
    """Bytes as text, in decimal units: ``512 B``, ``33.6 MB``."""
    return _scaled(value, _SIZES)


def rate(value: float) -> str:
    """Bytes per second as text: ``176 GB/s``."""
    text = size(value)
    return text if text == UNKNOWN else f"{text}/s"


def percent(ratio: float) -> str:
    """A ratio as percent: ``58.9 %``; what is above zero never reads as zero (``<0.01 %``)."""
    if not isfinite(ratio):
        return UNKNOWN
    value = _ROUND.plus(Decimal(ratio) * 100)
    if value == 0:
        return "0 %"
    if abs(value) < _LEAST_PERCENT:
        return "<0.01 %" if value > 0 else ">-0.01 %"
    return f"{_digits(value, most_decimals=2)} %"


def count(value: float) -> str:
    """A count as text: whole numbers exactly (``120,554``), means with three digits (``12.5``)."""
    if not isfinite(value):
        return UNKNOWN
    if value == int(value):
        return f"{int(value):,}"
    return _digits(_ROUND.plus(Decimal(value)), most_decimals=2)


def of(value: float, unit: str) -> str:
    """*value* of a stored *unit* (``ns``, ``bytes``, ``bytes_per_s``, ``ratio``, ``count``) as text.

    A unit that is not one of these is written behind the number as it stands.
    """
    formatter = FORMATTERS.get(unit)
    return formatter(value) if formatter else f"{count(value)} {unit}".rstrip()


FORMATTERS: Final[Mapping[str, Callable[[float], str]]] = MappingProxyType(
    {"ns": ns, "bytes": size, "bytes_per_s": rate, "ratio": percent, "count": count}
)
"""The formatter of each stored unit."""


def _scaled(value: float, units: tuple[str, ...]) -> str:
    """*value* of the first of *units*, each a thousand times the one before, in the largest that it reaches."""
    if not isfinite(value):
        return UNKNOWN
    rounded = _ROUND.plus(Decimal(value))
    step = min(max(rounded.adjusted() // 3, 0), len(units) - 1)
    whole = step == 0 and rounded == rounded.to_integral_value()
    number = rounded.scaleb(-3 * step)
    return f"{number:,.0f} {units[0]}" if whole else f"{_digits(number, most_decimals=2)} {units[step]}"


def _digits(value: Decimal, *, most_decimals: int) -> str:
    """*value*, already rounded to three significant digits, with as many decimals as these leave."""
    decimals = min(max(2 - value.adjusted(), 0), most_decimals)
    return f"{value:,.{decimals}f}"
