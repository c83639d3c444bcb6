"""Opening a run for a command: a progress bar while it reads, a warning for each recording that could not be used."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import tracekit
from tracekit.cli.streams import say
from tracekit.model.errors import UnreadableError

if TYPE_CHECKING:
    from tracekit.api import Run
    from tracekit.engine.load import FileProgress, OnProgress


def load(
    paths: Sequence[str], *, ranks: Collection[int] | None = None, cache: bool = True, workers: int | None = None
) -> Run:
    """Open *paths* and say on standard error which recordings were left out or read only in part, and why."""
    with progress_bar() as listener:
        run = tracekit.open(*paths, cache=cache, workers=workers, ranks=ranks, progress=listener)
    from tracekit.report.facts import unused

    for warning in unused(run.ranks):
        say(f"warning: {warning}")
    return run


def check_analysed(run: Run) -> None:
    """After the output: end with `ExitCode.UNREADABLE` when nothing of *run* could be analysed."""
    from tracekit.report.facts import READ

    if not run.ranks["status"].is_in(READ).any():
        raise UnreadableError("nothing could be analysed", where=run.title, remedy="the warnings above say why")


@contextmanager
def progress_bar() -> Iterator[OnProgress | None]:
    """A bar on standard error that goes away when done; nothing at all when nobody looks at a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("reading, {task.fields[done]} files done"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, done=0)
        seen: dict[str, FileProgress] = {}

        def listen(update: FileProgress) -> None:
            seen[update.source] = update
            files = list(seen.values())  # several threads call
            bar.update(
                task,
                completed=sum(file.bytes_done for file in files),
                total=sum(file.bytes_total for file in files),
                done=sum(file.state != "reading" for file in files),
            )

        yield listen
