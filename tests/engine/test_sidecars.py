"""What a sidecar adds to the recording that it stands beside."""

from __future__ import annotations

import polars as pl

from tracekit.engine import sidecars
from tracekit.model.records import Collective, Group, Sidecar
from tracekit.model.tables import COLLECTIVES, EVENTS
from tracekit.readers.recording import Info

MS = 1_000_000


def sidecar(*collectives: Collective, **fields: object) -> Sidecar:
    world = Group(name="0", description="default_pg", backend="gloo", ranks=(0, 1))
    return Sidecar(version=1, rank=1, world_size=2, groups=(world,), collectives=collectives, **fields)  # type: ignore[arg-type]


def entry(seq: int, created_ns: int, op: str = "gloo:all_reduce") -> Collective:
    return Collective(
        group="0", op=op, seq=seq, created_ns=created_ns, dtype="Float", in_bytes=8 * seq, out_bytes=8 * seq
    )


def ranges(*start_ns: int, name: str = "gloo:all_reduce") -> pl.LazyFrame:
    rows = {"name": [name] * len(start_ns), "op": ["all_reduce"] * len(start_ns), "start_ns": list(start_ns)}
    frame = pl.DataFrame(rows, schema_overrides={"name": COLLECTIVES.schema["name"]})
    missing = {k: t for k, t in COLLECTIVES.schema.items() if k not in frame.columns}
    return frame.with_columns(pl.lit(None, t).alias(k) for k, t in missing.items()).lazy()


def operators(*rows: tuple[str, int]) -> pl.LazyFrame:
    """Host operators by name and start."""
    schema = {name: EVENTS.schema[name] for name in ("kind", "name", "start_ns")}
    return pl.LazyFrame([("cpu_op", *row) for row in rows], schema=schema, orient="row")


def seqs(frame: pl.LazyFrame) -> list[int | None]:
    return frame.collect()["seq"].to_list()


def test_the_last_range_is_the_last_entry() -> None:
    known = sidecar(entry(4, 1 * MS), entry(5, 10 * MS), entry(6, 20 * MS))
    described = sidecars.describe(ranges(11 * MS, 21 * MS), known, operators()).collect()
    assert described["seq"].to_list() == [5, 6]
    assert described["group_ranks"].to_list() == ["[0, 1]", "[0, 1]"]
    assert described["in_bytes"].to_list() == [40, 48]


def test_entries_after_the_recording_are_none_of_it() -> None:
    known = sidecar(entry(4, 10 * MS), entry(5, 90 * MS))
    assert seqs(sidecars.describe(ranges(11 * MS), known, operators())) == [4]


def test_what_the_flight_recorder_had_overwritten_stays_unknown() -> None:
    assert seqs(sidecars.describe(ranges(11 * MS, 21 * MS), sidecar(entry(6, 20 * MS)), operators())) == [None, 6]


def test_an_entry_that_would_be_created_after_its_range_began_does_not_belong() -> None:
    known = sidecar(entry(4, 15 * MS), entry(5, 20 * MS))
    assert seqs(sidecars.describe(ranges(11 * MS, 21 * MS), known, operators())) == [None, None]


def test_each_operation_is_matched_among_its_own() -> None:
    known = sidecar(entry(4, 10 * MS), entry(5, 11 * MS, "gloo:broadcast"), entry(6, 20 * MS))
    both = pl.concat([ranges(21 * MS), ranges(12 * MS, name="gloo:broadcast")])
    assert seqs(sidecars.describe(both, known, operators())) == [6, 5]


def test_a_sidecar_of_another_rank_is_left_out() -> None:
    info, why = sidecars.informed(Info(rank=0), sidecar())
    assert info.rank == 0
    assert "says rank 0 and its sidecar says 1" in why


def test_a_sidecar_says_who_the_rank_is() -> None:
    info, why = sidecars.informed(Info(), sidecar(backend="gloo"))
    assert (info.rank, info.rank_source, info.world_size, info.backend, why) == (1, "sidecar", 2, "gloo", "")


def test_steps_beyond_the_completed_ones_are_not_complete() -> None:
    steps = pl.LazyFrame({"step": [7, 8, 9], "start_ns": [1, 2, 3], "complete": [True, True, True]})
    cut_off = sidecars.completed(steps, sidecar(complete=False, steps=2))
    assert cut_off.collect()["complete"].to_list() == [True, True, False]


def test_what_the_program_asked_for_is_in_the_operator() -> None:
    """gloo does a reduce-scatter by an all-reduce of the whole input."""
    known = sidecar(entry(4, 10 * MS), entry(5, 20 * MS))
    asked = operators(("c10d::_reduce_scatter_base_", 10 * MS - 50_000), ("c10d::allreduce_", 20 * MS - 50_000))
    described = sidecars.describe(ranges(11 * MS, 21 * MS), known, asked).collect()
    assert described.select("op", "in_bytes", "out_bytes").rows() == [
        ("reduce_scatter", 32, None),
        ("all_reduce", 40, 40),
    ]
