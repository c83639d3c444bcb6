"""Three dimensions: data parallel (FSDP2) x pipeline (1F1B) x tensor parallel.

python examples/three_d.py --ranks 8 --out traces/            2 x 2 x 2
python examples/three_d.py --ranks 4 --dp 1 --out traces/     1 x 2 x 2
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import harness
from tensor_parallel import parallelize
from transformer import BATCH, LENGTH, Block, Transformer, batch, loss_of

STAGES, MICROBATCHES = 2, 4


def train(options: argparse.Namespace) -> None:
    tp = dist.get_world_size() // (options.dp * STAGES)
    mesh = init_device_mesh("cpu", (options.dp, STAGES, tp), mesh_dim_names=("dp_shard", "pp", "tp"))
    index = mesh["pp"].get_local_rank()
    first, last = index == 0, index == STAGES - 1
    model = Transformer([Block()], first=first, last=last)
    parallelize(model, mesh["tp"], sequence=False)
    if options.dp > 1:
        fully_shard(model, mesh=mesh["dp_shard"], reshard_after_forward=False)
    stage = PipelineStage(model, index, STAGES, torch.device("cpu"), group=mesh["pp"].get_group())
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step() -> None:
        tokens, target = batch()
        schedule.step(*((tokens,) if first else ()), **({"target": target} if last else {}))
        optimizer.step()
        optimizer.zero_grad()

    strategy = {"dp": options.dp, "pp": STAGES, "tp": tp, "schedule": "1f1b", "microbatches": MICROBATCHES}
    harness.loop(step, options, tokens_per_step=BATCH * LENGTH, strategy=strategy)


def main() -> None:
    parser = harness.arguments(__doc__, ranks=8)
    parser.add_argument("--dp", type=int, default=2, help="data-parallel replicas")
    harness.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
