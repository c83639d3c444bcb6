"""From stored recordings to the tables of a run: who is which rank, one clock, one table of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from tracekit.engine import sidecars
from tracekit.engine.clocks import UNCORRECTED, Correction, corrections
from tracekit.engine.stored import Stored
from tracekit.model.errors import none_of_them
from tracekit.model.records import Sidecar
from tracekit.model.run import RunTables
from tracekit.model.table import Table
from tracekit.model.tables import RANKS, RECORDED
from tracekit.readers import sidecar as sidecar_reader
from tracekit.readers.identity import Claim, Identity, identify
from tracekit.readers.recording import Info
from tracekit.store import recordings

_TIME_COLUMN = {"memory": "time_ns"}
_ANALYSABLE = ("read", "truncated")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run's tables and what is to be said of it."""

    tables: RunTables
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a claimed recording is stored, and what stands beside its trace."""

    folder: Path
    number: int
    sidecar: Sidecar | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A recording of the run that is analysed."""

    who: Identity
    place: _Place
    correction: Correction = UNCORRECTED

    @property
    def key(self) -> tuple[int, int]:
        return self.who.rank, self.who.window

    @property
    def start_ns(self) -> int:
        """The recording's first event, on its own clock."""
        return self.who.claim.info.start_ns

    def scan(self, table: str) -> pl.LazyFrame:
        """The recording's *table* in absolute time, on its own clock."""
        frame = recordings.scan(self.place.folder, self.place.number, table)
        if table == "collectives" and self.place.sidecar is not None:
            operators = recordings.scan(self.place.folder, self.place.number, "events")
            return sidecars.describe(frame, self.place.sidecar, operators)
        if table == "steps" and self.place.sidecar is not None:
            return sidecars.completed(frame, self.place.sidecar)
        return frame


def assemble(stored: Sequence[Stored], ranks: frozenset[int] | None) -> Loaded:
    """The run that *stored* files make, or of it the *ranks* asked for."""
    places: dict[int, _Place] = {}
    claims: list[Claim] = []
    notes: list[str] = []
    rows: list[dict[str, object]] = []
    any_trace = any(entry.infos for entry in stored)
    for entry in stored:
        if any_trace and not entry.found.named and "no traceEvents" in entry.error:
            notes.append(f"{entry.found.source} holds no trace and was left out")
        elif entry.error:
            rows.append(_failed(entry))
        for claim, place, note in _claims(entry):
            claims.append(claim)
            notes += [note] if note else []
            if place is not None:
                places[id(claim)] = place
    identities = identify(claims)
    for who in identities:
        notes += [note for note in who.notes if note not in notes]
    kept = [who for who in identities if ranks is None or who.rank in ranks]
    if ranks is not None and identities and not kept:
        raise none_of_them("ranks", ranks, {who.rank for who in identities})
    parts = _on_one_clock([_Part(who, places[id(who.claim)]) for who in kept if _usable(who)])
    origin_ns = min((part.start_ns + part.correction.at(part.start_ns) for part in parts), default=0)
    origin_ns -= origin_ns % 1000  # a whole microsecond, so that times keep the fractions that the profiler wrote
    corrected = {part.key: (part.correction, part.correction.at(part.start_ns)) for part in parts}
    rows = [_row(who, *corrected.get((who.rank, who.window), (UNCORRECTED, 0))) for who in kept] + rows
    tables = RunTables(
        ranks=pl.DataFrame(rows, schema=RANKS.schema, orient="row"),
        tables={table.name: _concat(table, parts, origin_ns) for table in RECORDED},
        sidecars={part.key: part.place.sidecar for part in parts if part.place.sidecar is not None},
    )
    return Loaded(tables, tuple(notes))


def _claims(entry: Stored) -> Iterator[tuple[Claim, _Place | None, str]]:
    """What each recording of a file claims to be, where it is, and what is to be said of it."""
    sidecar, note = sidecar_reader.beside(entry.found.path) if len(entry.infos) == 1 else (None, "")
    for number, recorded in enumerate(entry.infos):
        info, mine = recorded, sidecar
        if sidecar is not None:
            info, why = sidecars.informed(recorded, sidecar)
            if why:
                mine, note = None, f"{entry.found.source} {why}"
        place = None if entry.folder is None else _Place(entry.folder, number, mine)
        yield Claim(entry.found.source, info), place, note


def _on_one_clock(parts: list[_Part]) -> list[_Part]:
    """The same with what has to be added to each one's times."""
    clocks = {
        i: part.place.sidecar.clock for i, part in enumerate(parts) if part.place.sidecar and part.place.sidecar.clock
    }
    found = corrections(clocks, [part.start_ns for part in parts], (part.scan("collectives") for part in parts))
    return [replace(part, correction=correction) for part, correction in zip(parts, found, strict=True)]


def _usable(who: Identity) -> bool:
    return who.claim.info.status in _ANALYSABLE and not who.set_aside


def _concat(table: Table, parts: Sequence[_Part], origin_ns: int) -> pl.LazyFrame:
    """One table of all recordings, with rank and window, its times counted from the run's origin."""
    time = _TIME_COLUMN.get(table.name, "start_ns")
    frames = [
        part.scan(table.name).with_columns(
            pl.lit(part.who.rank, pl.Int32).alias("rank"),
            pl.lit(part.who.window, pl.Int16).alias("window"),
            part.correction.put_right(pl.col(time)) - origin_ns,
        )
        for part in parts
    ]
    return pl.concat(frames).select(table.schema.names()) if frames else table.empty().lazy()


def _row(who: Identity, correction: Correction, offset_ns: int) -> dict[str, object]:
    """The ``ranks`` row of a recording, whose *correction* begins with *offset_ns*."""
    info = who.claim.info
    return {
        "rank": who.rank,
        "window": who.window,
        "source": who.claim.source,
        "process": info.process,
        "status": "set_aside" if who.set_aside else info.status,
        "reason": who.set_aside or info.reason,
        "rank_source": who.rank_source,
        "clock_offset_ns": offset_ns,
        "clock_drift_ppb": correction.drift_ppb,
        "clock_error_ns": correction.error_ns,
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
    return _row(Identity(Claim(entry.found.source, info), -1, rank_source=""), UNCORRECTED, 0)
