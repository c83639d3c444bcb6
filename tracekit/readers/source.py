"""Bytes of a trace file, whatever it is wrapped in: plain or gzip with any number of members, decided by content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from isal import isal_zlib

CHUNK = 1 << 19
"""Bytes of text handed on at a time. 512 KiB hold about 1,200 events, whose objects fit the processor's cache: 4 MiB took
twice as long to decode and gather."""
_COMPRESSED_CHUNK = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
InflateError: Any = isal_zlib.error
"""Raised by isal, which has no type stubs, for damaged gzip data."""
_GZIP_WINDOW = 31

Progress = Callable[[int], None]
"""Called with the number of bytes of the file consumed so far."""


def no_progress(_bytes_done: int) -> None:
    """Report to nobody."""


@dataclass(slots=True)
class Source:
    """One file as a stream of text chunks. After iteration `damage` says why the bytes ended early, if they did."""

    path: Path
    progress: Progress = no_progress
    damage: str = field(default="", init=False)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file's text in chunks of at most `CHUNK` bytes; unreadable files raise ``OSError``."""
        with self.path.open("rb", buffering=0) as file:
            head = file.read(len(_GZIP_MAGIC))
            file.seek(0)
            yield from self._inflate(file) if head == _GZIP_MAGIC else self._plain(file)

    def _plain(self, file: BinaryIO) -> Iterator[bytes]:
        done = 0
        while chunk := file.read(CHUNK):
            done += len(chunk)
            yield chunk
            self.progress(done)

    def _inflate(self, file: BinaryIO) -> Iterator[bytes]:
        """Inflate member after member. Output is bounded by `CHUNK`, so a decompression bomb costs time, not memory."""
        done, member, pending = 0, isal_zlib.decompressobj(wbits=_GZIP_WINDOW), b""
        try:
            while pending or (pending := file.read(_COMPRESSED_CHUNK)):
                if member.eof:
                    if not pending.lstrip(b"\0"):  # zero padding between members and after the last one is legal
                        pending = b""
                        continue
                    if not pending.startswith(_GZIP_MAGIC[: len(pending)]):
                        self.damage = "what follows the gzip data is no gzip and was left out"
                        return
                    member = isal_zlib.decompressobj(wbits=_GZIP_WINDOW)
                yield member.decompress(pending, CHUNK)
                pending = member.unused_data if member.eof else member.unconsumed_tail
                if not pending:
                    done = file.tell()
                    self.progress(done)
            while not member.eof and (rest := member.decompress(b"", CHUNK)):  # input used up, output still inside
                yield rest
        except InflateError as error:
            self.damage = f"gzip data is damaged after byte {done} of the file ({error})"
            return
        if not member.eof:
            self.damage = "gzip data ends in the middle of a member"
