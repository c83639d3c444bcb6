"""Where the recordings of a file are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracekit.readers.discover import Found
from tracekit.readers.recording import Info


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the recordings of one file are, or why there are none."""

    found: Found
    folder: Path | None
    infos: tuple[Info, ...]
    error: str = ""
