"""Grow a Kineto trace to any size, in the text layout of its source.

    python -m benchmarks.grow sample_traces/ddp/rank0.pt.trace.json.gz big/ --mb 400 --ranks 8

The source's event list is repeated, shifted in time; correlation ids, external ids, flow ids and step numbers are made unique
in every copy, so that the result is a longer recording and not the same one many times over.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from isal import igzip

_EVENT_LIST = re.compile(r'"traceEvents"\s*:\s*\[')
_LIST_END = re.compile(r"(?<=\})\s*\](?=\s*(,\s*\"\w+\"\s*:|\}\s*$))")
_VARIES = re.compile(
    r'"ts": (?P<time>\d+)|"(?:External id|correlation|Ev Idx|Record function id|Sequence number|id)": (?P<id>\d+)'
    r'|"ProfilerStep#(?P<step>\d+)"'
)
_RANK = re.compile(r'("rank"\s*:\s*)\d+')


class Growable:
    """A source's text, taken apart at the numbers that differ from copy to copy."""

    def __init__(self, source: Path) -> None:
        opened = igzip.open(source, "rt", encoding="utf-8") if source.suffix == ".gz" else source.open(encoding="utf-8")
        with opened as file:
            text = file.read()
        start = _EVENT_LIST.search(text)
        if start is None:
            raise SystemExit(f"{source}: no traceEvents")
        end = [match for match in _LIST_END.finditer(text, start.end()) if match.end() > len(text) - 100_000][-1]
        self.header, self.trailer = text[: start.end()], text[end.start() :]
        self._parts: list[str] = []
        self._varying: list[tuple[str, int]] = []
        position, body = 0, text[start.end() : end.start()]
        for match in _VARIES.finditer(body):
            kind = match.lastgroup or ""
            self._parts.append(body[position : match.start(kind)])
            self._varying.append((kind, int(match[kind])))
            position = match.end(kind)
        self._tail = body[position:]
        self._stride = {kind: self._span(kind) for kind in ("time", "id", "step")}
        self.copy_bytes = len(body)

    def _span(self, kind: str) -> int:
        values = [value for name, value in self._varying if name == kind]
        return max(values) - min(values) + 1_000 if kind == "time" else max(values, default=0) + 1

    def copy(self, number: int) -> str:
        """The event list's text of copy *number*."""
        shift = {kind: stride * number for kind, stride in self._stride.items()}
        numbers = (str(value + shift[kind]) for kind, value in self._varying)
        return "".join(chain.from_iterable(zip(self._parts, numbers, strict=True))) + self._tail

    def text(self, size: int, rank: int | None = None) -> Iterator[str]:
        """A trace of about *size* bytes, piece by piece, as rank *rank*."""
        yield self.header if rank is None else _RANK.sub(rf"\g<1>{rank}", self.header)
        for number in range(max(size // self.copy_bytes, 1)):
            yield ("," if number else "") + self.copy(number)
        yield self.trailer


def grow(source: Path, target: Path, size: int, rank: int | None = None) -> Path:
    """Write a trace of about *size* bytes to *target*, gzipped if its name says so."""
    target.parent.mkdir(parents=True, exist_ok=True)
    opened = (
        igzip.open(target, "wt", encoding="utf-8") if target.suffix == ".gz" else target.open("w", encoding="utf-8")
    )
    with opened as file:
        for piece in Growable(source).text(size, rank):
            file.write(piece)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mb", type=int, default=400, help="size of each file")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--gzip", action="store_true")
    options = parser.parse_args()
    for rank in range(options.ranks):
        name = f"rank{rank}.json" + (".gz" if options.gzip else "")
        print(grow(options.source, options.folder / name, options.mb * 1_000_000, rank))


if __name__ == "__main__":
    main()
