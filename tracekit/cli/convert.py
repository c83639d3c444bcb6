"""`tracekit convert`: write a run's tables as Parquet, where the user says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracekit.cli.loading import check_analysed, load
from tracekit.cli.options import Cache, Paths, Ranks, Workers
from tracekit.cli.streams import emit, say
from tracekit.model.errors import UsageError


def convert(
    paths: Paths,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Folder to write; made if it is missing.", show_default=False
        ),
    ],
    ranks: Ranks = None,
    cache: Cache = True,
    workers: Workers = None,
) -> None:
    """Write the tables of a run as Parquet files.

    The folder's path is printed; `tracekit analyze` and any Parquet reader take it from there.

    \b
    Example:
      tracekit convert traces/ -o tables/
    """  # noqa: D301  click keeps the lines of a paragraph marked with it
    from tracekit.model.quantity import size
    from tracekit.store.runs import write_run

    run = load(paths, ranks=ranks, cache=cache, workers=workers)
    check_analysed(run)
    try:
        files = write_run(run, output)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot be written ({why})", where=str(output), remedy="give another folder") from None
    for file in sorted(files):
        say(f"wrote {file} ({size(file.stat().st_size)})")
    emit(str(output))
