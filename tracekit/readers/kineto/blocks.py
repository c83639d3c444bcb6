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
from tracekit.readers.source import CHUNK, Source

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
    """A run of events in a buffer, to be used before the next one is asked for: the buffer is used again."""

    buffer: bytes | bytearray
    start: int
    """Where the first event starts. The byte before it is a bracket of ours, so that the run is a JSON list."""
    end: int
    """Where the last event ends. The byte after it is a bracket, too."""
    offset: int
    """Where the first event starts in the file's text."""
    last: bool = False
    """True for what is left when the file ends inside its event list."""

    @property
    def listed(self) -> memoryview:
        """The events as a JSON list, in place."""
        return memoryview(self.buffer)[self.start - 1 : self.end + 1]

    @property
    def text(self) -> bytes:
        """The events as the file has them: comma-separated, starting with one. A copy."""
        return bytes(memoryview(self.buffer)[self.start : self.end])


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
    _buffer: bytearray = field(default_factory=lambda: bytearray(2 * CHUNK), init=False)
    """One for all of the file: text that is moved to a new place costs as much as finding where to cut it."""
    _begin: int = field(default=1, init=False)
    """Where the text that was not yet handed on begins in the buffer; a bracket fits before it."""
    _end: int = field(default=1, init=False)
    _offset: int = field(default=0, init=False)
    """Where it begins in the file's text."""

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
            self._append(chunk)
        if self._begin < self._end:
            yield self._copied(self._end, last=True)

    def end_at(self, offset: int) -> None:
        """Told by the decoder that the event list closed at *offset*: the rest is metadata."""
        self._advance(max(offset - self._offset, 0))
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
        self._append(memoryview(text)[position:])
        self._offset += position

    def _append(self, chunk: bytes | memoryview) -> None:
        held = self._end - self._begin
        if self._end + len(chunk) >= len(self._buffer):
            into = self._buffer if held + len(chunk) + 2 <= len(self._buffer) else bytearray(2 * (held + len(chunk)))
            into[1 : 1 + held] = self._buffer[self._begin : self._end]
            self._buffer, self._begin, self._end = into, 1, 1 + held
        self._buffer[self._end : self._end + len(chunk)] = chunk
        self._end += len(chunk)

    def _advance(self, count: int) -> None:
        self._begin += count
        self._offset += count

    def _rest(self) -> bytes:
        return bytes(memoryview(self._buffer)[self._begin : self._end])

    def _cut(self) -> Iterator[Block]:
        """Yield what can be cut from the buffer now; what may be incomplete stays in it."""
        while not self.ended:
            self._skip_gap()
            if self._begin < self._end and self._buffer[self._begin] == ord("]"):
                self._advance(1)
                self.ended = True
                return
            if end := self._last_start():
                block, used = self._in_place(end), end + 1
            elif end := self._first_end():
                block, used = self._copied(end), end
            elif self._end - self._begin > _EVENT_LIMIT:
                block, used = self._copied(self._end), self._end
            else:
                return
            self._advance(used - self._begin)
            yield block

    def _in_place(self, end: int) -> Block:
        """What is held up to *end*, which a gap follows: the brackets take the place of a gap and of what is already used."""
        self._buffer[self._begin - 1], self._buffer[end] = b"[]"
        return Block(self._buffer, self._begin, end, self._offset)

    def _copied(self, end: int, *, last: bool = False) -> Block:
        """The same where anything may follow."""
        text = b"[%b]" % bytes(self._buffer[self._begin : end])
        return Block(text, 1, len(text) - 1, self._offset, last)

    def _skip_gap(self) -> None:
        if gap := _GAP.match(self._buffer, self._begin, self._end):
            self._advance(gap.end() - self._begin)

    def _last_start(self) -> int:
        """Where the event ends after which the last one held starts, of those that open like the first; 0 if there is none."""
        opening = OPENING.match(self._buffer, self._begin, self._end)
        if opening is None:
            return 0
        position = self._end
        while (position := self._buffer.rfind(opening.group(), self._begin + 1, position)) > 0:
            if between := _BETWEEN.search(self._buffer, max(position - _OVERLAP, self._begin), position):
                return between.start() + 1
        return 0

    def _first_end(self) -> int:
        """Where the first event held ends, if that is certain: a comma (or none), or the list's end follows it; else 0."""
        text = self._rest()
        end = value_end(text)
        follows = text[end : end + _OVERLAP].lstrip()[:1] if end else b""
        return self._begin + end if end and follows in {b",", b"]", b"{"} else 0

    def _read_trailer(self, chunks: Iterator[bytes]) -> None:
        self.trailer = self._rest()
        self._begin = self._end
        for chunk in chunks:
            if len(self.trailer) < _METADATA_LIMIT:
                self.trailer += chunk
