"""Cuts a trace's text into runs of whole events, without parsing it.

The text of each chunk is cut before its last event, found by looking backwards for the characters that events open with.
A run that then decodes as a JSON list proves the cut right: a wrong one leaves a bracket or a string open. What comes
before and after the event list is kept for the few metadata keys that are read, up to `_METADATA_LIMIT`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from json import JSONDecodeError, JSONDecoder

from tracekit.model.errors import UnreadableError
from tracekit.readers.source import Source

_METADATA_LIMIT = 32 << 20
_EVENT_LIMIT = 64 << 20
"""An event larger than this is damage, not an event."""

_EVENT_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_OVERLAP = 256  # covers the key and its bracket when they straddle two chunks
OPENING = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"')
"""What an event opens with: its brace and first key."""
_BETWEEN = re.compile(rb"\}\s*,\s*\Z")
_GAP = re.compile(rb"[\s,]*")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON = JSONDecoder(strict=False)


def value_end(text: bytes) -> int | None:
    """Length of the JSON value that *text* starts with; None if it is incomplete or damaged."""
    try:
        return _JSON.raw_decode(text.decode("latin-1"))[1]
    except (JSONDecodeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Block:
    """A run of events: comma-separated text that starts with an event, and where it starts in the file's text."""

    text: bytes
    offset: int
    last: bool = False
    """True for what is left when the file ends inside its event list."""


@dataclass(slots=True)
class Blocks:
    """The blocks of one source. Iterate once; then `header`, `trailer`, `started` and `ended` are set."""

    source: Source
    header: bytes = field(default=b"", init=False)
    trailer: bytes = field(default=b"", init=False)
    started: bool = field(default=False, init=False)
    """True once the event list was found."""
    ended: bool = field(default=False, init=False)
    """True once the closing bracket of the event list was seen."""
    _buffer: bytes = field(default=b"", init=False)
    _offset: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Block]:
        chunks = self.source.chunks()
        self._read_header(chunks)
        while True:
            yield from self._cut()
            if self.ended:
                self._read_trailer(chunks)
                return
            chunk = next(chunks, None)
            if chunk is None:
                break
            self._buffer += chunk
        if self._buffer:
            yield Block(self._buffer, self._offset, last=True)

    def end_at(self, offset: int) -> None:
        """Told by the decoder that the event list closed at *offset*: the rest is metadata."""
        self._buffer = self._buffer[max(offset - self._offset, 0) :]
        self.ended = True

    def _read_header(self, chunks: Iterator[bytes]) -> None:
        text, searched = b"", 0
        for chunk in chunks:
            text += chunk
            if not searched:
                start = text.removeprefix(_BYTE_ORDER_MARK).lstrip()
                if start[:1] == b"[":
                    self._start(text, text.index(b"[") + 1)
                    return
                if start and start[:1] != b"{":
                    raise UnreadableError("not a trace: neither a JSON object nor a list", where=str(self.source.path))
            if match := _EVENT_LIST.search(text, max(searched - _OVERLAP, 0)):
                self.header = text[: match.start()].removeprefix(_BYTE_ORDER_MARK)
                self._start(text, match.end())
                return
            if len(text) > _METADATA_LIMIT:
                self._offset += len(text) - _OVERLAP
                text = text[-_OVERLAP:]
            searched = len(text)
        self.header = text

    def _start(self, text: bytes, position: int) -> None:
        self.started = True
        self._buffer = text[position:]
        self._offset += position

    def _advance(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self._offset += count

    def _cut(self) -> Iterator[Block]:
        """Yield what can be cut from the buffer now; what may be incomplete stays in it."""
        while not self.ended:
            self._skip_gap()
            if self._buffer[:1] == b"]":
                self._advance(1)
                self.ended = True
                return
            end = self._last_start() or self._first_end()
            if not end:
                if len(self._buffer) > _EVENT_LIMIT:
                    yield Block(self._buffer, self._offset)
                    self._advance(len(self._buffer))
                return
            block = Block(self._buffer[:end], self._offset)
            self._advance(end)
            yield block

    def _skip_gap(self) -> None:
        gap = _GAP.match(self._buffer)
        if gap is not None and gap.end():
            self._advance(gap.end())

    def _last_start(self) -> int:
        """Where the event ends after which the buffer's last one starts, of those that open like its first; 0 if there is none."""
        opening = OPENING.match(self._buffer)
        if opening is None:
            return 0
        position = len(self._buffer)
        while (position := self._buffer.rfind(opening.group(), 1, position)) > 0:
            if between := _BETWEEN.search(self._buffer, max(position - _OVERLAP, 0), position):
                return between.start() + 1
        return 0

    def _first_end(self) -> int:
        """Where the buffer's first event ends, if that is certain: a comma (or none), or the list's end follows it."""
        end = value_end(self._buffer)
        return end if end and self._buffer[end : end + _OVERLAP].lstrip()[:1] in {b",", b"]", b"{"} else 0

    def _read_trailer(self, chunks: Iterator[bytes]) -> None:
        self.trailer = self._buffer
        self._buffer = b""
        for chunk in chunks:
            if len(self.trailer) < _METADATA_LIMIT:
                self.trailer += chunk
