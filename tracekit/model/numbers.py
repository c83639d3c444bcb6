"""Numbers as people list them on a command line."""

from __future__ import annotations

import re

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
