"""Reads one Kineto file into recordings: one per process or device that it holds, usually one."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.model.errors import UnreadableError
from tracekit.readers.health import Health
from tracekit.readers.kineto import metadata, times
from tracekit.readers.kineto.blocks import Blocks
from tracekit.readers.kineto.columns import Columns
from tracekit.readers.kineto.decode import Decoder
from tracekit.readers.kineto.recordings import recordings
from tracekit.readers.recording import Recording
from tracekit.readers.source import Progress, Source, no_progress


def read(path: Path, progress: Progress = no_progress) -> list[Recording]:
    """Read *path* (JSON, plain or gzipped) in one pass with bounded memory.

    Raises `UnreadableError` when nothing of it is a trace; everything less is repaired, counted and told in the
    recording's notes.
    """
    with _collector_off():
        return _read(Source(path, progress))


def _read(source: Source) -> list[Recording]:
    blocks, health = Blocks(source), Health()
    columns = Columns(health)
    _gather(blocks, Decoder(health), columns)
    if not blocks.started:
        _raise_unreadable(source, blocks)
    found = metadata.parse(blocks.header, blocks.trailer)
    if found.journal:
        health.truncated = "the process ended before it could write its trace: only its completed steps are known"
    elif not blocks.ended:
        health.truncated = source.damage or "the file ends inside its event list"
    elif source.damage:
        health.note(source.damage)
    return recordings(columns, found, health)


def _gather(blocks: Blocks, decoder: Decoder, columns: Columns) -> None:
    for block in blocks:
        events, end = decoder.decode(block)
        try:
            columns.add(events, block)
        except times.InexactError:
            decoder.exact = True
            events, end = decoder.decode(block)
            columns.add(events, block)
        if end is not None:
            blocks.end_at(end)


def _raise_unreadable(source: Source, blocks: Blocks) -> None:
    where = str(source.path)
    if source.damage:
        raise UnreadableError(source.damage, where=where, remedy="copy the file again or record anew")
    if not blocks.header.strip():
        raise UnreadableError("empty file", where=where, remedy="the profiler wrote nothing: was the job killed?")
    raise UnreadableError("no traceEvents in it", where=where, remedy="give a trace that torch.profiler exported")


@contextmanager
def _collector_off() -> Iterator[None]:
    """Millions of short-lived objects and no cycles among them: the cyclic collector would only walk them in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
