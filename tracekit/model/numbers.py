"""Numbers as people list them on a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

_SPAN = re.compile(r"(\d+)(?:-(\d+))?")


def span(text: str) -> range:
    """``4`` or ``3-5``, both ends included. ``ValueError`` says what is wrong with *text*."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError("is not understood")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError("ends before it starts")
    return range(first, last + 1)


def spans_text(numbers: Iterable[int]) -> str:
    """Numbers as spans: ``3``, ``0-5, 7``; the inverse of `span`."""
    neighbours = groupby(enumerate(sorted(set(numbers))), key=lambda pair: pair[1] - pair[0])
    return ", ".join(_span_text([number for _, number in group]) for _, group in neighbours)


def _span_text(members: Sequence[int]) -> str:
    return str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}"
