"""What every example needs: processes, a process group, and a loop that is recorded.

Each example runs alone (``python examples/ddp.py --ranks 4``: it starts its ranks on this machine, over gloo) or as one rank under
``torchrun``. With ``--out DIR`` its steps are recorded, and ``tracekit analyze DIR`` reads them.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from tracekit.instrument import profile

WARM_UP = 2


def arguments(description: str | None, *, ranks: int = 2) -> argparse.ArgumentParser:
    """A parser with the options that all examples share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=ranks, help="processes to start (not under torchrun)")
    parser.add_argument("--steps", type=int, default=3, help="steps to record, after a warm-up")
    parser.add_argument("--out", help="folder for the traces; nothing is recorded without it")
    return parser


def run(train: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    """Call *train* on every rank: on this one alone under torchrun, else on ``options.ranks`` new processes."""
    if "RANK" in os.environ:
        _rank(train, options)
    else:
        mp.spawn(_spawned, args=(train, options, _free_port()), nprocs=options.ranks)


def loop(step: Callable[[], object], options: argparse.Namespace, **settings: Any) -> None:
    """Run *step* with or without recording; rank 0 prints the median step."""
    if options.out:
        step = profile(options.out, warmup=WARM_UP, active=options.steps, **settings)(step)
    durations = []
    for _ in range(WARM_UP + options.steps):
        begun = time.perf_counter()
        step()
        durations.append(time.perf_counter() - begun)
    if dist.get_rank() == 0:
        print(f"step {1000 * statistics.median(durations[WARM_UP:]):.1f} ms, median of {options.steps}", flush=True)


def _spawned(rank: int, train: Callable[[argparse.Namespace], None], options: argparse.Namespace, port: int) -> None:
    place: Mapping[str, object] = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": options.ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in place.items()})
    _rank(train, options)


def _rank(train: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    train(options)
    dist.barrier()
    dist.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
