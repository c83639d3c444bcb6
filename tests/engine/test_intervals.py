"""Interval algebra: cases to read, and a slow set-of-ticks oracle for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tracekit.engine.intervals import concurrency, gaps, intersect, subtract, sweep, total, union, within

Span = tuple[str, int, int]
BY = ["group"]
SCHEMA = {"group": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}

spans = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-20, 20), st.integers(0, 12)).map(lambda s: (s[0], s[1], s[1] + s[2]))
)


def frame(*rows: Span) -> pl.LazyFrame:
    return pl.LazyFrame(rows, schema=SCHEMA, orient="row")


def ticks(rows: list[Span]) -> dict[str, set[int]]:
    """The oracle: every nanosecond of every span, as a set."""
    found: dict[str, set[int]] = defaultdict(set)
    for group, start, end in rows:
        found[group] |= set(range(start, end))
    return found


def merged(sets: dict[str, set[int]]) -> list[Span]:
    """Ticks as the fewest spans that hold them."""
    out: list[Span] = []
    for group in sorted(sets):
        for tick in sorted(sets[group]):
            if out and out[-1][0] == group and out[-1][2] == tick:
                out[-1] = (group, out[-1][1], tick + 1)
            else:
                out.append((group, tick, tick + 1))
    return out


def combined(a: list[Span], b: list[Span], how: Callable[[set[int], set[int]], set[int]]) -> list[Span]:
    left, right = ticks(a), ticks(b)
    return merged({group: how(left[group], right[group]) for group in "ab"})


def test_two_kernels_under_one_collective_overlap_by_their_union() -> None:
    """Two kernels of 60 ns under one collective of 60 ns: 60 ns of overlap, not 120."""
    kernels = frame(("r", 0, 60), ("r", 0, 60))
    collective = frame(("r", 0, 60))
    assert total(intersect(collective, kernels, BY), BY).collect().rows() == [("r", 60)]
    flagged = pl.concat([kernels.with_columns(what=pl.lit("compute")), collective.with_columns(what=pl.lit("comm"))])
    assert sweep(flagged, "what", ("compute", "comm"), BY).collect().rows() == [("r", 0, 60, True, True)]


def test_touching_spans_are_one_and_spans_without_length_are_none() -> None:
    assert union(frame(("r", 0, 5), ("r", 5, 9), ("r", 20, 20), ("s", 1, 2)), BY).collect().rows() == [
        ("r", 0, 9),
        ("s", 1, 2),
    ]


def test_a_long_span_hides_the_short_ones_after_it() -> None:
    assert union(frame(("r", 0, 100), ("r", 10, 20), ("r", 50, 60), ("r", 100, 110)), BY).collect().rows() == [
        ("r", 0, 110)
    ]


def test_gaps_inside_a_window() -> None:
    assert gaps(frame(("r", 2, 4), ("r", 6, 20)), frame(("r", 0, 10)), BY).collect().rows() == [
        ("r", 0, 2),
        ("r", 4, 6),
    ]


def test_a_sweep_has_no_holes() -> None:
    flagged = pl.LazyFrame({"group": ["r", "r"], "start_ns": [0, 7], "end_ns": [5, 9], "what": ["x", "y"]})
    assert sweep(flagged, "what", ("x", "y"), BY).collect().rows() == [
        ("r", 0, 5, True, False),
        ("r", 5, 7, False, False),
        ("r", 7, 9, False, True),
    ]


def test_several_columns_and_categories_group() -> None:
    rows = pl.LazyFrame({"rank": [0, 0, 1], "name": ["a", "b", "a"], "start_ns": [0, 0, 0], "end_ns": [1, 2, 3]})
    by = ["rank", "name"]
    found = total(rows.with_columns(pl.col("name").cast(pl.Categorical())), by).collect()
    assert sorted(found.with_columns(pl.col("name").cast(pl.String)).rows()) == [(0, "a", 1), (0, "b", 2), (1, "a", 3)]


@given(spans)
def test_union_against_the_oracle(rows: list[Span]) -> None:
    assert union(frame(*rows), BY).collect().rows() == merged(ticks(rows))


@given(spans)
def test_total_against_the_oracle(rows: list[Span]) -> None:
    expected = [(group, len(found)) for group, found in sorted(ticks(rows).items()) if found]
    assert total(frame(*rows), BY).collect().rows() == expected


@given(spans, spans)
def test_intersect_and_subtract_against_the_oracle(a: list[Span], b: list[Span]) -> None:
    assert intersect(frame(*a), frame(*b), BY).collect().rows() == combined(a, b, set.intersection)
    assert subtract(frame(*a), frame(*b), BY).collect().rows() == combined(a, b, set.difference)
    assert gaps(frame(*a), frame(*b), BY).collect().rows() == combined(b, a, set.difference)


@given(spans)
def test_concurrency_against_the_oracle(rows: list[Span]) -> None:
    depth: dict[tuple[str, int], int] = defaultdict(int)
    for group, start, end in rows:
        for tick in range(start, end):
            depth[group, tick] += 1
    found = {
        (group, tick): d
        for group, start, end, d in concurrency(frame(*rows), BY).collect().iter_rows()
        for tick in range(start, end)
    }
    assert found == dict(depth)


@given(spans, spans)
def test_a_sweep_against_the_oracle(a: list[Span], b: list[Span]) -> None:
    flagged = pl.concat([frame(*a).with_columns(what=pl.lit("a")), frame(*b).with_columns(what=pl.lit("b"))])
    found = sweep(flagged, "what", ("a", "b"), BY).collect()
    for name, rows in (("a", a), ("b", b)):
        assert merged(ticks(found.filter(name).select("group", "start_ns", "end_ns").rows())) == merged(ticks(rows))
    covered = [(group, min(t), max(t) + 1) for group, t in sorted(ticks([*a, *b]).items()) if t]
    assert merged(ticks(found.select("group", "start_ns", "end_ns").rows())) == covered


def test_time_within_spans() -> None:
    flagged = pl.LazyFrame({"group": ["r", "r"], "start_ns": [10, 30], "end_ns": [20, 40], "what": ["x", "x"]})
    segments = sweep(flagged, "what", ("x",), BY)
    spans = frame(("r", 0, 15), ("r", 15, 35), ("r", 0, 100), ("s", 0, 100), ("r", 22, 28))
    assert within(spans, segments, {"x_ns": pl.col("x")}, BY).collect()["x_ns"].to_list() == [5, 10, 20, 0, 0]


@given(spans, spans)
def test_within_against_the_oracle(rows: list[Span], around: list[Span]) -> None:
    segments = sweep(frame(*rows).with_columns(what=pl.lit("x")), "what", ("x",), BY)
    covered = ticks(rows)
    expected = [len(covered[group] & set(range(start, end))) for group, start, end in around]
    assert within(frame(*around), segments, {"x_ns": pl.col("x")}, BY).collect()["x_ns"].to_list() == expected
