"""Builds the text of small Kineto files, in the profiler's own layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEADER = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}}


def event(name: str = "aten::mm", ts: Any = 1.0, dur: Any = 2.0, **fields: Any) -> dict[str, Any]:
    """A complete event; *fields* override or add (``cat``, ``pid``, ``tid``, ``args``, ...)."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": 100, "ts": ts, "dur": dur, **fields}


def kernel(name: str = "gemm", ts: Any = 1.0, dur: Any = 2.0, **args: Any) -> dict[str, Any]:
    """A kernel on device 0, stream 7 unless *args* say otherwise."""
    args = {"device": 0, "stream": 7, **args}
    return event(name, ts, dur, cat="kernel", pid=args["device"], tid=args["stream"], args=args)


def launch(correlation: int, ts: Any, dur: Any = 0.5, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return event(name, ts, dur, cat="cuda_runtime", args={"correlation": correlation, "External id": correlation})


def step(number: int, ts: float, dur: float) -> dict[str, Any]:
    return event(f"ProfilerStep#{number}", ts, dur, cat="user_annotation")


def text(*events: dict[str, Any], header: dict[str, Any] = HEADER, trailer: dict[str, Any] | None = None) -> str:
    """The file's text: header keys, ``traceEvents``, trailer keys."""
    body = ",\n  ".join(json.dumps(e) for e in events)
    keys = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in header.items())
    after = "".join(f",\n{json.dumps(key)}: {json.dumps(value)}" for key, value in (trailer or {}).items())
    return "{\n" + keys + '"traceEvents": [\n  ' + body + "\n  ]" + after + "\n}\n"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
