"""Each rank's communication by dimension and operation, as waiting, transfer and the rest."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Row, collective, compute
from tracekit.analyses import groups
from tracekit.analyses.communication import ANALYSIS
from tracekit.engine.matching import SYNCHRONISING

TP: dict[str, Any] = {"group": "1", "group_desc": "mesh_tp", "group_ranks": "[0, 1]"}
DP: dict[str, Any] = {"group": "2", "group_desc": "mesh_dp", "group_ranks": "[0, 2]"}
PARTS = ("wait_ns", "transfer_ns", "leave_ns", "unmatched_ns")


def communication(*rows: Row) -> pl.DataFrame:
    return compute(ANALYSIS, *rows, before=[groups.ANALYSIS])


def test_two_groups_and_the_rank_that_is_in_both() -> None:
    """In the tensor-parallel group rank 1 comes 30 ns late and leaves 2 ns late."""
    table = communication(
        collective(start=0, end=50, rank=0, **TP),
        collective(start=30, end=52, rank=1, **TP),
        collective(start=60, end=90, rank=0, **DP),
        collective(start=60, end=90, rank=2, **DP),
    )
    names = ("rank", "dimension", "count", "matched", "times_last", "summed_ns", *PARTS)
    assert table.select(names).rows() == [
        (0, "tp", 1, 1, 0, 50, 30, 20, 0, 0),
        (0, "dp", 1, 1, 0, 30, 0, 30, 0, 0),
        (1, "tp", 1, 1, 1, 22, 0, 20, 2, 0),
        (2, "dp", 1, 1, 0, 30, 0, 30, 0, 0),
    ]


def test_operations_of_one_dimension_are_summed_over_its_groups() -> None:
    rows = [
        collective(start=at, end=at + 10, rank=rank, group=name, group_desc="mesh_dp_shard", group_ranks="[0, 1]")
        for at, name in ((0, "1"), (20, "2"))
        for rank in (0, 1)
    ]
    assert communication(*rows).select("rank", "dimension", "count", "transfer_ns").rows() == [
        (0, "dp_shard", 2, 20),
        (1, "dp_shard", 2, 20),
    ]


def test_bandwidth_is_of_matched_operations_alone() -> None:
    """100 bytes in 20 ns; 7 bytes that no other rank shows, and operations of unknown size, say nothing of the network."""
    known = [collective(start=0, end=20, rank=r, in_bytes=100, seq=1, **TP) for r in (0, 1)]
    unknown = [collective(start=30, end=90, rank=r, seq=2, **TP) for r in (0, 1)]
    lone = collective(start=100, end=110, in_bytes=7, seq=3, **TP)
    (row,) = communication(*known, *unknown, lone).filter(rank=0).to_dicts()
    assert (row["count"], row["matched"], row["bytes"], row["median_bytes"]) == (3, 2, 107, 53.5)
    assert row["algbw_bytes_per_s"] == 100 / 20e-9


def test_unknown_sizes_stay_unknown() -> None:
    (row, _) = communication(*(collective(start=0, end=20, rank=r) for r in (0, 1))).to_dicts()
    assert (row["bytes"], row["median_bytes"], row["algbw_bytes_per_s"]) == (None, None, None)


def test_a_single_rank_has_nobody_to_wait_for() -> None:
    (row,) = communication(collective(start=0, end=20), collective(start=30, end=40)).to_dicts()
    assert (row["matched"], row["summed_ns"], *(row[part] for part in PARTS)) == (0, 30, 0, 0, 0, 30)


def test_a_doubtful_match_is_none() -> None:
    rows = [collective(start=0, end=10, step=0), collective(start=50, end=60, rank=1, step=0)]
    assert communication(*rows).select("rank", "matched", *PARTS).rows() == [(0, 0, 0, 0, 0, 10), (1, 0, 0, 0, 0, 10)]


def test_a_run_that_does_not_communicate_has_no_rows() -> None:
    assert communication().is_empty()


OPERATION = st.tuples(
    st.sampled_from([*SYNCHRONISING[:3], "broadcast", "send_recv"]),
    st.sampled_from(["tp", "dp", None]),
    st.integers(0, 2),
    st.integers(0, 100),
    st.integers(0, 30),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, 0, 8, 4096]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERATION, max_size=16))
def test_parts_add_up_to_the_durations(operations: list[tuple[Any, ...]]) -> None:
    rows = [
        collective(op, start, start + length, group=group, rank=rank, step=step, in_bytes=size)
        for op, group, rank, start, length, step, size in operations
    ]
    table = communication(*rows)
    assert (pl.select(sum(table[part] for part in PARTS)).to_series() == table["summed_ns"]).all() or table.is_empty()
    assert all((table[part] >= 0).all() for part in PARTS)
    per_rank = table.group_by("rank").agg(pl.col("summed_ns", "count").sum())
    expected = {
        rank: (sum(length for _, _, r, _, length, _, _ in operations if r == rank), number)
        for rank in range(3)
        if (number := sum(r == rank for _, _, r, *_ in operations))
    }
    assert {rank: (summed, number) for rank, summed, number in per_rank.rows()} == expected
