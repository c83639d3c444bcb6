"""Small sentences."""

from __future__ import annotations

import pytest

from tracekit.report.phrases import of_world, plural, ranks_text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [((3,), "rank 3"), ((5, 4), "ranks 4-5"), ((0, 1, 2, 7), "ranks 0-2, 7"), ((0, 2, 2), "ranks 0, 2")],
)
def test_ranks_text(ranks: tuple[int, ...], text: str) -> None:
    assert ranks_text(ranks) == text


@pytest.mark.parametrize(
    ("analysed", "world_size", "text"),
    [
        (8, 8, "8 of 8 ranks"),
        (2, 8, "2 of 8 ranks"),
        (1, 1, "1 of 1 rank"),
        (2, None, "2 ranks"),
        (1, None, "1 rank"),
        (3, 2, "3 of 3 ranks"),
    ],
)
def test_of_world(analysed: int, world_size: int | None, text: str) -> None:
    assert of_world(analysed, world_size) == text


def test_plural() -> None:
    assert [plural(number, "event") for number in (0, 1, 1200)] == ["0 events", "1 event", "1,200 events"]
