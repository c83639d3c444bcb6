"""Pipeline stages: every chunk's forward and backward gets a range with stage, action and microbatch.

Torch's multi-stage runtime writes ranges of its own (``PP:0F0``), which include the wait for the neighbour, and its GPipe and 1F1B
schedules write none. So the stage's chunk calls are wrapped, and every schedule has the same ranges: ``tracekit.pipeline 0F0``
is the forward of microbatch 0 on stage 0, ``B`` the backward, ``I`` and ``W`` its halves (gradient of the input, of the weights).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import record_function

from tracekit.instrument.facts import Declined, Facts
from tracekit.instrument.hooks.patching import all_of, wrap
from tracekit.instrument.settings import Settings

PREFIX = "tracekit.pipeline "


def install(_facts: Facts, _settings: Settings) -> Callable[[], None]:
    try:
        from torch.distributed.pipelining.stage import _PipelineStageBase
    except ImportError:
        raise Declined("torch.distributed.pipelining is not there") from None

    def forward(stage: Any, fwd_chunk_id: int, *_args: Any, **_kwargs: Any) -> record_function:
        return record_function(f"{PREFIX}{stage.stage_index}F{fwd_chunk_id}")

    def backward(
        stage: Any, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> record_function:
        del loss, last_backward
        return record_function(f"{PREFIX}{stage.stage_index}{'B' if full_backward else 'I'}{bwd_chunk_id}")

    def weight(stage: Any, bwd_chunk_id: int, *_args: Any, **_kwargs: Any) -> record_function:
        return record_function(f"{PREFIX}{stage.stage_index}W{bwd_chunk_id}")

    return all_of(
        wrap(_PipelineStageBase, "forward_one_chunk", forward),
        wrap(_PipelineStageBase, "backward_one_chunk", backward),
        wrap(_PipelineStageBase, "backward_weight_one_chunk", weight),
    )
