"""What the reading processes are asked and what they answer, as JSON lines."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True):
    """Read *path* and write its recordings into *folder*."""

    path: str
    folder: str


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Bytes of the file consumed so far."""

    bytes_done: int


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The folder is written. Or it is not, and *error* says why (file, reason, remedy in one line)."""

    error: str = ""
    unwritable: bool = False
    """Whether it was the store that could not be written: another one may do."""


Answer = Progress | Done
