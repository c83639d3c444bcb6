"""`span` names stretches of a step, on functions, coroutines and blocks, and does nothing while nothing is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tracekit.instrument import span
from tracekit.instrument.spans import switch

Log = list[str]
THREE: Any = 3


@contextmanager
def recording() -> Iterator[Log]:
    log: Log = []

    @contextmanager
    def annotate(name: str) -> Iterator[None]:
        log.append(f"<{name}")
        try:
            yield
        finally:
            log.append(f"{name}>")

    switch.annotate = annotate
    try:
        yield log
    finally:
        switch.annotate = None


def test_a_block_a_function_and_a_coroutine_are_named() -> None:
    @span
    def load() -> int:
        return 1

    @span("fetch")
    async def fetch() -> int:
        return 2

    with recording() as log:
        with span("step"):
            assert load() == 1
        assert asyncio.run(fetch()) == 2
    assert log == [
        "<step",
        "<test_a_block_a_function_and_a_coroutine_are_named.<locals>.load",
        "test_a_block_a_function_and_a_coroutine_are_named.<locals>.load>",
        "step>",
        "<fetch",
        "fetch>",
    ]


def test_one_span_may_be_open_twice() -> None:
    layer = span("layer")
    with recording() as log, layer, layer:
        pass
    assert log == ["<layer", "<layer", "layer>", "layer>"]


def test_what_began_before_the_recording_is_not_ended_in_it() -> None:
    outer = span("outer")
    outer.__enter__()
    with recording() as log, span("inner"):
        pass
    outer.__exit__(None, None, None)
    assert log == ["<inner", "inner>"]


def test_what_outlives_the_recording_is_still_ended() -> None:
    outer, inner = span("outer"), span("inner")
    with recording() as log:
        outer.__enter__()
    with inner:
        pass
    outer.__exit__(None, None, None)
    assert log == ["<outer", "outer>"]


def test_an_error_passes_through_and_ends_the_span() -> None:
    with recording() as log, pytest.raises(KeyError), span("step"):
        raise KeyError
    assert log == ["<step", "step>"]


def test_tasks_that_interleave_keep_their_own_spans() -> None:
    async def work(name: str) -> None:
        with span(name):
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    with recording() as log:
        asyncio.run(both())
    assert log == ["<a", "<b", "a>", "b>"]


def generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: span(THREE), "takes a name"),
        (lambda: span(generator), "inside it"),
        (lambda: span("x")(THREE), "decorates"),
    ],
)
def test_a_mistake_is_told(wrong: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        wrong()
