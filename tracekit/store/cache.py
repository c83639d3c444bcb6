"""The cache: traces already read, found again by their content.

Safe with concurrent readers and writers: an entry is written into a folder of its own and renamed into place when it is
whole; who comes second throws its copy away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tracekit.store.index import FORMAT_VERSION, infos

_HASHED_WHOLE = 4 << 20
_SAMPLE = 1 << 16
_SAMPLES = 16

FOLDER_VARIABLE = "TRACEKIT_CACHE"


def default_folder() -> Path:
    """``$TRACEKIT_CACHE``, or ``tracekit`` in the platform's cache folder."""
    given = os.environ.get(FOLDER_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("tracekit", appauthor=False))


def identity(path: Path) -> str:
    """Identity of a file's content, as a hex digest. Raises ``OSError``.

    Files to 4 MiB are hashed whole. Hashing larger ones would cost a good part of reading them, so they are known by size,
    modification time, head, tail and 16 samples between: a false hit would need an edit of equal length that keeps the time.
    """
    status = path.stat()
    digest = hashlib.blake2b(f"{FORMAT_VERSION}:{status.st_size}".encode(), digest_size=16)
    with path.open("rb") as file:
        if status.st_size <= _HASHED_WHOLE:
            digest.update(file.read())
        else:
            digest.update(str(status.st_mtime_ns).encode())
            for sample in range(_SAMPLES + 1):
                file.seek((status.st_size - _SAMPLE) * sample // _SAMPLES)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Cache:
    """Entries below *folder*, one folder each, by identity."""

    folder: Path

    def find(self, key: str) -> Path | None:
        """The whole entry *key*, or None."""
        entry = self._entry(key)
        return entry if infos(entry) is not None else None

    def new(self) -> Path:
        """An empty folder to write an entry into, on the same file system. Raises ``OSError``."""
        (self.folder / "new").mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self.folder / "new"))

    def commit(self, written: Path, key: str) -> Path:
        """Rename *written* into place as entry *key*; where another process was faster, theirs stays. Raises ``OSError``."""
        entry = self._entry(key)
        entry.parent.mkdir(parents=True, exist_ok=True)
        if entry.exists() and infos(entry) is None:  # what a killed process or an older version left
            shutil.rmtree(entry, ignore_errors=True)
        try:
            written.rename(entry)
        except OSError:
            if infos(entry) is None:
                raise
            shutil.rmtree(written, ignore_errors=True)
        return entry

    def _entry(self, key: str) -> Path:
        return self.folder / f"v{FORMAT_VERSION}" / key[:2] / key
