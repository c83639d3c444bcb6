"""What was read, repaired and dropped. A number built on repaired input says so."""

from __future__ import annotations

from dataclasses import dataclass, field

_PLACES_KEPT = 5


@dataclass(slots=True)
class Health:
    """Counters of one file while it is read; `notes` are sentences for a person."""

    read: int = 0
    repaired: int = 0
    dropped: int = 0
    device_ns_touched: int = 0
    truncated: str = ""
    """Why the file ended before its events did; empty for a whole file."""
    notes: list[str] = field(default_factory=list)
    _places: dict[str, list[int]] = field(default_factory=dict)

    def repair(self, why: str, offset: int, count: int = 1) -> None:
        """Count events kept after a repair, at a byte *offset* of the (uncompressed) text."""
        self.repaired += count
        self._places.setdefault(f"repaired: {why}", []).append(offset)

    def drop(self, why: str, offset: int, count: int = 1) -> None:
        """Count events that could not be used."""
        self.dropped += count
        self._places.setdefault(f"dropped: {why}", []).append(offset)

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def sentences(self) -> list[str]:
        """All notes, with the first byte offsets of each kind of damage."""
        damage = []
        for what, offsets in self._places.items():
            shown = ", ".join(f"{offset:,}" for offset in offsets[:_PLACES_KEPT])
            more = f" and {len(offsets) - _PLACES_KEPT:,} more" if len(offsets) > _PLACES_KEPT else ""
            damage.append(f"{what} (at byte {shown}{more})")
        return [*([self.truncated] if self.truncated else []), *damage, *self.notes]
