"""What recording costs a training loop, in rounds of all ways in turn: bare, `torch.profiler` alone, tracekit, the step timer.

    python -m benchmarks.overhead [--rounds 20]

One process, one core, steps of about 10 ms. The ratio of a round compares neighbours in time; the median of the rounds is printed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity

from tracekit.instrument import StepTimer, profile

STEPS = 12
"""Steps of a block; the first two are warm-up, and the last one pays for the end of the profiler's cycle."""
WARM_UP = 2

Mark = Callable[[], None]


@contextmanager
def bare(_folder: Path) -> Iterator[Mark]:
    yield lambda: None


@contextmanager
def torch_profiler(folder: Path) -> Iterator[Mark]:
    schedule = torch.profiler.schedule(wait=0, warmup=WARM_UP, active=STEPS - WARM_UP, repeat=1)
    with torch.profiler.profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule,
        on_trace_ready=lambda p: p.export_chrome_trace(str(folder / "torch.json.gz")),
    ) as p:
        yield p.step


@contextmanager
def tracekit(folder: Path) -> Iterator[Mark]:
    with profile(folder / "tracekit", warmup=WARM_UP, active=STEPS - WARM_UP) as p:
        yield p.step


@contextmanager
def step_timer(folder: Path) -> Iterator[Mark]:
    with StepTimer(str(folder / "timer")) as timer:
        yield timer.step


WAYS = (bare, torch_profiler, tracekit, step_timer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(64, 256)

    def step() -> None:
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    order = random.Random(0)
    steps: dict[str, list[float]] = {way.__name__: [] for way in WAYS}
    last: dict[str, list[float]] = {way.__name__: [] for way in WAYS}
    for number in range(options.rounds + 1):
        for way in order.sample(WAYS, len(WAYS)):  # nobody always comes after the same one
            with tempfile.TemporaryDirectory() as folder, way(Path(folder)) as mark:
                times = [_timed(step, mark) for _ in range(STEPS)]
            if number:  # the first round warms up the machine
                steps[way.__name__].append(min(times[WARM_UP:-1]))  # what disturbs a shared machine only ever adds
                last[way.__name__].append(times[-1])
    print(f"{'':16}{'step':>10}{'to bare':>10}{'to torch':>10}{'last step':>12}")
    for name, found in steps.items():
        to = {base: _ratio(found, steps[base]) for base in ("bare", "torch_profiler")}
        print(
            f"{name:16}{1000 * statistics.median(found):7.2f} ms{to['bare']:9.3f}x{to['torch_profiler']:9.3f}x"
            f"{1000 * statistics.median(last[name]):9.1f} ms"
        )


def _timed(step: Callable[[], None], mark: Mark) -> float:
    begun = time.perf_counter()
    step()
    mark()
    return time.perf_counter() - begun


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
