"""Depth of the streams' queues."""

from __future__ import annotations

import polars as pl

from tests.builders import Row, compute, kernel, launch, run, with_tables
from tracekit.analyses.queues import ANALYSIS, depths


def launched(number: int, at: int, start: int, *, lane: int = 7) -> list[Row]:
    return [kernel("k", start, start + 5, correlation=number, lane=lane), launch(number, at, at + 1)]


def test_depth_grows_at_a_launch_and_shrinks_at_a_start() -> None:
    rows = [*launched(1, 0, 10), *launched(2, 2, 20), *launched(3, 4, 30), *launched(4, 25, 35)]

    table = depths(with_tables(run(*rows))["launches"]).collect()

    assert table.select("at_ns", "depth").rows() == [
        (0, 1),
        (2, 2),
        (4, 3),
        (10, 2),
        (20, 1),
        (25, 2),
        (30, 1),
        (35, 0),
    ]


def test_what_starts_when_it_is_launched_has_been_in_the_queue() -> None:
    table = depths(with_tables(run(*launched(1, 0, 0)))["launches"]).collect()

    assert table["depth"].to_list() == [1, 0]


def test_each_stream_has_its_own_queue() -> None:
    rows = [*launched(1, 0, 10), *launched(2, 2, 20), *launched(3, 5, 8, lane=9), kernel("orphan", 50, 60)]

    table = compute(ANALYSIS, *rows)

    columns = ("lane", "launched", "mean_depth", "mean_of_changes", "max_depth", "empty_ratio")
    assert table.select(columns).rows() == [
        (7, 2, (1 * 2 + 2 * 8 + 1 * 10) / 20, (1 + 2 + 1 + 0) / 4, 2, 0.0),
        (9, 1, 1.0, 0.5, 1, 0.0),
    ]


def test_time_between_a_start_and_the_next_launch_is_empty() -> None:
    table = compute(ANALYSIS, *launched(1, 0, 10), *launched(2, 30, 40))

    assert table.select("mean_depth", "empty_ratio").rows() == [(0.5, 0.5)]


def test_stream_on_which_no_time_passes_has_no_mean() -> None:
    table = compute(ANALYSIS, *launched(1, 0, 0))

    assert table.select("mean_depth", "empty_ratio", "max_depth").rows() == [(None, None, 1)]


def test_unlinked_events_alone_have_no_queue() -> None:
    assert compute(ANALYSIS, kernel("k", 0, 10)).select(pl.len()).item() == 0
