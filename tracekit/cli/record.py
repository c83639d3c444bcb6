"""`tracekit record`: run a training command, untouched, and record its steps."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer

from tracekit.cli.streams import say
from tracekit.model.errors import UsageError

_LEFT_TO_THE_CHILD = (signal.SIGINT, signal.SIGTERM)


def record(  # noqa: PLR0913, PLR0917  one parameter per option
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The training command.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for the traces.")] = Path("traces"),
    skip: Annotated[int, typer.Option(min=0, help="Steps before anything is done.")] = 0,
    warmup: Annotated[int, typer.Option(min=0, help="Steps with the profiler running that are thrown away.")] = 1,
    active: Annotated[int, typer.Option(min=1, help="Steps to record.")] = 3,
    repeat: Annotated[int, typer.Option(min=1, help="How often to warm up and record.")] = 1,
    ranks: Annotated[str, typer.Option(help="Ranks to record: all, every:N, or a list such as 0,2-3.")] = "all",
    shapes: Annotated[bool, typer.Option("--shapes", help="Record the shapes of operators' inputs.")] = False,
    stacks: Annotated[bool, typer.Option("--stacks", help="Record Python stacks (large files, slow steps).")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Record the allocator's events.")] = False,
    flops: Annotated[bool, typer.Option("--flops", help="Count a step's floating-point operations.")] = False,
    module_depth: Annotated[int, typer.Option(min=0, help="Depth of module names to annotate; 0 for none.")] = 0,
    tokens_per_step: Annotated[int, typer.Option(min=0, help="Tokens that one rank processes in a step.")] = 0,
) -> None:
    """Run a training command and record its steps; the script stays as it is.

    Steps are found where an optimizer steps. The first one is never recorded: it is where the recording begins. The exit
    code is the command's own.

    \b
    Examples:
      tracekit record -- torchrun --nproc-per-node 8 train.py --config small.toml
      tracekit record --skip 20 --active 5 -o traces/ -- srun python train.py
      tracekit record -- python train.py
    """  # noqa: D301  click keeps the lines of a paragraph marked with it
    from tracekit.instrument.settings import VARIABLE, SettingsError, make, with_ranks

    given: dict[str, object] = {
        "out": str(out.absolute()), "skip": skip, "warmup": warmup, "active": active, "repeat": repeat, "ranks": ranks,
        "shapes": shapes, "stacks": stacks, "memory": memory, "flops": flops, "module_depth": module_depth,
        "tokens_per_step": tokens_per_step,
    }  # fmt: skip
    try:
        settings = make(with_ranks(given))
    except SettingsError as error:
        raise UsageError(str(error)) from None
    begun = time.time()
    code = _run(command, {VARIABLE: settings.to_json(), "PYTHONPATH": _python_path()})
    traces = [path for path in _traces(out) if path.stat().st_mtime >= begun - 1]
    if traces:
        say(
            f"recorded {len(traces)} {'trace' if len(traces) == 1 else 'traces'} in {out}; next: tracekit analyze {out}"
        )
    else:
        say(
            f"nothing was recorded in {out}: fewer than {skip + warmup + 2} optimizer steps were seen in a Python process of "
            "this environment; record fewer with --skip and --warmup, or put `with tracekit.profile():` around the loop"
        )
    raise typer.Exit(code)


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run *command* as a shell would: signals go to it, and its exit code is ours."""
    before = {number: signal.getsignal(number) for number in _LEFT_TO_THE_CHILD}
    try:
        child = subprocess.Popen(command, env=os.environ | environment)
    except OSError as error:
        raise UsageError(
            f"cannot be run ({error.strerror})",
            where=command[0],
            remedy="give the command after --, as you would type it",
        ) from None
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child as well
        signal.signal(signal.SIGTERM, lambda number, _frame: child.send_signal(number))
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _python_path() -> str:
    from tracekit import instrument

    startup = Path(instrument.__file__ or "").parent / "startup"
    return os.pathsep.join([str(startup), *filter(None, [os.environ.get("PYTHONPATH")])])


def _traces(folder: Path) -> list[Path]:
    from tracekit.model.records import TRACE_SUFFIX

    return sorted(folder.glob(f"*{TRACE_SUFFIX}")) if folder.is_dir() else []
