"""Two dimensions: tensor parallelism within pairs of ranks, FSDP2 over the pairs.

python examples/fsdp_tp.py --ranks 4 --out traces/
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import harness
from tensor_parallel import parallelize
from transformer import BATCH, LENGTH, batch, loss_of, transformer


def train(options: argparse.Namespace) -> None:
    pairs = dist.get_world_size() // 2
    mesh = init_device_mesh("cpu", (pairs, 2), mesh_dim_names=("dp_shard", "tp"))
    model = transformer()
    parallelize(model, mesh["tp"], sequence=False)
    for part in (*model.blocks, model):
        fully_shard(part, mesh=mesh["dp_shard"])
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step() -> None:
        tokens, target = batch()
        loss_of(model(tokens), target).backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.loop(step, options, tokens_per_step=BATCH * LENGTH, strategy={"dp": pairs, "tp": 2})


if __name__ == "__main__":
    harness.run(train, harness.arguments(__doc__, ranks=4).parse_args())
