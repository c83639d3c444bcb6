"""From paths to the tables of a run: find the files, read what the store does not hold, decide who is which rank."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tracekit.engine import executors
from tracekit.engine.messages import Done, Request
from tracekit.model.errors import UnreadableError
from tracekit.model.run import RunTables
from tracekit.model.table import Table
from tracekit.model.tables import COLLECTIVES, EVENTS, MEMORY, RANKS, STEPS
from tracekit.readers.discover import Found, discover
from tracekit.readers.identity import Claim, Identity, identify
from tracekit.readers.recording import Info
from tracekit.store import is_run, read_run, recordings
from tracekit.store.cache import Cache, identity

_TIME_COLUMN = {"memory": "time_ns"}
_RECORDED = (EVENTS, COLLECTIVES, STEPS, MEMORY)
_ANALYSABLE = ("read", "truncated")


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


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run's tables and what is to be said of it."""

    tables: RunTables
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    """Where the recordings of one file are, or why there are none."""

    found: Found
    folder: Path | None
    infos: tuple[Info, ...]
    error: str = ""


def load(paths: Sequence[str | Path], options: Options) -> Loaded:
    """Load the traces at *paths*. Raises `UnreadableError` or `UsageError` only when there is nothing to load at all."""
    if len(paths) == 1 and is_run(Path(paths[0])):
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
    return _assemble(stored, options)


def _converted(folder: Path, options: Options) -> Loaded:
    """A folder that ``tracekit convert`` wrote."""
    run = read_run(folder)
    if options.ranks is None:
        return Loaded(run, ())
    kept = pl.col("rank").is_in(sorted(options.ranks))
    tables = {name: frame.filter(kept) for name, frame in run.tables.items()}
    return Loaded(RunTables(ranks=run.ranks.filter(kept), tables=tables), ())


def _temporary_cache() -> Cache:
    """A cache that lives as long as the process: lazy tables may outlive their run."""
    folder = tempfile.mkdtemp(prefix="tracekit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Cache(Path(folder))


def _load_without_cache(paths: Sequence[str | Path], options: Options, why: str) -> Loaded:
    anew = Options(cache=None, workers=options.workers, ranks=options.ranks, progress=options.progress)
    loaded = load(paths, anew)
    return Loaded(loaded.tables, (*loaded.notes, f"{why}; read without it"))


def _store(files: Sequence[Found], cache: Cache, options: Options) -> list[_Stored]:
    """Bring every file into *cache*, reading those it does not hold. ``OSError`` means that the cache cannot be written."""
    report = options.progress or (lambda _progress: None)
    stored: dict[int, _Stored] = {}
    keys: dict[int, str] = {}
    for index, file in enumerate(files):
        try:
            keys[index] = identity(file.path)
            entry = cache.find(keys[index])
        except OSError as error:
            stored[index] = _Stored(file, None, (), error.strerror or str(error))
            continue
        if entry is not None:
            stored[index] = _Stored(file, entry, recordings.infos(entry) or ())
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


def _committed(file: Found, request: Request, outcome: Done, cache: Cache, key: str) -> _Stored:
    if outcome.error:
        return _Stored(file, None, (), outcome.error)
    entry = cache.commit(Path(request.folder), key)
    return _Stored(file, entry, recordings.infos(entry) or ())


def _raise_if_named_and_alone(stored: Sequence[_Stored]) -> None:
    """A single file that cannot be read, given by name, is an error; among others it is a row that says why."""
    if len(stored) == 1 and stored[0].error and stored[0].found.named:
        raise UnreadableError(stored[0].error, where=str(stored[0].found.path))


def _assemble(stored: Sequence[_Stored], options: Options) -> Loaded:
    places: dict[int, tuple[Path, int]] = {}
    claims: list[Claim] = []
    notes: list[str] = []
    rows: list[dict[str, object]] = []
    any_trace = any(entry.infos for entry in stored)
    for entry in stored:
        if any_trace and not entry.found.named and "no traceEvents" in entry.error:
            notes.append(f"{entry.found.source} holds no trace and was left out")
        elif entry.error:
            rows.append(_failed(entry))
        for number, info in enumerate(entry.infos):
            claim = Claim(entry.found.source, info)
            claims.append(claim)
            if entry.folder is not None:
                places[id(claim)] = (entry.folder, number)
    identities = identify(claims)
    for who in identities:
        notes += [note for note in who.notes if note not in notes]
    kept = [who for who in identities if options.ranks is None or who.rank in options.ranks]
    used = [who for who in kept if _usable(who)]
    origin_ns = min((who.claim.info.start_ns for who in used), default=0)
    origin_ns -= origin_ns % 1000  # a whole microsecond, so that times keep the fractions that the profiler wrote
    ranks = pl.DataFrame([_row(who) for who in kept] + rows, schema=RANKS.schema, orient="row")
    parts = [(who, *places[id(who.claim)]) for who in used]
    tables = {table.name: _concat(table, parts, origin_ns) for table in _RECORDED}
    return Loaded(RunTables(ranks=ranks, tables=tables), tuple(notes))


def _usable(who: Identity) -> bool:
    return who.claim.info.status in _ANALYSABLE and not who.set_aside


def _concat(table: Table, parts: Sequence[tuple[Identity, Path, int]], origin_ns: int) -> pl.LazyFrame:
    """One table of all recordings, with rank and window, its times counted from the run's origin."""
    time = _TIME_COLUMN.get(table.name, "start_ns")
    frames = [
        recordings.scan(folder, number, table.name).with_columns(
            pl.lit(who.rank, pl.Int32).alias("rank"),
            pl.lit(who.window, pl.Int16).alias("window"),
            pl.col(time) - origin_ns,
        )
        for who, folder, number in parts
    ]
    return pl.concat(frames).select(table.schema.names()) if frames else table.empty().lazy()


def _row(who: Identity) -> dict[str, object]:
    """The ``ranks`` row of a recording. Its clock is taken as it is: correction 0, error unknown."""
    info = who.claim.info
    return {
        "rank": who.rank,
        "window": who.window,
        "source": who.claim.source,
        "process": info.process,
        "status": "set_aside" if who.set_aside else info.status,
        "reason": who.set_aside or info.reason,
        "rank_source": who.rank_source,
        "clock_offset_ns": 0,
        "clock_error_ns": None,
        "notes": list(info.notes),
        **{name: getattr(info, name) for name in _COPIED},
    }


_COPIED = (
    "world_size",
    "backend",
    "view",
    "device_name",
    "base_ns",
    "complete_events",
    "device_events",
    "events_read",
    "events_repaired",
    "events_dropped",
    "device_ns_touched",
)


def _failed(entry: _Stored) -> dict[str, object]:
    """The ``ranks`` row of a file that could not be read: no rank, but never silence."""
    info = Info(status="failed", reason=entry.error)
    return _row(Identity(Claim(entry.found.source, info), -1, rank_source=""))
