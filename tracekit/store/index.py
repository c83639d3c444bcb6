"""The small JSON that says which recordings an entry of the store holds. Written last: without it the entry is not there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tracekit.readers.recording import Info

FORMAT_VERSION = 2
"""Counted up when tables or their meaning change: what an older version wrote is then read anew from the traces."""

_INDEX = "recordings.json"
RUN_MARK = "tracekit.json"
"""What a folder holds that ``tracekit convert`` wrote."""


class Index(msgspec.Struct, frozen=True):
    """Contents of ``recordings.json``. Written last: a folder without it is not there."""

    format: int
    recordings: tuple[Info, ...]


def infos(folder: Path) -> tuple[Info, ...] | None:
    """What *folder* holds; None if it holds nothing whole of this format."""
    try:
        index = msgspec.json.decode((folder / _INDEX).read_bytes(), type=Index)
    except (OSError, msgspec.DecodeError):
        return None
    return index.recordings if index.format == FORMAT_VERSION else None


def write(infos_: tuple[Info, ...], folder: Path) -> None:
    """Say that *folder* holds recordings of *infos_*, whole. Raises ``OSError``."""
    (folder / _INDEX).write_bytes(msgspec.json.encode(Index(FORMAT_VERSION, infos_)))


def is_run(folder: Path) -> bool:
    """Whether *folder* was written by `runs.write_run`, whole."""
    return (folder / RUN_MARK).is_file()
