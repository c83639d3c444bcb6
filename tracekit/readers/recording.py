"""What a reader gives back: one recording per rank found in a file, its tables and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import polars as pl


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one recording, before the other files of the run are seen. Kept as JSON in the store.

    Of the trace's metadata only these fields survive: no environment, host or user name is ever copied.
    """

    process: int | None = None
    """Process id (or device number) that tells recordings of one file apart; None when the file holds one."""
    rank: int | None = None
    """Rank that the file itself claims."""
    rank_source: str = ""
    """How: ``distributedInfo``, ``process group`` or ``device``."""
    world_size: int | None = None
    backend: str | None = None
    device_name: str | None = None
    view: str = "device"
    base_ns: int = 0
    start_ns: int = 0
    """First event's start, absolute."""
    end_ns: int = 0
    """Last event's end, absolute."""
    status: str = "read"
    reason: str = ""
    complete_events: int = 0
    device_events: int = 0
    events_read: int = 0
    events_repaired: int = 0
    events_dropped: int = 0
    device_ns_touched: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """One rank's tables as read: times absolute, columns ``rank`` and ``window`` not yet known."""

    info: Info
    tables: Mapping[str, pl.DataFrame]
