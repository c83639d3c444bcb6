"""Reads traces into the store, in this process or as a child: ``python -m tracekit.engine.worker``.

A child takes one request a line on standard input and answers with one JSON line each: progress, then the outcome. Children
are plain subprocesses and not `multiprocessing` ones, because those run the user's main script once more, which a script
without a ``__main__`` guard does not survive.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from tracekit.engine.messages import Answer, Done, Progress, Request
from tracekit.model.errors import TracekitError
from tracekit.readers import dispatch
from tracekit.store import recordings

_PROGRESS_EVERY = 8 << 20


def carry_out(request: Request, progress: Callable[[int], None]) -> Done:
    """Read and write one file; an unreadable one is an answer, not an exception."""
    outcome = _carry_out(request, progress)
    if outcome.error:
        shutil.rmtree(request.folder, ignore_errors=True)
    return outcome


def _carry_out(request: Request, progress: Callable[[int], None]) -> Done:
    try:
        found = dispatch.read(Path(request.path), progress)
    except TracekitError as error:
        return Done("; ".join(part for part in (error.what, error.remedy) if part))
    except OSError as error:
        return Done(error.strerror or str(error))
    except MemoryError:
        return Done("out of memory while reading it")
    try:
        recordings.write(found, Path(request.folder))
    except (OSError, pl.exceptions.PolarsError) as error:  # a full disk, mostly
        return Done(str(error), unwritable=True)
    return Done()


def main() -> None:
    """Serve requests until standard input closes."""
    encode, decoder = msgspec.json.encode, msgspec.json.Decoder(Request)
    reported = 0

    def say(answer: Answer) -> None:
        sys.stdout.buffer.write(encode(answer) + b"\n")
        sys.stdout.buffer.flush()

    def progress(bytes_done: int) -> None:
        nonlocal reported
        if bytes_done - reported >= _PROGRESS_EVERY:
            reported = bytes_done
            say(Progress(bytes_done))

    for line in sys.stdin.buffer:
        reported = 0
        say(carry_out(decoder.decode(line), progress))
    os._exit(0)  # everything is written: taking the interpreter down in order would cost whoever waits 40 ms


if __name__ == "__main__":
    main()
