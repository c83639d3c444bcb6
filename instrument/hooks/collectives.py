"""Collectives of every backend, from torch's flight recorder: group, sequence number, sizes and types.

The profiler writes this for NCCL only. The flight recorder keeps the last operations (``TORCH_FR_BUFFER_SIZE``, 2000 by default) of
gloo as well; point-to-point operations of gloo are not in it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from tracekit.instrument.facts import Declined, Facts
from tracekit.instrument.process import distributed
from tracekit.instrument.settings import Settings
from tracekit.model.dtypes import bytes_of_dtype
from tracekit.model.records import Collective


def install(facts: Facts, _settings: Settings) -> Callable[[], None]:
    dump = _dump_function()
    begun = time.time_ns()

    def gather() -> None:
        if distributed() is None:
            return
        nonlocal begun
        entries = json.loads(dump(includeCollectives=True, onlyActive=False)).get("entries", [])
        facts.collectives = tuple(sorted(_collectives(entries, begun), key=lambda each: each.created_ns))
        oldest = min(entries, key=lambda entry: entry["record_id"], default=None)
        if oldest is not None and oldest["record_id"] and oldest["time_created_ns"] > begun:
            facts.dropped["collectives overwritten in the flight recorder: raise TORCH_FR_BUFFER_SIZE"] = 1
        begun = time.time_ns()

    facts.at_end.append(gather)
    return lambda: None


def _dump_function() -> Callable[..., bytes]:
    try:
        from torch._C import _distributed_c10d
    except ImportError:
        raise Declined("torch is built without torch.distributed") from None
    dump: Callable[..., bytes] | None = getattr(_distributed_c10d, "_dump_fr_trace_json", None)
    if dump is None:
        raise Declined(
            "this torch has no flight recorder for all backends: sizes and groups come from NCCL's metadata only"
        )
    return dump


def _collectives(entries: list[dict[str, Any]], since_ns: int) -> Iterator[Collective]:
    for entry in entries:
        if entry["time_created_ns"] >= since_ns:
            yield Collective(
                group=entry["process_group"][0],
                op=entry["profiling_name"],
                seq=entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"],
                created_ns=entry["time_created_ns"],
                point_to_point=entry["is_p2p"],
                dtype=next(iter(entry["input_dtypes"]), ""),
                in_bytes=_size(entry["input_sizes"], entry["input_dtypes"]),
                out_bytes=_size(entry["output_sizes"], entry["output_dtypes"]),
            )


def _size(shapes: list[list[int]], dtypes: list[str]) -> int:
    return sum(math.prod(shape) * (bytes_of_dtype(dtype) or 0) for shape, dtype in zip(shapes, dtypes, strict=False))
