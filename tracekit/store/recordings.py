"""A recording's tables as Parquet files in a folder, and the small JSON that says what they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars as pl

from tracekit.model.errors import UnreadableError
from tracekit.readers.recording import Info, Recording

FORMAT_VERSION = 1
"""Counted up when tables or their meaning change: what an older version wrote is then read anew from the traces."""

_INDEX = "recordings.json"
TABLES = ("events", "collectives", "steps", "memory")


class Index(msgspec.Struct, frozen=True):
    """Contents of ``recordings.json``. Written last: a folder without it is not there."""

    format: int
    recordings: tuple[Info, ...]


def write(recordings: Sequence[Recording], folder: Path) -> None:
    """Write *recordings* into the existing, empty *folder*. Raises ``OSError``."""
    for number, recording in enumerate(recordings):
        for name, frame in recording.tables.items():
            # Dictionary and run-length coding alone leave 6 % of the trace's text; compressing that to 4 % doubles the time.
            frame.write_parquet(_file(folder, number, name), compression="uncompressed", statistics=False)
    index = Index(FORMAT_VERSION, tuple(recording.info for recording in recordings))
    (folder / _INDEX).write_bytes(msgspec.json.encode(index))


def infos(folder: Path) -> tuple[Info, ...] | None:
    """What *folder* holds; None if it holds nothing whole of this format."""
    try:
        index = msgspec.json.decode((folder / _INDEX).read_bytes(), type=Index)
    except (OSError, msgspec.DecodeError):
        return None
    return index.recordings if index.format == FORMAT_VERSION else None


def scan(folder: Path, number: int, name: str) -> pl.LazyFrame:
    """Table *name* of the recording *number* in *folder*, lazily."""
    file = _file(folder, number, name)
    if not file.exists():
        raise UnreadableError("a table of the store is gone", where=str(file), remedy="run again with --no-cache")
    return pl.scan_parquet(file)


def _file(folder: Path, number: int, name: str) -> Path:
    return folder / f"{number}-{name}.parquet"
