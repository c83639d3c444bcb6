"""Errors that reach a person: what, where, and what to do. And the exit codes, which are an API."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

from tracekit.model.numbers import spans_text


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    REGRESSION = 1
    USAGE = 2
    UNREADABLE = 3
    NO_VERDICT = 4


class TracekitError(Exception):
    """An error for a person. *what* happened, *where*, and the *remedy*."""

    exit_code = ExitCode.UNREADABLE

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.remedy}" if self.remedy else text


class UnreadableError(TracekitError):
    """An input that cannot be read at all."""


class UsageError(TracekitError):
    """A request that cannot be carried out as it was made."""

    exit_code = ExitCode.USAGE


def none_of_them(noun: str, asked: Collection[int], there: Collection[int]) -> UsageError:
    """The error for numbers *asked* for (of *noun*: ranks, steps) of which the run has none; it tells those that it has."""
    remedy = f"the run has {noun} {spans_text(there)}" if there else f"the run has no {noun}"
    return UsageError(f"no such {noun}", where=f"{noun} {spans_text(asked)}".strip(), remedy=remedy)
