"""`tracekit analyze`: where the step time goes, which ranks differ, what costs most."""

from __future__ import annotations

import shlex
from typing import Annotated, Final

import typer

from tracekit.cli.loading import check_analysed, load
from tracekit.cli.options import Cache, Json, Paths, Ranks, Workers, parse_names, parse_steps
from tracekit.cli.streams import emit, page, show
from tracekit.model.errors import UsageError

_MOST_NAMED: Final = 3
"""Paths that a command to go on with repeats; more of them are what a shell made of a pattern."""


def analyze(  # noqa: PLR0913, PLR0917  one parameter per option
    paths: Paths,
    steps: Annotated[
        range | None,
        typer.Option(
            "--steps", parser=parse_steps, metavar="SPAN", help="Only these steps, e.g. 4 or 3-5.", show_default=False
        ),
    ] = None,
    ranks: Ranks = None,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Findings to tell in full.")] = 3,
    json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for an issue or a pull request.")
    ] = False,
    tables: Annotated[
        frozenset[str] | None,
        typer.Option(
            "--tables",
            parser=parse_names,
            metavar="NAMES",
            help="With --json: tables to add, e.g. kernels,idle, or all.",
            show_default=False,
        ),
    ] = None,
    cache: Cache = True,
    workers: Workers = None,
) -> None:
    """Say where a step's time goes and what costs most.

    \b
    Examples:
      tracekit analyze traces/
      tracekit analyze traces/ --ranks 0,2-3 --steps 3-5
      tracekit analyze traces/ --json | jq .findings
    """  # noqa: D301  click keeps the lines of a paragraph marked with it
    if json and markdown:
        raise UsageError("--json and --markdown cannot both be printed", remedy="ask for one")
    if tables and not json:
        raise UsageError("--tables adds to JSON", remedy="give --json as well")
    run = load(paths, ranks=ranks, cache=cache, workers=workers)
    report = run.analyze(steps=steps)
    if json:
        from tracekit.report.json import analyze_json

        emit(analyze_json(report, tables or ()))
    elif markdown:
        from tracekit.report.markdown import analyze_markdown

        emit(analyze_markdown(report, top=top))
    else:
        from tracekit.report.text import render

        show(render(report, page(top=top, command=shlex.join(paths) if len(paths) <= _MOST_NAMED else "PATHS")))
    check_analysed(run)
