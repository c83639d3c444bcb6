"""Small sentences that every form of the report uses: which ranks, how many of how many."""

from __future__ import annotations

from collections.abc import Iterable

from tracekit.model.numbers import spans_text


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks as spans: ``rank 3``, ``ranks 0-5, 7``."""
    text = spans_text(ranks)
    return f"rank {text}" if text.isdigit() else f"ranks {text}"


def of_world(analysed: int, world_size: int | None) -> str:
    """``8 of 8 ranks``; ``2 ranks`` when the traces do not say how many there were."""
    if world_size is None:
        return plural(analysed, "rank")
    return f"{analysed} of {plural(max(world_size, analysed), 'rank')}"


def plural(number: int, noun: str) -> str:
    """``1 step``, ``3 steps``, ``120,554 events``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
