"""Where reading runs: in this process, or in child processes when there is enough of it to pay for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from queue import SimpleQueue

import msgspec

from tracekit.engine.messages import Answer, Done, Progress, Request

_WORTH_A_CHILD = 16 << 20
"""Bytes below which a child's start (0.3 s) costs more than it saves."""

OnProgress = Callable[[int, int], None]
"""Called with the request's index and the bytes of its file consumed so far."""
OnDone = Callable[[int, Done], None]


def available_cpus() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(requests: Sequence[Request], sizes: Sequence[int], workers: int | None, on_progress: OnProgress) -> list[Done]:
    """Carry out *requests* and return their outcomes in order. *sizes* are the files' bytes, for deciding where to run."""
    if not requests:
        return []
    count = min(workers or available_cpus(), len(requests))
    if count <= 1 or (workers is None and sum(sizes) < _WORTH_A_CHILD):
        from tracekit.engine.worker import carry_out  # brings the readers, which only who reads needs

        return [carry_out(request, partial(on_progress, index)) for index, request in enumerate(requests)]
    waiting: SimpleQueue[int | None] = SimpleQueue()
    for index in sorted(range(len(requests)), key=lambda i: -sizes[i]):  # long files first: no straggler at the end
        waiting.put(index)
    for _ in range(count):
        waiting.put(None)
    outcomes: list[Done] = [Done("not read")] * len(requests)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(_serve, waiting, requests, outcomes, on_progress) for _ in range(count)]
        import_module("tracekit.engine.assemble")  # what comes next, imported while the children start and read
        for future in futures:
            future.result()
    return outcomes


def _serve(
    waiting: SimpleQueue[int | None], requests: Sequence[Request], outcomes: list[Done], on_progress: OnProgress
) -> None:
    """One thread and its child: takes requests until there are none. A child that dies costs its request."""
    child = None
    while (index := waiting.get()) is not None:
        child = child or _start()
        outcome = _ask(child, requests[index], partial(on_progress, index))
        if outcome is None:
            outcome = Done(f"the reading process died (exit status {_end(child)}); the machine may be out of memory")
            child = None
        outcomes[index] = outcome
    if child is not None:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> int:
    """Close the child's pipes, upon which it ends, and return its exit status."""
    with suppress(BrokenPipeError):
        child.communicate()
    return child.wait()


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tracekit.engine.worker"]
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(child: subprocess.Popen[bytes], request: Request, on_progress: Callable[[int], None]) -> Done | None:
    """Send *request* and wait for its outcome; None if the child died."""
    if child.stdin is None or child.stdout is None:
        return None
    try:
        child.stdin.write(msgspec.json.encode(request) + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        return None
    for line in child.stdout:
        answer = msgspec.json.decode(line, type=Answer)
        if isinstance(answer, Progress):
            on_progress(answer.bytes_done)
        else:
            return answer
    return None
