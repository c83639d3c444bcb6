"""What the host was doing at a moment."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.builders import launch, op, run
from tracekit.engine.host import at_moment, innermost, named, with_operator

Range = tuple[int, int, int, str]


def ranges(*rows: Range) -> pl.LazyFrame:
    return pl.LazyFrame(rows, schema=["lane", "start_ns", "end_ns", "name"], orient="row").cast({"lane": pl.Int64})


def test_inner_range_interrupts_the_outer_one() -> None:
    table = innermost(ranges((1, 0, 100, "outer"), (1, 20, 50, "inner"), (1, 30, 40, "leaf")), ["lane"], ["name"])

    expected = ranges(
        (1, 0, 20, "outer"), (1, 20, 30, "inner"), (1, 30, 40, "leaf"), (1, 40, 50, "inner"), (1, 50, 100, "outer")
    )
    assert_frame_equal(table.collect(), expected.collect())


def test_threads_are_kept_apart_and_gaps_stay_empty() -> None:
    table = innermost(ranges((2, 5, 8, "b"), (1, 0, 10, "a"), (1, 20, 30, "c"), (2, 8, 9, "d")), ["lane"], ["name"])

    expected = ranges((1, 0, 10, "a"), (2, 5, 8, "b"), (2, 8, 9, "d"), (1, 20, 30, "c"))
    assert_frame_equal(table.collect(), expected.collect())


def test_range_that_starts_with_its_parent_is_inside_it() -> None:
    table = innermost(ranges((1, 0, 4, "inner"), (1, 0, 10, "outer")), ["lane"], ["name"])

    assert_frame_equal(table.collect(), ranges((1, 0, 4, "inner"), (1, 4, 10, "outer")).collect())


def test_empty_ranges_do_not_count() -> None:
    assert innermost(ranges((1, 5, 5, "nothing")), ["lane"], ["name"]).collect().is_empty()


@st.composite
def nested(draw: st.DrawFn, start: int = 0, length: int = 24, depth: int = 0) -> list[Range]:
    """Ranges nested as calls are, named by their extent, on a few ticks so that bounds coincide."""
    found: list[Range] = []
    at = start
    while at < start + length and depth < 4:
        at += draw(st.integers(0, 3))
        size = min(draw(st.integers(0, 12)), start + length - at)
        if size <= 0:
            break
        found.append((1, at, at + size, f"{at}-{at + size}"))
        found += draw(nested(start=at, length=size, depth=depth + 1))
        at += size
    return found


@settings(deadline=None)
@given(nested().flatmap(st.permutations))
def test_innermost_is_the_shortest_range_over_each_tick(rows: list[Range]) -> None:
    table = innermost(ranges(*rows), ["lane"], ["name"]).collect()

    ticks = {tick: name for _, start, end, name in table.rows() for tick in range(start, end)}
    longest_first = sorted(rows, key=lambda row: row[1] - row[2])
    assert ticks == {tick: name for _, start, end, name in longest_first for tick in range(start, end)}


def test_moment_finds_the_range_that_holds_it() -> None:
    moments = pl.LazyFrame({"lane": [1, 2, 1, 1], "at_ns": [0, 5, 10, 15]})

    table = at_moment(moments, ranges((1, 0, 10, "a"), (1, 12, 16, "b")), ["lane"], ["name"])

    assert table.collect().rows() == [(1, 0, "a"), (2, 5, None), (1, 10, None), (1, 15, "b")]


def test_operator_is_found_by_id_and_never_doubles_a_row() -> None:
    twice = op("aten::mm", 0, 100, external_id=7)
    events = run(twice, twice, op("aten::add", 0, 100, external_id=7, rank=1), launch(1, 10, 20, external_id=7))[
        "events"
    ]

    table = with_operator(issued((0, 110, 7), (0, 120, None), (1, 110, 7)), events).sort("rank", "at_ns").collect()

    assert table.select("at_ns", "operator", "operator_end_ns").rows() == [
        (110, "aten::mm", 100),
        (120, None, None),
        (110, "aten::add", 100),
    ]


def test_operator_is_found_by_moment_where_ids_lead_nowhere() -> None:
    events = run(
        op("aten::linear", 0, 100, external_id=1),
        op("aten::addmm", 10, 50, external_id=2),
        op("aten::empty", 20, 25, external_id=3),
        op("aten::elsewhere", 0, 200, external_id=4, lane=101),
    )["events"]

    table = with_operator(issued((0, 30, 900), (0, 60, 901), (0, 100, 902)), events).sort("at_ns").collect()

    assert table["operator"].to_list() == ["aten::addmm", "aten::linear", None]


def issued(*rows: tuple[int, int, int | None]) -> pl.LazyFrame:
    """Rows of rank, moment and external id, issued on thread 100."""
    frame = pl.LazyFrame(rows, schema={"rank": pl.Int32, "at_ns": pl.Int64, "external_id": pl.Int64}, orient="row")
    return frame.with_columns(window=pl.lit(0, pl.Int16), thread=pl.lit(100, pl.Int64))


def test_names_are_asked_as_strings() -> None:
    rows = pl.LazyFrame({"name": ["cudaMalloc", "cudaLaunchKernel", "cudaMalloc"], "row": [1, 2, 3]}).cast(
        {"name": pl.Categorical()}
    )

    table = named(rows, pl.col("name").str.contains("^cuda(Malloc|Free)")).collect()

    assert table["row"].to_list() == [1, 3]
