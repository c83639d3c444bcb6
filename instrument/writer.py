"""Writes traces and sidecars on a thread of its own: compressed, and whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tracekit.instrument import say
from tracekit.instrument.journal import SUFFIX as JOURNAL_SUFFIX
from tracekit.instrument.journal import Journal
from tracekit.instrument.process import Process
from tracekit.model.records import SIDECAR_SUFFIX, TRACE_SUFFIX, Sidecar, encode

Export = Callable[[Path], None]
"""Writes a recorded cycle to a path; what it leaves beside that path it removes itself."""


@dataclass(frozen=True, slots=True)
class Files:
    """Names of what one rank writes in one cycle."""

    rank: int
    cycle: int = 0
    suffix: str = TRACE_SUFFIX

    @property
    def stem(self) -> str:
        return f"rank{self.rank}" + (f".cycle{self.cycle}" if self.cycle else "")

    @property
    def trace(self) -> str:
        return self.stem + self.suffix

    @property
    def sidecar(self) -> str:
        return self.stem + SIDECAR_SUFFIX


class Writer:
    """Writes into *folder*, which is made if it is missing. ``OSError`` if it cannot be, or cannot be written into."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PermissionError(f"the folder {folder} cannot be written into: give another with out=")
        self._queue: SimpleQueue[tuple[Export, Sidecar | None, Files, Journal | None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def journal(self, who: Process, files: Files) -> Journal:
        """A journal for the cycle that is to become *files*."""
        return Journal(self._folder / (files.stem + JOURNAL_SUFFIX), who)

    def write(self, export: Export, sidecar: Sidecar | None, files: Files, journal: Journal | None = None) -> None:
        """Queue a recorded cycle, which *export* writes, its *sidecar* and its *journal*."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tracekit-writer", daemon=True)
            self._thread.start()
        self._queue.put((export, sidecar, files, journal))

    def wait(self) -> None:
        """Return when everything queued is written."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            say.attempt(f"writing {self._folder / job[2].trace}", self._write, *job)

    def _write(self, export: Export, sidecar: Sidecar | None, files: Files, journal: Journal | None) -> None:
        trace, described = self._part(files.trace), self._part(files.sidecar)
        if journal is not None:
            journal.close()
        try:
            export(trace)
            # The sidecar first: a trace with one is better than a trace that is found before its own.
            if sidecar is not None:
                described.write_bytes(encode(sidecar))
                described.replace(self._folder / files.sidecar)
            trace.replace(self._folder / files.trace)
            if journal is not None:
                journal.remove()
        finally:
            for leftover in (trace, described):
                with suppress(OSError):
                    leftover.unlink()
        if files.rank == 0:
            then = (
                f"when every rank has: tracekit analyze {self._folder}"
                if files.suffix == TRACE_SUFFIX
                else "XProf opens it"
            )
            say.tell(f"wrote {self._folder / files.trace}; {then}")

    def _part(self, name: str) -> Path:
        return self._folder / f".{name}.part"
