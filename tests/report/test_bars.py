"""Stacked bars: ends are rounded, lengths follow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracekit.report.bars import INKS, bar, cells


def test_parts_share_the_width() -> None:
    assert cells([50, 25, 0, 25], scale=100, width=8) == [4, 2, 0, 2]


def test_a_shorter_rank_has_a_shorter_bar() -> None:
    assert cells([25, 25, 0, 0], scale=100, width=10) == [2, 3, 0, 0]


def test_nothing_measured_draws_nothing() -> None:
    assert cells([0, 0, 0, 0], scale=0, width=10) == [0, 0, 0, 0]


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=6), st.integers(1, 200))
def test_bars_of_the_longest_rank_fill_the_width(parts: list[float], width: int) -> None:
    total = sum(parts)
    lengths = cells(parts, total, width)
    assert sum(lengths) == (width if total > 0 else 0)
    assert min(lengths) >= 0


def test_parts_are_told_apart_without_colour() -> None:
    assert bar([1, 1, 1, 1], 4, 4, ascii_only=False).plain == "█▒▚·"
    assert bar([1, 1, 1, 1], 4, 4, ascii_only=True).plain == "#=%."
    assert len({ink.glyph for ink in INKS.values()}) == len({ink.ascii for ink in INKS.values()}) == len(INKS)
