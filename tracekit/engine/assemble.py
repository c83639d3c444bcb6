"""From stored recordings to the tables of a run: who is which rank, one clock, one table of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tracekit.engine.stored import Stored
from tracekit.model.run import RunTables
from tracekit.model.table import Table
from tracekit.model.tables import COLLECTIVES, EVENTS, MEMORY, RANKS, STEPS
from tracekit.readers.identity import Claim, Identity, identify
from tracekit.readers.recording import Info
from tracekit.store import recordings

_TIME_COLUMN = {"memory": "time_ns"}
_RECORDED = (EVENTS, COLLECTIVES, STEPS, MEMORY)
_ANALYSABLE = ("read", "truncated")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run's tables and what is to be said of it."""

    tables: RunTables
    notes: tuple[str, ...]


def assemble(stored: Sequence[Stored], ranks: frozenset[int] | None) -> Loaded:
    """The run that *stored* files make, or of it the *ranks* asked for."""
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
    kept = [who for who in identities if ranks is None or who.rank in ranks]
    used = [who for who in kept if _usable(who)]
    origin_ns = min((who.claim.info.start_ns for who in used), default=0)
    origin_ns -= origin_ns % 1000  # a whole microsecond, so that times keep the fractions that the profiler wrote
    table_of_ranks = pl.DataFrame([_row(who) for who in kept] + rows, schema=RANKS.schema, orient="row")
    parts = [(who, *places[id(who.claim)]) for who in used]
    tables = {table.name: _concat(table, parts, origin_ns) for table in _RECORDED}
    return Loaded(RunTables(ranks=table_of_ranks, tables=tables), tuple(notes))


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


def _failed(entry: Stored) -> dict[str, object]:
    """The ``ranks`` row of a file that could not be read: no rank, but never silence."""
    info = Info(status="failed", reason=entry.error)
    return _row(Identity(Claim(entry.found.source, info), -1, rank_source=""))
