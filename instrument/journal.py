"""The completed steps of a recording, on disk as they happen: what is left of a rank that is killed before its trace is written.

A trace that is never closed, which readers of traces take for what it is: one that was cut off. The writer removes it once the
whole trace is there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from json import dumps
from pathlib import Path
from threading import get_native_id
from typing import BinaryIO

from tracekit.instrument.process import Process

SUFFIX = ".journal.json"


class Journal:
    """Steps of one cycle. `step` after each; `remove` when the trace is written. ``OSError`` only on opening."""

    def __init__(self, path: Path, who: Process) -> None:
        self.path = path
        self._file: BinaryIO | None = path.open("wb", buffering=0)
        info = {"rank": who.rank, "world_size": who.world_size}
        self._file.write(b'{"tracekitJournal": true, "distributedInfo": %b, "traceEvents": [\n' % dumps(info).encode())

    def step(self, number: int, begin_ns: int, end_ns: int) -> None:
        """Note a step that ran from *begin_ns* to *end_ns* (Unix time). A full disk costs the journal, nothing else."""
        line = '{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": %d, "tid": %d, "ts": %s, "dur": %s},\n'
        text = line % (number, os.getpid(), get_native_id(), _microseconds(begin_ns), _microseconds(end_ns - begin_ns))
        if self._file is not None:
            try:
                self._file.write(text.encode())
            except OSError:
                self.remove()

    def close(self) -> None:
        """Write no more; the file stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Delete it."""
        self.close()
        with suppress(OSError):
            self.path.unlink()


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"
