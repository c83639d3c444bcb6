"""Small sentences that every form of the report uses: which ranks, how many of how many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks as spans: ``rank 3``, ``ranks 0-5, 7``."""
    spans = []
    for _, group in groupby(enumerate(sorted(set(ranks))), key=lambda pair: pair[1] - pair[0]):
        members = [rank for _, rank in group]
        spans.append(_span(members))
    text = ", ".join(spans)
    return f"rank {text}" if text.isdigit() else f"ranks {text}"


def _span(members: Sequence[int]) -> str:
    return str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}"


def of_world(analysed: int, world_size: int | None) -> str:
    """``8 of 8 ranks``; ``2 ranks`` when the traces do not say how many there were."""
    if world_size is None:
        return plural(analysed, "rank")
    return f"{analysed} of {plural(max(world_size, analysed), 'rank')}"


def plural(number: int, noun: str) -> str:
    """``1 step``, ``3 steps``, ``120,554 events``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
