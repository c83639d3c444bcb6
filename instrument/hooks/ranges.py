"""A range of the trace whose beginning and end are told by two callbacks."""

from __future__ import annotations

from torch.profiler import record_function


class Ranges:
    """Nested ranges: `begin` and `end` pair up as brackets do. An end without a beginning is none."""

    def __init__(self) -> None:
        self._opened: list[record_function] = []

    def begin(self, name: str) -> None:
        self._opened.append(record_function(name).__enter__())

    def end(self) -> None:
        if self._opened:
            self._opened.pop().__exit__(None, None, None)
