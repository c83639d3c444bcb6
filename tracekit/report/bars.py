"""Stacked bars for a terminal: told apart by glyph as well as by colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rich.text import Text

from tracekit.report.digest import PARTS


@dataclass(frozen=True, slots=True)
class Ink:
    """How one part is drawn."""

    glyph: str
    ascii: str
    style: str

    def char(self, *, ascii_only: bool) -> str:
        return self.ascii if ascii_only else self.glyph


INKS: Final = dict(
    zip(
        PARTS,
        (Ink("█", "#", "green"), Ink("▒", "=", "magenta"), Ink("▚", "%", "yellow"), Ink("·", ".", "dim")),
        strict=True,
    )
)
"""The ink of each part; the one legend of every bar."""


def cells(parts: Sequence[float], scale: float, width: int) -> list[int]:
    """How many of *width* cells each part takes when *scale* fills them all.

    Ends are rounded, not lengths, so that equal totals give bars of equal length.
    """
    if scale <= 0:
        return [0] * len(parts)
    ends, end = [0], 0.0
    for part in parts:
        end += part
        ends.append(min(round(end / scale * width), width))
    return [right - left for left, right in pairwise(ends)]


def bar(parts: Sequence[float], scale: float, width: int, *, ascii_only: bool) -> Text:
    """One stacked bar of `PARTS`, *width* cells when it is as long as *scale*."""
    text = Text()
    for ink, length in zip(INKS.values(), cells(parts, scale, width), strict=True):
        text.append(ink.char(ascii_only=ascii_only) * length, style=ink.style)
    return text
