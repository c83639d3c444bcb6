"""How ranks are laid out in parallel dimensions: the words for the dimensions, and a rank's coordinates in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

DIMENSIONS = ("dp", "dp_shard", "tp", "pp", "cp", "ep", "world", "unknown")
"""What a process group is for: data parallel (replicas), its shards (ZeRO, FSDP), tensor, pipeline, context, expert parallel;
``world`` where all ranks take part in something that belongs to no dimension."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelLayout:
    """Which groups of ranks each dimension has. The only rank arithmetic of tracekit."""

    groups: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """Of each dimension its groups, sorted; a rank is in one of them at most."""

    @classmethod
    def of(cls, groups: Iterable[tuple[str, tuple[int, ...]]]) -> ParallelLayout:
        """The layout of (dimension, ranks) pairs; groups of one rank, and of no dimension, say nothing."""
        found: dict[str, set[tuple[int, ...]]] = {}
        for dimension, ranks in groups:
            if dimension in DIMENSIONS[:-2] and len(ranks) > 1:
                found.setdefault(dimension, set()).add(tuple(sorted(ranks)))
        ordered = (name for name in DIMENSIONS if name in found)
        return cls(groups={name: tuple(sorted(found[name])) for name in ordered})

    @property
    def sizes(self) -> dict[str, int]:
        """Ranks in the largest group of each dimension."""
        return {name: max(map(len, groups)) for name, groups in self.groups.items()}

    def coordinates(self, rank: int) -> dict[str, int]:
        """The place of *rank* in its group of each dimension that it is in, from 0."""
        return {name: group.index(rank) for name, groups in self.groups.items() for group in groups if rank in group}
