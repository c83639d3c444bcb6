"""What the host was doing: which operator issued something, which of nested ranges was the innermost at a moment."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.model.table import TIMELINE

LAUNCH_NS = 20_000
"""From the start of a launch call to the start of its kernel on an idle device: 7 to 13 µs on recorded NVIDIA GPUs, 18 µs on AMD."""

THREAD = (*TIMELINE, "thread")


def innermost(ranges: pl.LazyFrame, by: Sequence[str], labels: Sequence[str]) -> pl.LazyFrame:
    """The innermost of nested *ranges* at each moment.

    *ranges*: [*by, start_ns, end_ns, *labels], half-open, nested as calls on one thread are; labels are never null.
    Returns the same columns: disjoint ranges sorted by start, none where no range is open. A range that laps over the end of
    the one around it is taken to end with it; of two with one extent the later row is the inner one.

    One pass over the bounds in time order: after each bound, the innermost open range is the latest one that was opened at
    the depth which holds after the bound.
    """
    ranges = ranges.filter(pl.col("start_ns") < pl.col("end_ns")).select(*by, "start_ns", "end_ns", *labels)
    opened = ranges.sort("end_ns", descending=True, maintain_order=True).drop("end_ns")
    closed = ranges.select(*by, start_ns="end_ns")
    changes = [closed.with_columns(change=pl.lit(-1, pl.Int64)), opened.with_columns(change=pl.lit(1, pl.Int64))]
    return (
        pl.concat(changes, how="diagonal")
        .sort("start_ns", maintain_order=True)  # of one moment: closings first, then the longest range outermost
        .with_columns(depth=pl.col("change").cum_sum().over(by), end_ns=pl.col("start_ns").shift(-1).over(by))
        .with_columns(pl.col(labels).forward_fill().over(*by, "depth"))
        .filter(pl.col("depth") > 0, pl.col("start_ns") < pl.col("end_ns"))
        .select(*by, "start_ns", "end_ns", *labels)
    )


def at_moment(moments: pl.LazyFrame, ranges: pl.LazyFrame, by: Sequence[str], labels: Sequence[str]) -> pl.LazyFrame:
    """*moments* [*by, at_ns, ...], sorted by ``at_ns``, with the *labels* of the range that holds each moment, else null.

    *ranges* [*by, start_ns, end_ns, *labels] are disjoint and sorted by ``start_ns`` within *by*.
    """
    found = moments.join_asof(
        ranges.select(*by, *labels, _from="start_ns", _until="end_ns"),
        left_on="at_ns",
        right_on="_from",
        by=list(by),
        check_sortedness=False,
    )
    inside = pl.col("at_ns") < pl.col("_until")
    return found.with_columns(pl.when(inside).then(pl.col(name)).alias(name) for name in labels).drop("_from", "_until")


_OPERATOR = ("operator", "operator_start_ns", "operator_end_ns")


def join_once(rows: pl.LazyFrame, found: pl.LazyFrame, on: Sequence[str]) -> pl.DataFrame:
    """*rows* in their order, each with its first match in *found*, or with nulls. Computes at once.

    Doubled keys in *found* are rare, and looking for them costs as much as the join: it is done only where rows grew.
    """
    numbered = rows.with_row_index("_row").collect()
    joined = numbered.lazy().join(found, on=on, how="left", maintain_order="left").collect()
    if joined.height > numbered.height:
        joined = joined.unique("_row", keep="first", maintain_order=True)
    return joined.drop("_row")


def with_operator(issued: pl.LazyFrame, events: pl.LazyFrame) -> pl.LazyFrame:
    """*issued* [*TIMELINE, thread, at_ns, external_id, ...] with the innermost operator that issued each row, in their order.

    Adds ``operator``, ``operator_start_ns`` and ``operator_end_ns``, null where there is none. Operators are found by
    ``external_id``; where a dialect's ids lead nowhere (until 2022 they repeat the correlation), by the moment on the thread.
    Rows are never doubled, even by a trace that has two operators with one id. Computes at once: whether any row needs the
    second, slower way is known only after the first.
    """
    calls = events.filter(pl.col("kind") == "cpu_op").select(
        *TIMELINE,
        "external_id",
        thread="lane",
        operator="name",
        operator_start_ns="start_ns",
        operator_end_ns=pl.col("start_ns") + pl.col("dur_ns"),
    )
    by_id = join_once(issued, calls.drop("thread"), [*TIMELINE, "external_id"])
    unknown = by_id["operator"].is_null() & by_id["thread"].is_not_null()
    if not unknown.any():
        return by_id.lazy()
    by_id = by_id.with_row_index("_row")
    rest = by_id.filter(unknown).drop(_OPERATOR).sort("at_ns")
    of_threads = calls.drop("external_id").filter(pl.col("thread").is_in(rest["thread"].unique().implode()))
    both = pl.concat([by_id.filter(~unknown).lazy(), _by_moment(rest.lazy(), of_threads)])
    return both.sort("_row").drop("_row")


def _by_moment(issued: pl.LazyFrame, calls: pl.LazyFrame) -> pl.LazyFrame:
    """*issued*, sorted by ``at_ns``, with the innermost of *calls* at each row's moment on its thread."""
    start = pl.col("operator_start_ns")
    around = (  # only calls that issued anything: the next row from their start on lies within them
        calls.sort(start)
        .join_asof(
            issued.select(*THREAD, "at_ns"),
            left_on=start, right_on="at_ns", by=list(THREAD), strategy="forward", check_sortedness=False,
        )
        .filter(pl.col("at_ns") < pl.col("operator_end_ns"))
        .with_columns(start_ns=start, end_ns="operator_end_ns")
        .collect()
    )  # fmt: skip
    return at_moment(issued, innermost(around.lazy(), THREAD, _OPERATOR), THREAD, _OPERATOR)


def named(rows: pl.LazyFrame, pattern: pl.Expr) -> pl.LazyFrame:
    """Those of *rows* whose ``name`` satisfies *pattern*, which is asked of the distinct names only, as strings."""
    names = rows.select(pl.col("name").unique())
    wanted = names.select(key="name", name=pl.col("name").cast(pl.String)).filter(pattern)
    return rows.join(wanted.select(name="key"), on="name", how="semi")
