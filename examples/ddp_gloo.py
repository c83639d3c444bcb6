"""Train a small transformer with DistributedDataParallel on gloo and record it with plain `torch.profiler`.

    python examples/ddp_gloo.py --out traces/

Two processes on this machine, no launcher, no accelerator. Each rank writes ``rank<N>.pt.trace.json.gz``; then

    tracekit analyze traces/

``--late-rank 1 --late-ms 20`` makes one rank compute longer, ``--data-ms 15`` makes the loader slow: see what the report
says of it.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, IterableDataset

VOCABULARY, WIDTH, LENGTH, BATCH = 512, 64, 32, 8
WARM_UP = 2


class Tokens(IterableDataset[torch.Tensor]):
    """Random sequences; *delay* seconds to make each."""

    def __init__(self, seed: int, delay: float) -> None:
        self.seed, self.delay = seed, delay

    def __iter__(self) -> Iterator[torch.Tensor]:
        random = torch.Generator().manual_seed(self.seed)
        while True:
            time.sleep(self.delay)
            yield torch.randint(VOCABULARY, (LENGTH + 1,), generator=random)


class Model(nn.Module):
    """Pre-norm transformer layers between an embedding and a head."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(tokens)))


def train(rank: int, options: argparse.Namespace, port: int) -> None:
    """One rank: warm up, then record ``options.steps`` steps."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=options.ranks)
    model = DistributedDataParallel(Model(options.layers), bucket_cap_mb=options.bucket_mb)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    batches = iter(DataLoader(Tokens(rank, options.data_ms / 1000 / BATCH), batch_size=BATCH))
    late = options.late_ms / 1000 if rank == options.late_rank else 0.0

    def step() -> None:
        tokens = next(batches)
        with record_function("forward"):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        compute_for(late)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    out = Path(options.out) / f"rank{rank}.pt.trace.json.gz"
    when = schedule(wait=0, warmup=WARM_UP, active=options.steps)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=when, on_trace_ready=lambda p: p.export_chrome_trace(str(out))
    ) as profiler:
        for _ in range(WARM_UP + options.steps):
            step()
            profiler.step()
    dist.destroy_process_group()


def compute_for(seconds: float) -> None:
    """Keep this rank's processor busy with matrix products."""
    matrix = torch.full((512, 512), 0.001)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        matrix = torch.tanh(matrix @ matrix)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="traces", help="folder for the traces")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="recorded steps")
    parser.add_argument("--layers", type=int, default=2, help="transformer layers")
    parser.add_argument("--bucket-mb", type=float, default=0.1, help="gradient bucket size")
    parser.add_argument("--data-ms", type=float, default=0.0, help="time the loader takes for a batch")
    parser.add_argument("--late-rank", type=int, default=-1, help="rank that computes longer")
    parser.add_argument("--late-ms", type=float, default=0.0, help="by how much")
    options = parser.parse_args()
    Path(options.out).mkdir(parents=True, exist_ok=True)
    mp.spawn(train, args=(options, free_port()), nprocs=options.ranks)


if __name__ == "__main__":
    main()
