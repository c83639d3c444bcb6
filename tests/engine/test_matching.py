"""Which operations are one collective, who came last, and what waiting and transfer are."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.builders import Row, collective, rank, run
from tracekit.engine.matching import SYNCHRONISING, matched

Spans = dict[int, list[tuple[int, int]]]


def of(spans: Spans, **columns: Any) -> list[Row]:
    """Collectives of each rank by start and end."""
    return [collective(start=a, end=b, rank=r, **columns) for r, times in spans.items() for a, b in times]


def matches(*rows: Row) -> list[tuple[Any, ...]]:
    """Of each match: quality, ranks, last rank, waits, transfer; of each unmatched operation the same with None."""
    table = matched(run(*rows)).collect()
    parts = table["wait_ns"] + table["transfer_ns"] + table["leave_ns"]
    assert (parts == table["dur_ns"]).all(), "wait, transfer and leaving are the duration"
    key = ["match_id", "match_quality", "last_rank", "transfer_ns"]
    told = table.filter(pl.col("match_id").is_not_null()).group_by(key, maintain_order=True).agg("rank", "wait_ns")
    lone = table.filter(pl.col("match_id").is_null())
    return [
        *told.select("match_quality", "rank", "last_rank", "wait_ns", "transfer_ns").rows(),
        *((quality, [number], None, [None], None) for quality, number in lone.select("match_quality", "rank").rows()),
    ]


class TestNumbers:
    def test_by_sequence_number_whatever_the_windows_hold(self) -> None:
        rows = [
            collective(start=a, end=a + 20, rank=r, group="0", seq=s)
            for r, s, a in [(0, 7, 0), (0, 8, 100), (1, 8, 105)]
        ]
        assert matches(*rows) == [
            ("sequence", [0, 1], 1, [5, 0], 15),
            ("unmatched", [0], None, [None], None),
        ]

    def test_by_place_in_the_step(self) -> None:
        rows = [*of({0: [(0, 50)], 1: [(30, 50)]}, step=3), *of({0: [(100, 160)], 1: [(90, 150)]}, step=4)]
        assert matches(*rows) == [("order", [0, 1], 1, [30, 0], 20), ("order", [0, 1], 0, [0, 10], 50)]

    def test_a_step_cut_by_the_window_costs_that_step_alone(self) -> None:
        """Rank 1 was recorded from the middle of step 3 on; what is left of the step is matched by time."""
        rows = [
            *of({0: [(0, 20), (40, 60)], 1: [(50, 60)]}, step=3),
            *of({0: [(100, 120), (140, 160)], 1: [(110, 120), (140, 160)]}, step=4),
        ]
        assert matches(*rows) == [
            ("time", [0, 1], 1, [10, 0], 10),
            ("order", [0, 1], 1, [10, 0], 10),
            ("order", [0, 1], None, [0, 0], 20),
            ("unmatched", [0], None, [None], None),
        ]

    def test_operations_and_groups_are_apart(self) -> None:
        rows = [
            *of({0: [(0, 10)], 1: [(0, 10)]}, group="1", group_ranks="[0, 1]"),
            *of({0: [(20, 30)], 1: [(20, 30)]}, op="all_gather", group="1", group_ranks="[0, 1]"),
            *of({2: [(0, 10)], 3: [(5, 10)]}, group="1", group_ranks="[2, 3]"),
        ]
        assert [row[1] for row in matches(*rows)] == [[0, 1], [2, 3], [0, 1]]

    def test_sends_and_receives_are_left_to_their_pairs(self) -> None:
        assert [row[0] for row in matches(*of({0: [(0, 10)], 1: [(0, 10)]}, op="send_recv"))] == ["unmatched"] * 2

    def test_a_kernel_called_send_recv_may_be_an_all_to_all(self) -> None:
        rows = of({0: [(0, 10)], 1: [(4, 10)]}, op="send_recv", op_source="name")
        assert matches(*rows) == [("order", [0, 1], 1, [4, 0], 6)]

    def test_streams_stand_for_groups_that_were_not_recorded(self) -> None:
        """The second stream of both ranks is one communicator, whatever its number."""
        rows = [
            *of({0: [(0, 10)], 1: [(0, 10)]}, lane=20),
            *of({0: [(2, 9)]}, lane=24),
            *of({1: [(3, 9)]}, lane=33),
        ]
        assert [row[1:4] for row in matches(*rows)] == [([0, 1], None, [0, 0]), ([0, 1], 1, [1, 0])]

    def test_a_sequence_number_that_never_counts_is_none(self) -> None:
        rows = of({0: [(0, 10), (20, 30), (40, 50), (60, 70), (80, 90)], 1: [(40, 50), (60, 70), (80, 90)]}, seq=0)
        assert [row[0] for row in matches(*rows)] == ["time"] * 3 + ["unmatched"] * 2


class TestTime:
    def test_ranks_that_were_never_in_it_together_are_doubtful(self) -> None:
        assert matches(*of({0: [(0, 10)], 1: [(50, 60)]}, step=0)) == [("doubtful", [0, 1], None, [None, None], None)]

    def test_a_rooted_operation_may_be_over_for_one_before_another_comes(self) -> None:
        rows = of({0: [(0, 10)], 1: [(50, 60)]}, step=0, op="broadcast")
        assert matches(*rows) == [("order", [0, 1], 1, [10, 0], 0)]

    def test_nobody_is_last_within_the_error_of_the_clocks(self) -> None:
        rows = [*of({0: [(0, 50)], 1: [(30, 50)]}, step=0), rank(0), rank(1, clock_error_ns=30)]
        assert matches(*rows)[0][2] is None
        rows = [*of({0: [(0, 50)], 1: [(31, 51)]}, step=0), rank(0), rank(1, clock_error_ns=30)]
        assert matches(*rows)[0][2] == 1

    def test_without_steps_and_with_other_counts_ranks_match_where_they_meet(self) -> None:
        rows = of({0: [(0, 20), (30, 50), (60, 80)], 1: [(35, 50), (60, 80)]})
        assert [row[:4] for row in matches(*rows)] == [
            ("time", [0, 1], 1, [5, 0]),
            ("time", [0, 1], None, [0, 0]),
            ("unmatched", [0], None, [None]),
        ]


class TestSizes:
    @pytest.mark.parametrize(
        ("op", "sent", "got", "size"),
        [
            ("all_reduce", 8, 8, 8),
            ("all_gather", 8, 32, 32),
            ("reduce_scatter", 32, 8, 32),
            ("all_reduce", None, None, None),
        ],
    )
    def test_the_whole_buffer_counts(self, op: str, sent: int | None, got: int | None, size: int | None) -> None:
        table = matched(run(*of({0: [(0, 9)], 1: [(0, 9)]}, op=op, in_bytes=sent, out_bytes=got))).collect()
        assert table["size_bytes"].to_list() == [size, size]


@st.composite
def jobs(draw: st.DrawFn) -> list[Row]:
    """Ranks that meet in synchronising collectives one after another, with sequence numbers and holes in the recording."""
    ranks, rows, now = draw(st.integers(2, 5)), [], [0] * 5
    for seq in range(draw(st.integers(0, 8))):
        arrivals = [now[r] + draw(st.integers(0, 50)) for r in range(ranks)]
        last = max(arrivals)
        for r in range(ranks):
            now[r] = last + draw(st.integers(1, 9))
            if draw(st.integers(0, 5)):
                op = SYNCHRONISING[seq % 3]
                rows.append(collective(op, arrivals[r], now[r], rank=r, group="g", seq=seq))
    return draw(st.permutations(rows))


@given(jobs())
@settings(max_examples=100, deadline=None)
def test_equals_a_slow_count(rows: list[Row]) -> None:
    by_seq = defaultdict(list)
    for row in rows:
        by_seq[row["seq"]].append((row["start_ns"], row["start_ns"] + row["dur_ns"], row["rank"]))
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    for seq, members in by_seq.items():
        if len(members) > 1:
            last = max(start for start, _, _ in members)
            transfer = min(end for _, end, _ in members) - last
            expected |= {(seq, r): (min(last, end) - start, transfer) for start, end, r in members}
    table = matched(run(*rows)).collect().filter(pl.col("match_id").is_not_null())
    found = {
        (seq, r): (wait, transfer)
        for seq, r, wait, transfer in table.select("seq", "rank", "wait_ns", "transfer_ns").rows()
    }
    assert found == expected


def test_eight_ranks_of_a_real_run_to_the_nanosecond(corpus: Path) -> None:
    """Waits, transfers and last ranks of the corpus, which an independent count gave."""
    name = "kineto/dlrm_8rank"
    told = json.loads((corpus / "expected.json").read_text())["matched_collectives"][name]
    table = matched(tracekit.open(corpus / name, cache=False)).collect()
    by_match = table.sort("match_id", "rank").group_by("match_id", maintain_order=True)
    rows = by_match.agg(pl.col("last_rank", "transfer_ns").first(), "wait_ns").rows()
    assert [row[1:] for row in rows] == [(row["last_rank"], row["transfer_ns"], row["wait_ns"]) for row in told["rows"]]
    assert (
        table.group_by("rank").agg(pl.col("wait_ns").sum()).sort("rank")["wait_ns"].to_list() == told["wait_ns_by_rank"]
    )
