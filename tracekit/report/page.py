"""What a text report is laid out for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What a text report is laid out for."""

    width: int = 80
    ascii_only: bool = False
    """Whether the terminal's encoding has no block characters."""
    top: int = 3
    """Findings that are told in full."""
    command: str = "PATH"
    """The paths as the user gave them, for the hints."""
