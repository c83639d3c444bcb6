"""Hostile and broken input: nothing but a `TracekitError` escapes, and what is lost is counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.kineto_text import event, kernel, launch, step, text, write
from tracekit.model.errors import TracekitError
from tracekit.readers import dispatch
from tracekit.readers.recording import Info

SOUND = text(
    step(0, 0, 10),
    launch(1, 1),
    kernel(ts=2, correlation=1, **{"Collective name": "allreduce", "dtype": "Float"}),
    event("a"),
).encode()


def info(path: Path, content: bytes) -> Info | None:
    """What is known of the first recording; None when the file is refused."""
    try:
        return dispatch.read(write(path, content))[0].info
    except TracekitError:
        return None


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "trace.json"


def test_every_beginning_of_a_file_keeps_its_whole_events(file: Path) -> None:
    counts = [found.complete_events if (found := info(file, SOUND[:n])) else 0 for n in range(1, len(SOUND) + 1)]
    assert counts == sorted(counts)
    assert counts[-1] == 4


@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), min_size=1, max_size=20))
def test_bytes_that_flipped(file: Path, flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(SOUND)
    for place, value in flips:
        damaged[place] = value
    info(file, bytes(damaged))


@given(st.integers(0, len(gzip.compress(SOUND, mtime=0)) - 1), st.integers(1, 255))
def test_gzip_bytes_that_flipped(file: Path, place: int, change: int) -> None:
    damaged = bytearray(gzip.compress(SOUND, mtime=0))
    damaged[place] ^= change
    info(file, bytes(damaged))


def document(*events: Any, **keys: Any) -> bytes:
    return json.dumps({**keys, "traceEvents": list(events)}).encode()


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("content", "complete", "repaired", "dropped"),
    [
        pytest.param(document(kernel(ts=10**30), kernel(dur=10**40), kernel()), 1, 0, 2, id="numbers beyond all bounds"),
        pytest.param(document(kernel(correlation=2**64 - 1), event(tid=10**30), event(pid=-(10**30))), 3, 0, 0, id="ids of any size"),
        pytest.param(document(kernel()).replace(b"1.0", b"NaN"), 0, 0, 1, id="NaN"),
        pytest.param(document(event(pid=True), event(tid=None), event(dur=None)), 3, 3, 0, id="fields of impossible types"),
        pytest.param(document(*(event(args=a) for a in (None, [1], "x", 5))), 4, 4, 0, id="arguments that are none"),
        pytest.param(document(*(event(name) for name in (5, None, ["a"]))), 3, 3, 0, id="names that are none"),  # type: ignore[arg-type]
        pytest.param(document(event("\ud800"), event("x" * 1_000_000)), 2, 1, 0, id="half a character, and a very long name"),
        pytest.param(document(event(), 7, None, "x", []), 1, 0, 4, id="elements that are no events"),
        pytest.param(document(event(args={"x": 0})).replace(b'"x": 0', b'"x": ' + DEEP), 0, 0, 1, id="deep nesting"),
        pytest.param(b'{"a": ' + DEEP + b", " + document(event())[1:], 1, 0, 0, id="deep nesting in metadata"),
        pytest.param(document(event(), event()).replace(b"}, {", b"} {"), 2, 0, 0, id="a missing comma"),
        pytest.param(document(event(), event()).replace(b", ", b",\r\n\t"), 2, 0, 0, id="other line ends"),
        pytest.param(document(event('"traceEvents": [ {'), event('}, {"ph": "X"]}')), 2, 0, 0, id="names that look like the file"),
        pytest.param(document(*(kernel(dur=0) for _ in range(5))), 5, 0, 0, id="no durations"),
        pytest.param(document(event(), baseTimeNanoseconds=10**30), 1, 0, 0, id="an impossible base time"),
        pytest.param(document(event(), distributedInfo={"rank": 10**12, "world_size": -3}), 1, 0, 0, id="an impossible rank"),
        pytest.param(
            document(event(), {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": 2**70, "Device Id": 2**40}}), 1, 0, 0, id="memory"
        ),
        pytest.param(gzip.compress(document(event())) + b"garbage", 1, 0, 0, id="garbage behind gzip"),
    ],
)  # fmt: skip
def test_what_is_lost_is_counted(file: Path, content: bytes, complete: int, repaired: int, dropped: int) -> None:
    found = info(file, content)
    assert found is not None
    assert (found.complete_events, found.events_repaired, found.events_dropped) == (complete, repaired, dropped)
