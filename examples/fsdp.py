"""FSDP2: parameters sharded over the ranks (ZeRO-3), or kept whole between forward and backward (ZeRO-2), or HSDP.

python examples/fsdp.py --zero 3 --ranks 4 --out traces/
python examples/fsdp.py --hsdp --ranks 4 --out traces/        shards in pairs, replicates the pairs
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import harness
from transformer import BATCH, LENGTH, batch, loss_of, transformer


def train(options: argparse.Namespace) -> None:
    ranks = dist.get_world_size()
    if options.hsdp:
        mesh = init_device_mesh("cpu", (ranks // 2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    else:
        mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("dp_shard",))
    model = transformer(recompute=options.recompute)
    for part in (*model.blocks, model):
        fully_shard(part, mesh=mesh, reshard_after_forward=options.zero == 3)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def step() -> None:
        tokens, target = batch()
        loss_of(model(tokens), target).backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.loop(step, options, tokens_per_step=BATCH * LENGTH, strategy={"dp": ranks, "zero": options.zero})


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--zero", type=int, choices=(2, 3), default=3, help="2: parameters stay whole after forward")
    parser.add_argument("--hsdp", action="store_true", help="shard within pairs of ranks, replicate over the pairs")
    parser.add_argument("--recompute", action="store_true", help="activation checkpointing of every layer")
    harness.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
