"""From paths to the tables of a run: find the files and read what the store does not hold.

polars is not imported here but in `assemble`, which is imported while the reading processes already work.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.engine import executors
from tracekit.engine.messages import Done, Request
from tracekit.engine.stored import Stored
from tracekit.model.errors import UnreadableError
from tracekit.readers.discover import Found, discover
from tracekit.store import index as store_index
from tracekit.store.cache import Cache, identity

if TYPE_CHECKING:
    from tracekit.engine.assemble import Loaded


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far a file is. *state* is ``cached``, ``reading``, ``read`` or ``failed``."""

    source: str
    bytes_done: int
    bytes_total: int
    state: str


OnProgress = Callable[[FileProgress], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to load."""

    cache: Cache | None
    """None reads everything anew and keeps nothing."""
    workers: int | None = None
    """Processes to read with; None decides by the machine and the amount."""
    ranks: frozenset[int] | None = None
    """Ranks to keep; None keeps all."""
    progress: OnProgress | None = None


def load(paths: Sequence[str | Path], options: Options) -> Loaded:
    """Load the traces at *paths*. Raises `UnreadableError` or `UsageError` only when there is nothing to load at all."""
    if len(paths) == 1 and store_index.is_run(Path(paths[0])):
        return _converted(Path(paths[0]), options)
    files = discover(paths)
    try:
        stored = _store(files, options.cache or _temporary_cache(), options)
    except OSError as error:
        if options.cache is None:
            raise UnreadableError(
                f"no room to work in: {error.strerror or error}",
                where=str(error.filename or ""),
                remedy="set TMPDIR to a folder with space",
            ) from None
        return _load_without_cache(
            paths, options, f"the cache {options.cache.folder} cannot be used ({error.strerror or error})"
        )
    _raise_if_named_and_alone(stored)
    from tracekit.engine.assemble import assemble

    return assemble(stored, options.ranks)


def _converted(folder: Path, options: Options) -> Loaded:
    """A folder that ``tracekit convert`` wrote."""
    from tracekit.engine.assemble import Loaded
    from tracekit.store.runs import read_run

    return Loaded(read_run(folder, options.ranks), ())


def _temporary_cache() -> Cache:
    """A cache that lives as long as the process: lazy tables may outlive their run."""
    folder = tempfile.mkdtemp(prefix="tracekit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Cache(Path(folder))


def _load_without_cache(paths: Sequence[str | Path], options: Options, why: str) -> Loaded:
    loaded = load(paths, replace(options, cache=None))
    return replace(loaded, notes=(*loaded.notes, f"{why}; read without it"))


def _store(files: Sequence[Found], cache: Cache, options: Options) -> list[Stored]:
    """Bring every file into *cache*, reading those it does not hold. ``OSError`` means that the cache cannot be written."""
    report = options.progress or (lambda _progress: None)
    stored: dict[int, Stored] = {}
    keys: dict[int, str] = {}
    for index, file in enumerate(files):
        try:
            keys[index] = identity(file.path)
            entry = cache.find(keys[index])
        except OSError as error:
            stored[index] = Stored(file, None, (), error.strerror or str(error))
            continue
        if entry is not None:
            stored[index] = Stored(file, entry, store_index.infos(entry) or ())
            report(FileProgress(file.source, 0, 0, "cached"))
    waiting = [index for index in range(len(files)) if index not in stored]
    sizes = [files[index].path.stat().st_size for index in waiting]
    requests = [Request(str(files[index].path), str(cache.new())) for index in waiting]

    def on_progress(position: int, done: int) -> None:
        report(FileProgress(files[waiting[position]].source, done, sizes[position], "reading"))

    outcomes = executors.run(requests, sizes, options.workers, on_progress)
    for outcome in outcomes:
        if outcome.unwritable:
            raise OSError(outcome.error)
    for index, request, outcome, size in zip(waiting, requests, outcomes, sizes, strict=True):
        stored[index] = _committed(files[index], request, outcome, cache, keys[index])
        report(FileProgress(files[index].source, size, size, "failed" if outcome.error else "read"))
    return [stored[index] for index in range(len(files))]


def _committed(file: Found, request: Request, outcome: Done, cache: Cache, key: str) -> Stored:
    if outcome.error:
        return Stored(file, None, (), outcome.error)
    entry = cache.commit(Path(request.folder), key)
    return Stored(file, entry, store_index.infos(entry) or ())


def _raise_if_named_and_alone(stored: Sequence[Stored]) -> None:
    """A single file that cannot be read, given by name, is an error; among others it is a row that says why."""
    if len(stored) == 1 and stored[0].error and stored[0].found.named:
        raise UnreadableError(stored[0].error, where=str(stored[0].found.path))
