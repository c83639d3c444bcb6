"""`tracekit doctor`: what the traces hold, what they lack for better answers, and how to record it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from tracekit.cli.loading import check_analysed, load
from tracekit.cli.options import Cache, Json, Paths, Ranks, Workers
from tracekit.cli.streams import emit, page, show

if TYPE_CHECKING:
    from tracekit.api import Run

_SHAPES: Final = b'"Input Dims"'
_CHUNKS: Final = 4
"""Chunks of a file that are looked through for shapes: operators come first in it, so 16 MiB of text hold thousands."""


def doctor(paths: Paths, ranks: Ranks = None, json: Json = False, cache: Cache = True, workers: Workers = None) -> None:
    """Say what traces lack, and how to record it.

    \b
    Example:
      tracekit doctor traces/
    """  # noqa: D301  click keeps the lines of a paragraph marked with it
    from tracekit.report.doctor import diagnose

    run = load(paths, ranks=ranks, cache=cache, workers=workers)
    diagnosis = diagnose(run.title, run, _shapes(run, paths))
    if json:
        from tracekit.report.json import doctor_json

        emit(doctor_json(diagnosis))
    else:
        from tracekit.report.doctor_text import render

        show(render(diagnosis, page()))
    check_analysed(run)


def _shapes(run: Run, paths: Sequence[str]) -> bool | None:
    """Whether operators carry input shapes: the tables do not keep them, so one of the files is looked at.

    None when there is none to look at.
    """
    from tracekit.readers.discover import discover
    from tracekit.readers.source import Source

    read = set(run.ranks.filter(run.ranks["status"] == "read")["source"])
    file = next((found.path for found in discover(paths) if found.source in read), None)
    return None if file is None else any(_SHAPES in chunk for chunk in islice(Source(file).chunks(), _CHUNKS))
