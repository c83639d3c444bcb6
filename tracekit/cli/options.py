"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from tracekit.model.numbers import span


def parse_steps(text: str) -> range:
    """``4`` or ``3-5``, both ends included."""
    return _span(text, "steps are written as 4 or 3-5")


def parse_ranks(text: str) -> frozenset[int]:
    """``0``, ``0,2-3``: numbers and spans between commas, both ends included."""
    spans = [_span(part, "ranks are written as 0,2-3") for part in text.split(",")]
    return frozenset(rank for span in spans for rank in span)


def parse_names(text: str) -> frozenset[str]:
    """Names between commas."""
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _span(text: str, hint: str) -> range:
    try:
        return span(text.strip())
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} {error}; {hint}") from None


Paths: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Trace files, folders of them, or patterns.", show_default=False)
]
Ranks: TypeAlias = Annotated[
    frozenset[int] | None,
    typer.Option(
        "--ranks", parser=parse_ranks, metavar="LIST", help="Only these ranks, e.g. 0,2-3.", show_default=False
    ),
]
Cache: TypeAlias = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep what was read for the next time (never beside the traces).")
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, metavar="N", help="Processes that read; one per core unless said.", show_default=False
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON (docs/json.md) instead.")]
