"""ZeRO-1: data parallelism whose optimizer state is sharded; each rank updates its share and broadcasts it.

python examples/zero1.py --ranks 4 --out traces/
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import harness
from transformer import BATCH, LENGTH, batch, loss_of, transformer


def train(options: argparse.Namespace) -> None:
    model = DistributedDataParallel(transformer())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, foreach=True)

    def step() -> None:
        tokens, target = batch()
        loss_of(model(tokens), target).backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.loop(step, options, flops=True, tokens_per_step=BATCH * LENGTH, strategy={"dp": dist.get_world_size()})


if __name__ == "__main__":
    harness.run(train, harness.arguments(__doc__).parse_args())
