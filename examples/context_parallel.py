"""Context parallelism: the sequence is split over the ranks, and keys and values travel around a ring (ring attention).

    python examples/context_parallel.py --ranks 4 --out traces/

While a rank attends to one block of keys and values, the next one is already on its way. The partial results are merged with the
online softmax. Causal: blocks of later ranks are received and passed on, but not attended to, so that the last rank works most.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import harness
from transformer import BATCH, HEAD, LENGTH, WIDTH, Block, Transformer, batch, loss_of


def exchange(*tensors: torch.Tensor) -> tuple[list[torch.Tensor], list[dist.Work]]:
    """Send *tensors* to the next rank of the ring and receive the previous one's; wait for the works before use."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensors = tuple(tensor.contiguous() for tensor in tensors)
    received = [torch.empty_like(tensor) for tensor in tensors]
    operations = [
        operation
        for mine, theirs in zip(tensors, received, strict=True)
        for operation in (
            dist.P2POp(dist.isend, mine, (rank + 1) % ranks),
            dist.P2POp(dist.irecv, theirs, (rank - 1) % ranks),
        )
    ]
    return received, dist.batch_isend_irecv(operations)


def scores(q: torch.Tensor, k: torch.Tensor, *, diagonal: bool) -> torch.Tensor:
    found = q @ k.transpose(-1, -2) / HEAD**0.5
    return found.masked_fill(torch.ones_like(found, dtype=torch.bool).triu(1), float("-inf")) if diagonal else found


class RingAttention(torch.autograd.Function):
    """Causal attention of the rank's queries to everybody's keys and values."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        out, weight = torch.zeros_like(q), torch.full((*q.shape[:-1], 1), float("-inf"))
        block = [k, v]
        for distance in range(ranks):
            coming, works = exchange(*block) if distance + 1 < ranks else ([], [])
            if distance <= rank:
                s = scores(q, block[0], diagonal=distance == 0)
                here = s.logsumexp(-1, keepdim=True)
                total = torch.logaddexp(weight, here)
                out = out * (weight - total).exp() + (s - total).exp() @ block[1]
                weight = total
            for work in works:
                work.wait()
            block = coming
        ctx.save_for_backward(q, k, v, out, weight)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q, k, v, out, weight = ctx.saved_tensors
        rank, ranks = dist.get_rank(), dist.get_world_size()
        grad = gradients[0]
        through = (grad * out).sum(-1, keepdim=True)
        grad_q = torch.zeros_like(q)
        # The gradients of a block travel with it and are home after a whole round.
        block = [k, v, torch.zeros_like(k), torch.zeros_like(v)]
        for distance in range(ranks):
            if distance <= rank:
                p = (scores(q, block[0], diagonal=distance == 0) - weight).exp()
                ds = p * (grad @ block[1].transpose(-1, -2) - through) / HEAD**0.5
                grad_q += ds @ block[0]
                block[2], block[3] = block[2] + ds.transpose(-1, -2) @ q, block[3] + p.transpose(-1, -2) @ grad
            block, works = exchange(*block)
            for work in works:
                work.wait()
        return grad_q, block[2], block[3]


class ContextParallelAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return self.o(RingAttention.apply(q, k, v).transpose(1, 2).flatten(2))


def train(options: argparse.Namespace) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = Transformer([Block(attention=ContextParallelAttention()) for _ in range(2)])
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def step() -> None:
        tokens, target = (each.chunk(ranks, 1)[rank] for each in batch(length=LENGTH * ranks))
        loss_of(model(tokens), target).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()

    harness.loop(step, options, tokens_per_step=BATCH * LENGTH, strategy={"cp": ranks})


if __name__ == "__main__":
    harness.run(train, harness.arguments(__doc__).parse_args())
