"""What a file is, from its first bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isal import isal_zlib

from tracekit.readers.source import InflateError

_HEAD = 1 << 12
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file looks like; *remedy* is set when no reader takes it."""

    what: str
    remedy: str = ""

    @property
    def may_be_trace(self) -> bool:
        return not self.remedy


JSON = Kind("JSON text")
EMPTY = Kind("empty file")
_FOREIGN = (
    (
        b"SQLite format 3\0",
        Kind("an SQLite database, as Nsight Systems or rocpd write", "export the run as a torch.profiler trace"),
    ),
    (b"PAR1", Kind("a Parquet file", "give the folder that `tracekit convert` wrote, not a file of it")),
    (b"PK\x03\x04", Kind("a zip archive", "unpack it and give the traces inside")),
    (b"\x28\xb5\x2f\xfd", Kind("zstd-compressed", "unpack it with `zstd -d`")),
    (b"\x80", Kind("a pickle, as memory snapshots and flight-recorder dumps are", "give a torch.profiler trace")),
)
_NOT_TEXT = Kind("not JSON text", "give a trace that torch.profiler exported (.json or .json.gz)")


def sniff(path: Path) -> Kind:
    """Look at the first bytes of *path*, inside its gzip wrapping if it has one. Raises ``OSError``."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        return EMPTY
    if head.startswith(_GZIP_MAGIC):
        try:
            head = isal_zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except InflateError:
            return JSON  # damaged: the reader says where
    for magic, kind in _FOREIGN:
        if head.startswith(magic):
            return kind
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return JSON if start in {b"", b"{", b"["} else _NOT_TEXT
