"""The few metadata keys that tracekit uses, picked out of a header and trailer that may be damaged or hold secrets."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from tracekit.readers.kineto.blocks import value_end

_MOST_RANKS = 1 << 24
_MOST_BASE_NS = 1 << 61

Rank = Annotated[int, msgspec.Meta(ge=0, lt=_MOST_RANKS)]
Size = Annotated[int, msgspec.Meta(ge=1, le=_MOST_RANKS)]
Base = Annotated[int, msgspec.Meta(gt=-_MOST_BASE_NS, lt=_MOST_BASE_NS)]
"""Ranges outside which a number is damage; the key then counts as absent."""


class DistributedInfo(msgspec.Struct, frozen=True):
    """``distributedInfo`` as torch writes it."""

    rank: Rank | None = None
    world_size: Size | None = None
    backend: str | None = None


class Device(msgspec.Struct, frozen=True):
    """An entry of ``deviceProperties``."""

    id: int | None = None
    name: str = ""


class Metadata(msgspec.Struct, frozen=True):
    """Everything that is read of a trace's metadata."""

    distributed: DistributedInfo = DistributedInfo()
    devices: tuple[Device, ...] = ()
    base_ns: int = 0
    journal: bool = False
    """Whether this is the recorder's journal: completed steps of a rank that ended before it could write its trace."""


_FIELDS: dict[str, tuple[bytes, Any]] = {
    "distributed": (b"distributedInfo", DistributedInfo),
    "devices": (b"deviceProperties", tuple[Device, ...]),
    "base_ns": (b"baseTimeNanoseconds", Base),
    "journal": (b"tracekitJournal", bool),
}


def parse(*texts: bytes) -> Metadata:
    """Metadata from the text before and after the event list; a key that is absent or damaged keeps its default."""
    found: dict[str, Any] = {}
    for field, (key, kind) in _FIELDS.items():
        pattern = re.compile(rb'(?<!\\)"' + key + rb'"\s*:\s*')
        for text in texts:
            for match in pattern.finditer(text):
                if (value := _value(text[match.end() :], kind)) is not None:
                    found.setdefault(field, value)
    return Metadata(**found)


def _value(text: bytes, kind: Any) -> Any:
    end = value_end(text)
    try:
        return msgspec.json.decode(text[:end], type=kind, strict=False) if end else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
