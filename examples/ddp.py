"""Data parallelism: gradients are all-reduced in buckets while the backward still runs.

    python examples/ddp.py --ranks 4 --out traces/ && tracekit analyze traces/

What slows such runs can be switched on, to see what the report says of it: ``--late-rank 1 --late-ms 20 --late-by data``,
``--data-ms 15``, ``--bucket-mb 0.01``, ``--sync``, ``--host-ms 10``, ``--garbage``, ``--recompute``.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

import harness
from tracekit.instrument import span
from transformer import BATCH, LENGTH, VOCABULARY, loss_of, transformer

CAUSES = ("compute", "host", "data", "gc")
"""What can make a rank late."""


class Tokens(IterableDataset[torch.Tensor]):
    """Random sequences, each of which takes *delay* seconds to make."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            time.sleep(self.delay)
            yield torch.randint(VOCABULARY, (LENGTH + 1,))


def train(options: argparse.Namespace) -> None:
    model = DistributedDataParallel(
        transformer(options.layers, recompute=options.recompute), bucket_cap_mb=options.bucket_mb
    )
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    late = dict.fromkeys(CAUSES, 0.0)
    if dist.get_rank() == options.late_rank:
        late[options.late_by] = options.late_ms / 1000
    delay = options.data_ms / 1000 + late["data"]
    batches = iter(DataLoader(Tokens(delay / BATCH), batch_size=BATCH))

    def step() -> None:
        tokens = next(batches)
        with span("forward"):
            loss = loss_of(model(tokens[:, :-1]), tokens[:, 1:])
        compute_for(late["compute"])
        if options.garbage:
            gc.collect()
        collect_for(late["gc"])
        time.sleep(options.host_ms / 1000 + late["host"])  # Python between the device's kernels
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if options.sync:
            for parameter in model.parameters():
                parameter.detach().norm().item()

    harness.loop(step, options, flops=True, tokens_per_step=BATCH * LENGTH, strategy={"dp": dist.get_world_size()})


def compute_for(seconds: float) -> None:
    """Keep this rank's processor busy with matrix products."""
    matrix = torch.full((256, 256), 0.001)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        matrix = torch.tanh(matrix @ matrix)


def collect_for(seconds: float) -> None:
    """Keep Python's garbage collector busy with reference cycles."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        cycles: list[list[object]] = [[] for _ in range(20_000)]
        for cycle in cycles:
            cycle.append(cycle)
        gc.collect()


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--bucket-mb", type=float, default=0.1, help="size of a gradient bucket")
    parser.add_argument("--data-ms", type=float, default=0.0, help="time that the loader takes for a batch")
    parser.add_argument(
        "--host-ms", type=float, default=0.0, help="time between forward and backward in which only Python runs"
    )
    parser.add_argument("--late-rank", type=int, default=-1, help="rank that is late")
    parser.add_argument("--late-ms", type=float, default=0.0, help="by how much")
    parser.add_argument("--late-by", choices=CAUSES, default="compute", help="what makes it late")
    parser.add_argument("--sync", action="store_true", help="fetch every parameter's norm to the host in every step")
    parser.add_argument("--garbage", action="store_true", help="collect garbage in every step")
    parser.add_argument("--recompute", action="store_true", help="activation checkpointing of every layer")
    harness.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
