"""Each collective once: who came last, the waiting of each rank, transfer and bandwidth."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from tests.builders import Row, collective, compute, rank
from tracekit.analyses import groups
from tracekit.analyses.matches import ANALYSIS, bus_factor

TP: dict[str, Any] = {"group": "1", "group_desc": "mesh_tp", "group_ranks": "[0, 1]"}
DP: dict[str, Any] = {"group": "2", "group_desc": "mesh_dp", "group_ranks": "[0, 2]"}


def meeting(arrivals: dict[int, int], end: int, op: str = "all_reduce", **columns: Any) -> list[Row]:
    """A collective to which each rank comes at its time, and which all leave at *end*."""
    return [collective(op, at, end, rank=rank, **columns) for rank, at in arrivals.items()]


def matches(*rows: Row) -> pl.DataFrame:
    return compute(ANALYSIS, *rows, before=[groups.ANALYSIS])


def test_two_groups() -> None:
    table = matches(*meeting({0: 10, 1: 40}, 100, step=3, **TP), *meeting({0: 110, 2: 5}, 120, step=3, **DP))
    names = ("dimension", "group_desc", "group_ranks", "step", "start_ns", "last_ns", "last_rank", "wait_ns")
    assert table.select(*names, "transfer_ns", "quality").rows() == [
        ("dp", "mesh_dp", [0, 2], 3, 5, 110, 0, [0, 105], 10, "order"),
        ("tp", "mesh_tp", [0, 1], 3, 10, 40, 1, [30, 0], 60, "order"),
    ]
    assert table["match_id"].to_list() == [0, 1]


def test_bandwidth_is_of_the_transfer_and_not_of_the_waiting() -> None:
    """600 bytes in 60 ns; of two ranks an all-reduce sends each byte once over a link, an all-gather half of them."""
    reduced = meeting({0: 0, 1: 40}, 100, in_bytes=600, out_bytes=600, **TP)
    gathered = meeting({0: 200, 1: 240}, 300, "all_gather", in_bytes=300, out_bytes=600, **TP)
    table = matches(*reduced, *gathered).select("bytes", "algbw_bytes_per_s", "busbw_bytes_per_s")
    assert table.rows() == [(600, 1e10, 1e10), (600, 1e10, 0.5e10)]


def test_ranks_that_were_not_recorded_count_for_the_links() -> None:
    """Two of the four ranks were recorded: 2 · 3 / 4 bytes go over a link for each byte."""
    (row,) = matches(*meeting({0: 0, 1: 0}, 100, in_bytes=1000, group="0", group_size=4)).to_dicts()
    assert (row["group_ranks"], row["group_size"], row["busbw_bytes_per_s"]) == ([0, 1], 4, 1.5e10)


def test_what_is_unknown_stays_unknown() -> None:
    without_size = meeting({0: 0, 1: 0}, 100)
    without_transfer = [collective(start=200, end=210, in_bytes=8), collective(start=210, end=220, in_bytes=8, rank=1)]
    table = matches(*without_size, *without_transfer)
    assert table.select("bytes", "transfer_ns", "algbw_bytes_per_s").rows() == [(None, 100, None), (8, 0, None)]


def test_a_doubtful_match_has_no_times() -> None:
    rows = [collective(start=0, end=10, in_bytes=8, step=0), collective(start=50, end=60, in_bytes=8, rank=1, step=0)]
    (row,) = matches(*rows).to_dicts()
    assert (row["quality"], row["last_rank"], row["wait_ns"], row["transfer_ns"], row["busbw_bytes_per_s"]) == (
        "doubtful", None, [None, None], None, None,
    )  # fmt: skip


def test_nobody_is_last_within_the_error_of_the_clocks() -> None:
    (row,) = matches(*meeting({0: 0, 1: 30}, 50), rank(0), rank(1, clock_error_ns=30)).to_dicts()
    assert (row["last_rank"], row["wait_ns"]) == (None, [30, 0])


def test_an_operation_that_no_other_rank_shows_has_no_row() -> None:
    assert matches(*meeting({0: 0}, 10), *meeting({0: 20, 1: 20}, 30, **TP))["match_id"].to_list() == [0]
    assert matches(*meeting({0: 0}, 10)).is_empty()
    assert matches().is_empty()


@pytest.mark.parametrize(
    ("op", "factor"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("all_to_all", 0.875),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("send_recv", 1.0),
    ],
)
def test_factors_of_nccl_tests_among_eight_ranks(op: str, factor: float) -> None:
    assert pl.select(bus_factor(pl.lit(op), pl.lit(8))).item() == factor
