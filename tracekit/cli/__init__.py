"""The command line. One file per command; errors are caught here and nowhere else.

Data goes to standard output, speech to standard error. Nothing heavy is imported before a command runs:
`tracekit --help` answers in a tenth of a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from tracekit import __version__
from tracekit.cli.analyze import analyze
from tracekit.cli.convert import convert
from tracekit.cli.demo import demo
from tracekit.cli.doctor import doctor
from tracekit.cli.explain import explain
from tracekit.cli.record import record
from tracekit.cli.streams import say
from tracekit.model.errors import ExitCode, TracekitError

DEBUG_VARIABLE: Final = "TRACEKIT_DEBUG"
COMMANDS: Final = (record, analyze, doctor, convert, explain, demo)
"""Every command, in the order of the help."""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # the coloured help costs 0.2 s at every start
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tracekit {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: tracekit analyze traces/     (or, for short: tracekit traces/)")
def tracekit(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Say where the time of a training step goes, on which ranks, and what would help."""


def main() -> None:
    """Run the command line; no traceback reaches a person."""
    try:
        app(args=with_default_command(sys.argv[1:]), prog_name="tracekit")
    except TracekitError as error:
        say(f"error: {error}")
        sys.exit(error.exit_code)
    except Exception as error:  # the last resort: a person gets one line, never a traceback
        if os.environ.get(DEBUG_VARIABLE):
            raise
        say(
            f"error: tracekit failed: {type(error).__name__}: {error}; this is a bug in tracekit: "
            f"please report it with the traceback that {DEBUG_VARIABLE}=1 shows"
        )
        sys.exit(ExitCode.NO_VERDICT)


def with_default_command(arguments: Sequence[str]) -> list[str]:
    """Read ``tracekit PATH ...`` as ``tracekit analyze PATH ...``; anything else stays as it is."""
    if arguments and arguments[0] not in {command.__name__ for command in COMMANDS} and _is_path(arguments[0]):
        return ["analyze", *arguments]
    return list(arguments)


def _is_path(argument: str) -> bool:
    """Whether *argument* is, or can only be meant as, a path: a mistyped command must not read as a missing file."""
    return not argument.startswith("-") and (Path(argument).exists() or any(mark in argument for mark in "/\\.*"))
