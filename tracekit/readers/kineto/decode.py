"""Turns a block of events into typed events: at once where the text is sound, one event at a time where it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from tracekit.readers.health import Health
from tracekit.readers.kineto.blocks import OPENING, Block, value_end
from tracekit.readers.kineto.events import AnyEvent, Common, DetailedEvent, Details, Event, ExactEvent, Skipped

_KEYS = rb"ph|name|cat|pid|tid|ts|dur|args|id|s|bp|cname"
_BETWEEN = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:' + _KEYS + rb')"\s*:)')
_CONTROL = bytes(range(0x20)) + b"\x7f"
_BLANKED = bytes.maketrans(_CONTROL, b" " * len(_CONTROL))
_TEXT_FIELD = re.compile(rb'("(?:name|cat)"\s*:\s*")(.*?)(?="\s*,\s*"(?:' + _KEYS + rb')"\s*:)', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BARE_QUOTE = re.compile(rb'(?<!\\)"')
_MOST_JOINED = 16
"""Pieces of one event that may be joined when its arguments hold objects that look like events."""

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What text that is no JSON, or not the JSON that was expected, raises."""
COLLECTIVE_KEY = b'"Collective name"'
MEMORY_KEY = b'"[memory]"'


@dataclass(slots=True)
class Decoder:
    """Decodes blocks into events, counting repairs and drops in *health*."""

    health: Health
    exact: bool = False
    """Decode times as text. Set by the reader once a file turns out to need it."""

    def decode(self, block: Block) -> tuple[list[Any], int | None]:
        """Events of *block*, and the offset after the list's closing bracket if it was inside the block."""
        if not block.last:
            listed = bytes(block.listed) if self.exact else block.listed  # times as text are slices of it
            for decoder in _WHOLE[self.exact]:
                try:
                    return decoder.decode(listed), None
                except DECODE_ERRORS:
                    continue
        return self._decode_pieces(block)

    def _decode_pieces(self, block: Block) -> tuple[list[Any], int | None]:
        events: list[Any] = []
        text = block.text.rstrip(b" \t\r\n,")
        pieces = list(_pieces(text))
        position = 0
        while position < len(pieces):
            start, end = pieces[position]
            taken = 1
            event = self._one(text[start:end])
            while (
                event is None and taken < _MOST_JOINED and position + taken < len(pieces) and _is_open(text[start:end])
            ):
                end = pieces[position + taken][1]
                taken += 1
                event = self._one(text[start:end])
            if event is None:
                taken, end = 1, pieces[position][1]
                if (closed := _list_end(text[start:end])) is not None:
                    length, after = closed
                    if (event := self._one(text[start : start + length])) is not None:
                        events.append(event)
                    return events, block.offset + start + after
                cut_off = block.last and position == len(pieces) - 1
                event = self._repaired(text[start:end], block.offset + start, cut_off)
            if event is not None:
                events.append(event)
            position += taken
        return events, None

    def _one(self, piece: bytes) -> AnyEvent | None:
        try:
            event: AnyEvent = _SINGLE[self.exact].decode(piece)
        except DECODE_ERRORS:
            return None
        return event

    def _repaired(self, piece: bytes, offset: int, cut_off: bool) -> AnyEvent | None:
        """The event after the mildest repair that makes it JSON; None, and counted, if none does."""
        clean = _SURROGATE.sub(rb"\\ufffd", piece.decode("utf-8", "replace").encode().translate(_BLANKED))
        for why, text in (("control or invalid characters in the text", clean), ("unescaped quotes", _quoted(clean))):
            if (event := self._one(text) or self._salvaged(text)) is not None:
                self.health.repair(why if text != piece else "a field of an unexpected type", offset)
                return event
        if cut_off:
            self.health.drop("the event that the file ends in", offset)
        else:
            self.health.drop("not a readable event", offset)
        return None

    def _salvaged(self, text: bytes) -> AnyEvent | None:
        """An event that is JSON but has fields of impossible types: it loses those fields, not its life."""
        try:
            raw = msgspec.json.decode(text)
        except DECODE_ERRORS:
            return None
        if not isinstance(raw, dict) or not isinstance(raw.get("ph"), str):
            return None
        args = raw.get("args")
        kept = {key: value for key, value in args.items() if _fits(key, value)} if isinstance(args, dict) else {}
        plain = {key: raw[key] for key in ("pid", "tid") if type(raw.get(key)) in {str, int}}  # bool is an int too
        plain |= {key: str(raw[key]) for key in ("name", "cat") if raw.get(key) is not None}
        times = {key: raw[key] for key in ("ts", "dur") if type(raw.get(key)) in {str, int, float}}
        return self._one(msgspec.json.encode({"ph": raw["ph"], **plain, **times, "args": kept}))


_WHOLE: dict[bool, tuple[msgspec.json.Decoder[Any], ...]] = {
    False: (msgspec.json.Decoder(list[Common]), msgspec.json.Decoder(list[Event], strict=False)),
    True: (msgspec.json.Decoder(list[ExactEvent], strict=False),),
}
"""Decoders of whole blocks, fastest first. The lax ones also take numbers written as strings."""
_DETAILED = msgspec.json.Decoder(list[DetailedEvent], strict=False)
_SINGLE: dict[bool, msgspec.json.Decoder[Any]] = {
    False: msgspec.json.Decoder(DetailedEvent, strict=False),
    True: msgspec.json.Decoder(ExactEvent, strict=False),
}


def add_details(wanted: Sequence[AnyEvent], key: bytes, events: Sequence[AnyEvent | Skipped], block: Block) -> None:
    """Give those *wanted* of a *block*'s *events*, which hold *key* in its text, their detailed arguments.

    The text of each is found by its key and decoded once more. Where that does not give one text per event (keys inside
    strings, events that open differently), the whole block is.
    """
    if all(isinstance(event.args, Details) for event in wanted):
        return
    places = _places(block, key)
    opening = OPENING.match(block.buffer, block.start, block.end)
    if opening is not None and len(places) == len(wanted):
        try:
            found = [_SINGLE[False].decode(_around(block, place, opening.group())) for place in places]
        except DECODE_ERRORS:
            found = []
        for event, full in zip(wanted, found, strict=False):
            event.args = full.args
        if found:
            return
    for each, full in zip(events, _detailed(block), strict=False):
        if not isinstance(each, Skipped):
            each.args = full.args


def _detailed(block: Block) -> list[DetailedEvent]:
    """All events of *block* with details. Text that nobody needed until now may hold invalid characters."""
    listed = bytes(block.listed)
    for cleaned in (listed, listed.decode("utf-8", "replace").encode()):
        with suppress(*DECODE_ERRORS):
            return _DETAILED.decode(cleaned)
    return []


def _places(block: Block, key: bytes) -> list[int]:
    """Where *key* is in *block*. Backwards, which Python does three times as fast: it skips what cannot hold the key."""
    places, place = [], block.end
    while (place := block.buffer.rfind(key, block.start, place)) >= 0:
        places.append(place)
    return places[::-1]


def _around(block: Block, place: int, opening: bytes) -> bytes:
    """The event of *block* that *place* is in."""
    start = block.buffer.rfind(opening, block.start, place)
    end = block.buffer.find(opening, place, block.end)
    return bytes(block.buffer[start : end if end >= 0 else block.end]).rstrip(b" \t\r\n,")


def _pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """Spans of *text* that look like one event each."""
    start = 0
    for between in _BETWEEN.finditer(text):
        yield start, between.start() + 1
        start = between.end()
    yield start, len(text)


def _is_open(piece: bytes) -> bool:
    return piece.count(b"{") > piece.count(b"}")


def _list_end(piece: bytes) -> tuple[int, int] | None:
    """(length of the first event, length up to after the list's closing bracket) if the list closes after it."""
    end = value_end(piece)
    if end is None:
        return None
    rest = piece[end:].lstrip()
    return (end, len(piece) - len(rest) + 1) if rest[:1] == b"]" else None


def _quoted(piece: bytes) -> bytes:
    """*piece* with the bare quotes inside its name and category escaped."""
    return _TEXT_FIELD.sub(lambda field: field[1] + _BARE_QUOTE.sub(lambda _: b'\\"', field[2]), piece)


def _fits(key: str, value: Any) -> bool:
    try:
        msgspec.convert({key: value}, Details, strict=False)
    except msgspec.ValidationError:
        return False
    return True
