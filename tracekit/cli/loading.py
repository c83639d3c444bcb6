"""Opening a run for a command: a progress bar while it reads, a warning for each recording that could not be used."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import tracekit
from tracekit.cli.streams import say
from tracekit.model.errors import UnreadableError

_MOST_NAMED: Final = 3

if TYPE_CHECKING:
    from tracekit.api import Run
    from tracekit.engine.load import FileProgress, OnProgress


def load(
    paths: Sequence[str], *, ranks: Collection[int] | None = None, cache: bool = True, workers: int | None = None
) -> Run:
    """Open *paths* and say on standard error which recordings were left out or read only in part, and why."""
    with progress_bar() as listener:
        run = tracekit.open(*paths, cache=cache, workers=workers, ranks=ranks, progress=listener)
    for warning in _warnings(run):
        say(f"warning: {warning}")
    return run


def _warnings(run: Run) -> list[str]:
    """What was left out or read only in part; recordings with the same reason in one line."""
    sources: dict[str, list[str]] = defaultdict(list)
    for recording in run.ranks.select("source", "status", "reason").to_dicts():
        if recording["status"] != "read":
            sources[recording["reason"] or recording["status"]].append(recording["source"])
    return [f"{_named(names)}: {reason}" for reason, names in sources.items()]


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


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
