"""`tracekit demo`: the analysis of a small run that is shipped with tracekit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import tracekit
from tracekit.cli.loading import load
from tracekit.cli.streams import page, say, show

_SAMPLE: Final = Path(tracekit.__file__).parent / "demo"
_BEFORE: Final = (
    "Two ranks train a small model in data parallel on CPUs (gloo). Rank 1 was made\n"
    "to compute 40 ms longer in every step. `tracekit analyze` says of the recording:\n"
)
_AFTER: Final = (
    "\nHow to read it: a bar is a rank's step, all on one scale. What rank 0 spends in\n"
    "communication is no slow network: it waits for rank 1, which computes longer.\n"
    "Your own: run torch.profiler on every rank, then `tracekit analyze FOLDER`;\n"
    "`tracekit doctor FOLDER` says what a recording lacks."
)


def demo() -> None:
    """Analyze a small run that comes with tracekit.

    \b
    Example:
      tracekit demo
    """  # noqa: D301  click keeps the lines of a paragraph marked with it
    from tracekit.report.text import render

    report = replace(load([str(_SAMPLE)]).analyze(), title="demo")
    say(_BEFORE)
    show(render(report, page(top=3, command="FOLDER")))
    say(_AFTER)
