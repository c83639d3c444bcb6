"""A decoder-only transformer, small enough for two cores, made of the parts that parallelisation plans name."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, HEAD, LENGTH, BATCH = 256, 64, 16, 32, 8


class Attention(nn.Module):
    """Causal self-attention over as many heads as the projections (or a rank's shards of them) hold."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for part in (self.q, self.k, self.v))
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(out.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    """A pre-norm layer. *mlp* and *attention* may be another implementation of the same shape."""

    def __init__(self, mlp: nn.Module | None = None, attention: nn.Module | None = None) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.mlp = attention or Attention(), mlp or MLP()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """*blocks* between an embedding and a head; either end may be missing, for a stage of a pipeline."""

    def __init__(self, blocks: list[Block], *, first: bool = True, last: bool = True, recompute: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH) if first else None
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(WIDTH) if last else None
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False) if last else None
        self.recompute = recompute

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embedding(x) if self.embedding is not None else x
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x)) if self.head is not None and self.norm is not None else x


def transformer(layers: int = 2, *, recompute: bool = False) -> Transformer:
    return Transformer([Block() for _ in range(layers)], recompute=recompute)


def batch(size: int = BATCH, length: int = LENGTH) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens and the tokens that follow them."""
    tokens = torch.randint(VOCABULARY, (size, length + 1))
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, -2), target.flatten())
