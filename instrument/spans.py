"""`span`: names a stretch of a training step in the trace."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])
Annotate = Callable[[str], AbstractContextManager[Any]]


class Switch:
    """Whether a recording is on, and how its profiler annotates. One attribute, because every span looks at it."""

    annotate: Annotate | None = None


switch = Switch()
_open: ContextVar[tuple[AbstractContextManager[Any] | None, ...]] = ContextVar("tracekit_open_spans", default=())
"""Annotations of the spans open in this thread or task, innermost last; None for one entered after the recording ended."""


@overload
def span(name: str) -> Span: ...
@overload
def span(name: F) -> F: ...
def span(name: str | F) -> Span | F:
    """Name what happens inside, in the trace.

        with span("forward"):
            loss = model(batch)

        @span("load")
        def load(): ...

        @span
        async def fetch(): ...

    Works on functions and coroutines, nests, and may be entered again while it is open. While nothing is recorded it costs
    less than a microsecond. Raises ``TypeError`` for what is neither a name nor a function.
    """
    if isinstance(name, str):
        return Span(name)
    if not callable(name):
        raise TypeError(f"span() takes a name, as in span('forward'), not {type(name).__name__}")
    return Span(getattr(name, "__qualname__", type(name).__name__))(name)


class Span:
    """What `span` gives: a context manager and a decorator."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Span:
        # One that is entered before the recording starts is not on the stack, and when it is left the stack is empty again.
        annotate, opened = switch.annotate, _open.get()
        if annotate is not None or opened:
            annotation = annotate(self.name) if annotate is not None else None
            if annotation is not None:
                annotation.__enter__()
            _open.set((*opened, annotation))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened = _open.get()
        if opened:
            _open.set(opened[:-1])
            if opened[-1] is not None:
                opened[-1].__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        """Decorate *function*; each call is a span."""
        if not callable(function):
            raise TypeError(f"@span decorates a function, not {type(function).__name__}")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"@span cannot time the generator {function.__name__}: use `with span(...)` inside it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return asynchronous  # type: ignore[return-value]

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            if switch.annotate is None:
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return synchronous  # type: ignore[return-value]
