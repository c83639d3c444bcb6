"""Layers that sleep instead of computing, so that more ranks than cores do not fight for them.

Everything else stays real: autograd, the schedule, the messages. The sleep is an operator of its own, which traces show as compute.
The gradients of input and weight are graph nodes of their own, which only an addition joins: the zero-bubble schedules run them at
different times, and a node that both pass through would run twice.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

from transformer import WIDTH


@torch.library.custom_op("timed::compute", mutates_args=())
def compute(x: torch.Tensor, milliseconds: float) -> torch.Tensor:
    """Take *milliseconds*, as a device would, and give *x* back."""
    time.sleep(milliseconds / 1000)
    return x.clone()


class _Weight(torch.autograd.Function):
    """The parameter as it is; its backward takes the time of the weight's gradient."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, milliseconds: float) -> torch.Tensor:
        ctx.milliseconds = milliseconds
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return compute(gradients[0], ctx.milliseconds), None


class _Input(torch.autograd.Function):
    """The input as it is; forward and the gradient of the input take their time."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, milliseconds: float) -> torch.Tensor:
        ctx.milliseconds = milliseconds
        return compute(x, milliseconds)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return compute(gradients[0], ctx.milliseconds), None


class TimedLayer(nn.Module):
    """x + weight, whose forward, input gradient and weight gradient take *milliseconds* each."""

    def __init__(self, milliseconds: float) -> None:
        super().__init__()
        self.milliseconds = milliseconds
        self.weight = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Input.apply(x, self.milliseconds) + _Weight.apply(self.weight, self.milliseconds)
