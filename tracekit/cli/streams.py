"""Where output goes: data to standard output, speech and the progress bar to standard error."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from tracekit.report.page import Page

_SIGPIPE_EXIT: Final = 141
"""What a shell reports for a writer whose reader went away; not one of the verdict's exit codes."""


def say(text: str) -> None:
    """Say *text* on standard error; what a trace put into it cannot move the cursor."""
    from tracekit.report.safe import plain

    for line in text.split("\n"):
        typer.echo(plain(line), err=True)


def emit(text: str) -> None:
    """Write data to standard output; leave quietly when its reader (``| head``) has gone."""
    encoding = sys.stdout.encoding or "utf-8"
    writable = text.encode(encoding, "replace").decode(encoding)
    try:
        sys.stdout.write(writable if writable.endswith("\n") else f"{writable}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        raise typer.Exit(_SIGPIPE_EXIT) from None


def stdout_console() -> Console:
    """The console of standard output: coloured on a terminal only, and nothing in a text is markup or emoji to it."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False)


def show(renderable: RenderableType) -> None:
    """Print a rich renderable to standard output."""
    console = stdout_console()
    with console.capture() as captured:  # rich would answer a closed pipe with exit code 1, which is a verdict of ours
        console.print(renderable)
    emit(captured.get())


def page(*, top: int = 0, command: str = "") -> Page:
    """What the report is laid out for: standard output's width, and its glyphs where it has them."""
    from tracekit.report.page import Page

    console = stdout_console()
    return Page(width=console.width, ascii_only=console.options.ascii_only, top=top, command=command)
