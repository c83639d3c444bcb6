"""Tensor parallelism with DTensor: projections split over the ranks, all-reduces inside every layer.

python examples/tensor_parallel.py --ranks 2 --out traces/
python examples/tensor_parallel.py --sequence --out traces/   norms work on a slice of the sequence: all-gather, reduce-scatter
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import harness
from transformer import BATCH, LENGTH, Block, Transformer, batch, loss_of, transformer


def plan(*, sequence: bool) -> dict[str, ParallelStyle]:
    """How a block is split: columns of the first projections, rows of the last; between the layers whole, or by sequence."""
    between = Shard(1) if sequence else Replicate()
    styles: dict[str, ParallelStyle] = {
        **{f"attention.{name}": ColwiseParallel() for name in "qkv"},
        "attention.o": RowwiseParallel(output_layouts=between),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=between),
    }
    if sequence:
        whole = PrepareModuleInput(input_layouts=between, desired_input_layouts=Replicate())
        styles |= {
            "attention_norm": SequenceParallel(),
            "mlp_norm": SequenceParallel(),
            "attention": whole,
            "mlp": whole,
        }
    return styles


def parallelize(model: Transformer, mesh: DeviceMesh, *, sequence: bool) -> None:
    for block in model.blocks:
        assert isinstance(block, Block)
        parallelize_module(block, mesh, plan(sequence=sequence))
    if sequence:
        ends: dict[str, ParallelStyle] = {
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
        if model.embedding is not None:
            ends["embedding"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
        parallelize_module(model, mesh, ends)


def train(options: argparse.Namespace) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    model = transformer()
    parallelize(model, mesh, sequence=options.sequence)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step() -> None:
        tokens, target = batch()
        loss_of(model(tokens), target).backward()
        optimizer.step()
        optimizer.zero_grad()

    strategy = {"tp": dist.get_world_size(), "sequence_parallel": options.sequence}
    harness.loop(step, options, tokens_per_step=BATCH * LENGTH, strategy=strategy)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--sequence", action="store_true", help="sequence parallelism between the layers")
    harness.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
