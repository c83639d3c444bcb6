"""Writes traces and sidecars on a thread of its own: compressed, and whole or not at all."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from isal import igzip

from tracekit.instrument import say
from tracekit.instrument.journal import SUFFIX as JOURNAL_SUFFIX
from tracekit.instrument.journal import Journal
from tracekit.instrument.process import Process
from tracekit.model.records import SIDECAR_SUFFIX, TRACE_SUFFIX, Sidecar, encode

_FAST = 1
"""igzip's level: 15 % larger files than gzip's default, in a tenth of its time."""


@dataclass(frozen=True, slots=True)
class Files:
    """Names of what one rank writes in one cycle."""

    rank: int
    cycle: int = 0

    @property
    def stem(self) -> str:
        return f"rank{self.rank}" + (f".cycle{self.cycle}" if self.cycle else "")

    @property
    def trace(self) -> str:
        return self.stem + TRACE_SUFFIX

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
        self._queue: SimpleQueue[tuple[Any, Sidecar | None, Files, Journal | None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def journal(self, who: Process, files: Files) -> Journal:
        """A journal for the cycle that is to become *files*."""
        return Journal(self._folder / (files.stem + JOURNAL_SUFFIX), who)

    def write(self, recorded: Any, sidecar: Sidecar | None, files: Files, journal: Journal | None) -> None:
        """Queue the *recorded* cycle (anything with ``export_chrome_trace(path)``), its *sidecar* and its *journal*."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tracekit-writer", daemon=True)
            self._thread.start()
        self._queue.put((recorded, sidecar, files, journal))

    def wait(self) -> None:
        """Return when everything queued is written."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            say.attempt(f"writing {self._folder / job[2].trace}", self._write, *job)

    def _write(self, recorded: Any, sidecar: Sidecar | None, files: Files, journal: Journal | None) -> None:
        plain, packed = self._part(files.stem + ".json"), self._part(files.trace)
        if journal is not None:
            journal.close()
        try:
            recorded.export_chrome_trace(str(plain))
            with plain.open("rb") as source, igzip.open(packed, "wb", compresslevel=_FAST) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            # The sidecar first: a trace with one is better than a trace that is found before its own.
            if sidecar is not None:
                part = self._part(files.sidecar)
                part.write_bytes(encode(sidecar))
                part.replace(self._folder / files.sidecar)
            packed.replace(self._folder / files.trace)
            if journal is not None:
                journal.remove()
        finally:
            for leftover in (plain, packed, self._part(files.sidecar)):
                with suppress(OSError):
                    leftover.unlink()
        if files.rank == 0:
            say.tell(f"wrote {self._folder / files.trace}; when every rank has: tracekit analyze {self._folder}")

    def _part(self, name: str) -> Path:
        return self._folder / f".{name}.part"
