"""Pipeline parallelism with every schedule of `torch.distributed.pipelining`.

    python examples/pipeline.py --schedule 1f1b --ranks 4 --stage-ms 20 --out traces/

``--stage-ms`` replaces the layers' compute by sleeping, so that four ranks on two cores show the schedule and not the cores.
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

import harness
from timed import TimedLayer
from transformer import BATCH, LENGTH, Block, Transformer, batch, loss_of

SCHEDULES = {
    "gpipe": schedules.ScheduleGPipe,
    "1f1b": schedules.Schedule1F1B,
    "interleaved": schedules.ScheduleInterleaved1F1B,
    "interleaved-zero-bubble": schedules.ScheduleInterleavedZeroBubble,
    "zbv": schedules.ScheduleZBVZeroBubble,
}
SINGLE = ("gpipe", "1f1b")


def stage_indices(schedule: str, rank: int, ranks: int) -> list[int]:
    """Stages of *rank*: one, or two that loop around the ranks, or two that go there and come back (the V of ZBV)."""
    if schedule in SINGLE:
        return [rank]
    return [rank, 2 * ranks - 1 - rank] if schedule == "zbv" else [rank, rank + ranks]


def build(index: int, stages: int, options: argparse.Namespace) -> Transformer:
    """The part of the model that stage *index* holds."""
    blocks = [Block()]
    if options.stage_ms:
        slow = 2.0 if options.unbalanced and index == 1 else 1.0
        blocks = [Block(mlp=torch.nn.Identity(), attention=TimedLayer(options.stage_ms * slow))]
        blocks[0].attention_norm = blocks[0].mlp_norm = torch.nn.Identity()
    elif options.unbalanced and index == 1:
        blocks += [Block() for _ in range(3)]
    return Transformer(blocks, first=index == 0, last=index == stages - 1)


def train(options: argparse.Namespace) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = stage_indices(options.schedule, rank, ranks)
    count = ranks * len(mine)
    stages = [PipelineStage(build(i, count, options), i, count, torch.device("cpu")) for i in mine]
    kind = SCHEDULES[options.schedule]
    schedule = kind(stages[0] if options.schedule in SINGLE else stages, options.microbatches, loss_fn=loss_of)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, foreach=True)
    first, last = 0 in mine, count - 1 in mine

    def step() -> None:
        tokens, target = batch(options.microbatches * 2)
        schedule.step(*((tokens,) if first else ()), **({"target": target} if last else {}))
        optimizer.step()
        optimizer.zero_grad()

    strategy = {"pp": ranks, "schedule": options.schedule, "microbatches": options.microbatches}
    harness.loop(step, options, tokens_per_step=BATCH * LENGTH, strategy=strategy)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--schedule", choices=SCHEDULES, default="1f1b")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument(
        "--stage-ms",
        type=float,
        default=0.0,
        help="sleep so long for a stage's forward, and for each half of its backward",
    )
    parser.add_argument("--unbalanced", action="store_true", help="make stage 1 heavier than the others")
    harness.run(train, parser.parse_args())


if __name__ == "__main__":
    main()
