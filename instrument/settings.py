"""What to record, when and where to. Everything a user can set, in one value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from json import dumps, loads
from typing import Any

from tracekit.model.numbers import span

SWITCH = "TRACEKIT"
"""``TRACEKIT=0`` turns all of tracekit's instrumentation off."""
VARIABLE = "TRACEKIT_RECORD"
"""Settings as a JSON object, for processes that a launcher starts: ``tracekit record`` sets it."""


class SettingsError(ValueError):
    """A setting that cannot be; the message says which and what can."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a recording. All are optional."""

    out: str = "traces"
    """Folder for the traces, made when it is missing."""
    skip: int = 0
    """Steps before anything is done."""
    warmup: int = 1
    """Steps with the profiler already running, which are thrown away: the first ones are never typical."""
    active: int = 3
    """Steps to record."""
    repeat: int = 1
    """How often to warm up and record; each time makes a file of its own."""
    ranks: str | tuple[int, ...] = "all"
    """``all``, a list of ranks, or ``every:N`` for each N-th."""
    shapes: bool = False
    """Record the shapes of operators' inputs."""
    stacks: bool = False
    """Record Python stacks: large files, slow steps."""
    memory: bool = False
    """Record the allocator's events, and on CUDA a snapshot beside the trace."""
    flops: bool = False
    """Count the floating-point operations of the first warm-up step."""
    tokens_per_step: int = 0
    """Tokens that one rank processes in a step."""
    module_depth: int = 0
    """Depth of module names to annotate, forward and backward; 0 for none."""
    strategy: Mapping[str, Any] = field(default_factory=dict)
    """What the script knows of its parallel strategy; copied into the sidecar."""

    def __post_init__(self) -> None:
        for name, least in (("skip", 0), ("warmup", 0), ("active", 1), ("repeat", 1), ("module_depth", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise SettingsError(f"{name}={value!r}: give a whole number, {least} or more")
        if isinstance(self.ranks, str) and not _is_choice(self.ranks):
            raise SettingsError(f"ranks={self.ranks!r}: give 'all', 'every:N', or a list of ranks")

    def records(self, rank: int) -> bool:
        """Whether *rank* is to be recorded."""
        if isinstance(self.ranks, str):
            return self.ranks == "all" or rank % int(self.ranks.partition(":")[2]) == 0
        return rank in self.ranks

    @property
    def cycle(self) -> int:
        """Steps of a cycle: warm-up and recorded ones."""
        return self.warmup + self.active

    @property
    def steps(self) -> int:
        """Steps of the loop after which everything is recorded."""
        return self.skip + self.repeat * self.cycle

    def first_recorded(self, cycle: int) -> int:
        """Number of the first step that the cycle numbered *cycle* records; both count from 0."""
        return self.skip + cycle * self.cycle + self.warmup

    def to_json(self) -> str:
        return dumps(asdict(self))


def is_off() -> bool:
    """Whether instrumentation is turned off by the environment."""
    return os.environ.get(SWITCH, "").lower() in {"0", "false", "off", "no"}


def from_environment() -> Settings | None:
    """The settings a launcher left in the environment; None without one. Raises `SettingsError`."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        given = loads(text)
    except ValueError:
        raise SettingsError(f"{VARIABLE} is no JSON") from None
    return make(given)


def make(given: Mapping[str, Any]) -> Settings:
    """Settings from names and values; `SettingsError` for a name that is none."""
    known = {each.name for each in fields(Settings)}
    if unknown := sorted(set(given) - known):
        raise SettingsError(f"unknown setting {unknown[0]!r}: there are {', '.join(sorted(known))}")
    values = dict(given)
    if isinstance(ranks := values.get("ranks"), list | tuple | set | range):
        values["ranks"] = tuple(int(rank) for rank in ranks)
    if "out" in values:
        values["out"] = os.fspath(values["out"])
    return Settings(**values)


def with_ranks(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a list of ranks that a command line has as text (``0,2-3``) as numbers."""
    ranks = given.get("ranks")
    if not isinstance(ranks, str) or not ranks[:1].isdigit():
        return dict(given)
    try:
        return {**given, "ranks": [rank for part in ranks.split(",") for rank in span(part)]}
    except ValueError:
        raise SettingsError(f"ranks={ranks!r}: give 'all', 'every:N', or a list such as 0,2-3") from None


def _is_choice(text: str) -> bool:
    every, _, number = text.partition(":")
    return text == "all" or (every == "every" and number.isdecimal() and int(number) > 0)
