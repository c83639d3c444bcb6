"""A small run on disk for the commands: two ranks, three steps, one collective and one gap in each."""

from __future__ import annotations

from pathlib import Path

from tests.readers.kineto_text import event, kernel, launch, step, text, write

STEP_US = 1000.0


def write_run(folder: Path) -> Path:
    """Two ranks of *folder*, rank 1 computing half as long."""
    for rank in (0, 1):
        events = [e for number in range(3) for e in _step(number, 400.0 if rank == 0 else 200.0)]
        header = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
        write(folder / f"rank{rank}.json", text(*events, header=header))
    return folder


def _step(number: int, compute_us: float) -> list[dict[str, object]]:
    start, first = number * STEP_US, number * 10 + 1
    return [
        step(number, start, STEP_US - 1),
        event("aten::mm", start + 5, 20.0),
        launch(first, start + 10, 5.0),
        launch(first + 1, start + 30, 5.0),
        kernel("gemm_kernel", start + 20, compute_us, correlation=first),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 500, 100.0, stream=20, correlation=first + 1),
    ]
