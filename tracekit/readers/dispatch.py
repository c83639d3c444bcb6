"""Reads a file with the reader of its format, decided by content, never by name."""

from __future__ import annotations

from pathlib import Path

from tracekit.model.errors import UnreadableError
from tracekit.readers import kineto
from tracekit.readers.recording import Info, Recording
from tracekit.readers.sniff import EMPTY, sniff
from tracekit.readers.source import Progress, no_progress


def read(path: Path, progress: Progress = no_progress) -> list[Recording]:
    """All recordings of the file *path*. Raises `UnreadableError` if it is no trace, ``OSError`` if it cannot be opened."""
    kind = sniff(path)
    if kind is EMPTY:
        return [
            Recording(Info(status="empty", reason="the file has no bytes: was the job killed before it wrote?"), {})
        ]
    if kind.remedy:
        raise UnreadableError(kind.what, where=str(path), remedy=kind.remedy)
    return kineto.read(path, progress)
