"""Actions of pipeline schedules, from the ranges that tracekit's hook or torch's own runtime writes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.model.tables import PIPELINE
from tracekit.readers.kineto.columns import KIND_CODE
from tracekit.readers.kineto.events import ABSENT
from tracekit.readers.kineto.trace import Trace

Array = npt.NDArray[Any]

_OURS = "tracekit.pipeline "
_ACTION = re.compile(
    r"(?:tracekit\.pipeline |PP:)(\d{1,9})(F|B|I|W|SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD|REDUCE_GRAD)(\d{0,9})"
)
_SINGLE_STAGE = re.compile(r"(Forward|Backward) (\d{1,9})")
"""What torch's GPipe schedule writes: no stage."""
_COMPUTE = frozenset("FBIW")


def table(trace: Trace, step: Array) -> pl.DataFrame:
    """The ``pipeline`` table of *trace*.

    Where tracekit's hook recorded the stages' own work, torch's ranges for the same actions are left out: they include the
    wait for the neighbour.
    """
    actions = {code: action for code, name in enumerate(trace.names) if (action := _parse(name)) is not None}
    ours = {code for code in actions if trace.names[code].startswith(_OURS)}
    if ours:
        actions = {code: a for code, a in actions.items() if code in ours or a[1] not in _COMPUTE}
    elif any(stage != ABSENT for stage, _, _ in actions.values()):
        actions = {code: a for code, a in actions.items() if a[0] != ABSENT}
    rows = np.flatnonzero(np.isin(trace["name"], list(actions)) & (trace["kind"] == KIND_CODE["annotation"]))
    found = [actions[code] for code in trace["name"][rows].tolist()]
    stages = sorted({stage for stage, _, _ in found if stage != ABSENT})
    chunk_of = {stage: chunk for chunk, stage in enumerate(stages)}
    frame = pl.DataFrame(
        {
            "stage": [stage for stage, _, _ in found],
            "chunk": [chunk_of.get(stage, ABSENT) for stage, _, _ in found],
            "microbatch": [microbatch for _, _, microbatch in found],
            "action": pl.Series([action for _, action, _ in found], dtype=pl.String),
            "lane": trace["lane"][rows],
            "start_ns": trace["start_ns"][rows],
            "dur_ns": trace["dur_ns"][rows],
            "step": step[rows],
        }
    )
    nullable = ("stage", "chunk", "microbatch", "step")
    return frame.select(
        (pl.when(pl.col(name) >= 0).then(pl.col(name)) if name in nullable else pl.col(name)).cast(dtype).alias(name)
        for name, dtype in PIPELINE.schema.items()
        if name in frame.columns
    ).sort("start_ns")


def _parse(name: str) -> tuple[int, str, int] | None:
    """(stage, action, microbatch) that a range's *name* stands for, `ABSENT` where it says none."""
    if match := _ACTION.fullmatch(name):
        return int(match[1]), match[2], int(match[3]) if match[3] else ABSENT
    if match := _SINGLE_STAGE.fullmatch(name):
        return ABSENT, match[1][0], int(match[2])
    return None
