"""What tracekit's recorder wrote beside a trace."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tracekit.model.records import SIDECAR_SUFFIX, SIDECAR_VERSION, TRACE_SUFFIX, Sidecar

_MOST_BYTES = 64 << 20


def trace_of(path: Path) -> Path | None:
    """The trace that the sidecar *path* belongs to; None if *path* is no sidecar, or its trace is gone."""
    if not path.name.endswith(SIDECAR_SUFFIX):
        return None
    trace = path.with_name(path.name.removesuffix(SIDECAR_SUFFIX) + TRACE_SUFFIX)
    return trace if trace.exists() else None


def beside(trace: Path) -> tuple[Sidecar | None, str]:
    """The sidecar of *trace*, and what a person should know if there is one that cannot be used."""
    path = trace.with_name(trace.name.removesuffix(TRACE_SUFFIX) + SIDECAR_SUFFIX)
    if not trace.name.endswith(TRACE_SUFFIX) or not path.is_file():
        return None, ""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None, f"{path.name} is too large for a sidecar and was left out"
        sidecar = msgspec.json.decode(path.read_bytes(), type=Sidecar)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, f"{path.name} cannot be read and was left out ({error})"
    if sidecar.version > SIDECAR_VERSION:
        return None, f"{path.name} was written by a newer tracekit ({sidecar.tracekit}) and was left out"
    return sidecar, ""
