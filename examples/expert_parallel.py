"""Expert parallelism: each rank holds some experts of a mixture; tokens go to them and back by all-to-all.

python examples/expert_parallel.py --ranks 4 --out traces/
python examples/expert_parallel.py --skew 3 --out traces/     the router prefers the first experts: their ranks are busy longest
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import harness
from tracekit.instrument import routing
from transformer import BATCH, LENGTH, WIDTH, Block, Transformer, batch, loss_of

EXPERTS_PER_RANK = 2


class Experts(nn.Module):
    """The rank's share of the experts."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.randn(EXPERTS_PER_RANK, WIDTH, 4 * WIDTH) / 8)
        self.down = nn.Parameter(torch.randn(EXPERTS_PER_RANK, 4 * WIDTH, WIDTH) / 16)

    def forward(self, tokens: torch.Tensor, counts: list[int]) -> torch.Tensor:
        """*tokens* in the order of the experts, of which each gets its count."""
        parts = zip(tokens.split(counts), self.up, self.down, strict=True)
        return torch.cat([nn.functional.gelu(part @ up) @ down for part, up, down in parts])


class MoE(nn.Module):
    """Top-1 routing over all ranks' experts."""

    def __init__(self, layer: str, skew: float) -> None:
        super().__init__()
        self.layer = layer
        self.experts = EXPERTS_PER_RANK * dist.get_world_size()
        self.router = nn.Linear(WIDTH, self.experts, bias=False)
        self.register_buffer("preference", torch.linspace(skew, 0.0, self.experts))
        self.mine = Experts()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(0, 1)
        gate, expert = (self.router(tokens) + self.preference).softmax(-1).max(-1)
        order = expert.argsort()
        sent = expert.bincount(minlength=self.experts)
        routing(self.layer, sent)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        per_rank = received.view(-1, EXPERTS_PER_RANK)
        out_sizes, in_sizes = per_rank.sum(1).tolist(), sent.view(-1, EXPERTS_PER_RANK).sum(1).tolist()
        arrived = AllToAll.apply(tokens[order], out_sizes, in_sizes)
        # Arrived by sender, wanted by expert
        by_expert = (
            torch.arange(EXPERTS_PER_RANK)
            .repeat(len(per_rank))
            .repeat_interleave(per_rank.flatten())
            .argsort(stable=True)
        )
        worked = self.mine(arrived[by_expert], per_rank.sum(0).tolist())
        back = AllToAll.apply(torch.empty_like(worked).index_copy(0, by_expert, worked), in_sizes, out_sizes)
        result = torch.empty_like(tokens).index_copy(0, order, back)
        return (gate.unsqueeze(-1) * result).view_as(x)


class AllToAll(torch.autograd.Function):
    """Dispatch (or combine) tokens; the backward goes the other way."""

    @staticmethod
    def forward(ctx: Any, tokens: torch.Tensor, out_sizes: list[int], in_sizes: list[int]) -> torch.Tensor:
        ctx.sizes = in_sizes, out_sizes
        out = tokens.new_empty(sum(out_sizes), tokens.shape[1])
        dist.all_to_all_single(out, tokens.contiguous(), out_sizes, in_sizes)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        out_sizes, in_sizes = ctx.sizes
        out = gradients[0].new_empty(sum(out_sizes), gradients[0].shape[1])
        dist.all_to_all_single(out, gradients[0].contiguous(), out_sizes, in_sizes)
        return out, None, None


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(dist.get_rank())
    model = Transformer([Block(mlp=MoE(f"layer {i}", options.skew)) for i in range(2)])
    shared = [p for name, p in model.named_parameters() if ".mine." not in name]
    for parameter in shared:
        dist.broadcast(parameter.detach(), 0)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def step() -> None:
        tokens, target = batch()
        loss_of(model(tokens), target).backward()
        for parameter in shared:  # the rest of the model is data-parallel
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
        optimizer.step()
        optimizer.zero_grad()

    harness.loop(
        step,
        options,
        tokens_per_step=BATCH * LENGTH,
        strategy={"ep": dist.get_world_size(), "dp": dist.get_world_size()},
    )


def main() -> None:
    parser = harness.arguments(__doc__, ranks=4)
    parser.add_argument("--skew", type=float, default=0.0, help="how much the router prefers the first experts")
    harness.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
