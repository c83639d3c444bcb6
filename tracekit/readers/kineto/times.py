"""Trace times (decimal microseconds) to int64 nanoseconds, exactly.

A double holds microseconds below 2**43 (101 days) to better than half a nanosecond, so whole and fraction scaled apart
give the written nanosecond back. Above that it holds whole microseconds, as old files write them, up to 2**53; absolute
times with a fraction (16 digits and three more) are only in the text.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import msgspec
import numpy as np
import numpy.typing as npt

LIMIT_NS = 1 << 62
"""Times beyond this (146 years) are not times; events that claim them are dropped before int64 can overflow."""
_NS_PER_US = 1000
_FRACTION_BELOW_US = float(1 << 43)
_WHOLE_BELOW_US = float(1 << 53)
_FRACTION = re.compile(rb"\.(?:(?<=\d{13}\.)\d*[1-9]|\d{13,}[eE])")
"""A fraction behind as many digits as such times have. It opens with a literal, so that most of the text is only scanned."""

Nanoseconds = npt.NDArray[np.int64]


class InexactError(ValueError):
    """Doubles lost digits of the times; decode their text."""


def from_numbers(microseconds: Sequence[float]) -> Nanoseconds:
    """Microseconds as doubles to nanoseconds. What is beyond `LIMIT_NS` stays beyond it."""
    given = np.frombuffer(array("d", microseconds), dtype=np.float64)
    whole = np.floor(given)
    with np.errstate(invalid="ignore"):  # infinities
        nanoseconds = np.rint((given - whole) * _NS_PER_US).astype(np.int64)
        whole = np.clip(whole, -_WHOLE_BELOW_US, _WHOLE_BELOW_US).astype(np.int64)
    return np.asarray(nanoseconds + whole * _NS_PER_US)


def raise_if_inexact(nanoseconds: Nanoseconds, text: bytes | memoryview) -> None:
    """`InexactError` if doubles cannot have held the times of a block's *text*."""
    largest = max(int(nanoseconds.max()), -int(nanoseconds.min()), 0) // _NS_PER_US if nanoseconds.size else 0
    if largest >= _FRACTION_BELOW_US and (largest >= _WHOLE_BELOW_US or _has_fraction(text)):
        raise InexactError


def _has_fraction(text: bytes | memoryview) -> bool:
    return b"." in bytes(text) and _FRACTION.search(text) is not None


def from_text(raw: msgspec.Raw) -> int | None:
    """Microseconds as JSON text (a number, or a string holding one) to nanoseconds; None if it is neither."""
    text = bytes(raw).decode("ascii", "replace").strip('"')
    whole, _, fraction = text.partition(".")
    if len(whole) <= 16 and len(fraction) <= 3 and whole.isdigit() and (fraction.isdigit() or not fraction):
        return int(whole) * _NS_PER_US + int(fraction.ljust(3, "0"))
    try:
        nanoseconds = Decimal(text) * _NS_PER_US
        return int(nanoseconds.to_integral_value(ROUND_HALF_EVEN)) if abs(nanoseconds) < LIMIT_NS else None
    except (InvalidOperation, OverflowError):
        return None
