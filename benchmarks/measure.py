"""Runs commands in fresh processes, in turn, and takes the operating system's own account of time and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Run:
    """What one process used."""

    seconds: float
    """Wall time."""
    cpu_seconds: float
    megabytes: float
    """Peak resident memory of the largest process."""
    output: str


@dataclass(frozen=True, slots=True)
class Case:
    """A program in Python, its arguments and the processors it may use."""

    name: str
    program: str
    arguments: tuple[str, ...]
    processors: tuple[int, ...]


def run(case: Case) -> Run:
    """Run *case* once."""
    environment = os.environ | {
        "POLARS_MAX_THREADS": str(len(case.processors)),
        "TRACEKIT_CACHE": os.environ["TRACEKIT_CACHE"],
    }
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", case.program, *case.arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, case.processors),  # noqa: PLW1509  single-threaded here
    ) as process:
        output = process.stdout.read().decode() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{case.name} failed with exit status {process.returncode}")
    return Run(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, output.strip())


def paired(cases: Sequence[Case], pairs: int) -> list[list[Run]]:
    """*pairs* rounds of all *cases* in turn, so that a machine whose speed drifts drifts for all of them."""
    runs: list[list[Run]] = [[] for _ in cases]
    for _ in range(pairs):
        for index, case in enumerate(cases):
            runs[index].append(run(case))
    return runs


def seconds(runs: Sequence[Run]) -> float:
    return median(one.seconds for one in runs)


def megabytes(runs: Sequence[Run]) -> float:
    return median(one.megabytes for one in runs)


def ratio(a: Sequence[Run], b: Sequence[Run]) -> float:
    """Median over rounds of how many times longer *a* takes than *b*."""
    return median(x.seconds / y.seconds for x, y in zip(a, b, strict=True))
