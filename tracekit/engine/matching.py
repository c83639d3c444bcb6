"""Which operations of different ranks are one collective, and how long each rank waited in it for the last one to come.

Two operations belong together when they have the same communicator, operation and number. The number is the sequence number
that the recorder wrote, where there is one. Without it, it is the operation's place in its step, and only in steps in which all ranks
have equally many: a window that begins in the middle of a step costs that step and never shifts the ones after it. What is
left is matched by time: ranks are in a synchronising operation together at some moment, all of them.
"""

from __future__ import annotations

import polars as pl

from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table
from tracekit.model.tables import COLLECTIVES

SYNCHRONISING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "dispatch", "combine")
"""Operations that no rank can leave before every rank has come."""

QUALITIES = ("sequence", "order", "time", "doubtful", "unmatched")
"""How sure a match is: by sequence number; by place in the step; by time alone; matched, but the ranks were never in it together; not."""

_ADDED = (
    Column(name="communicator", dtype=pl.String, doc="Who communicates: the group's name and ranks, else the stream."),
    Column(name="match_id", dtype=pl.Int64, nullable=True, doc="The collective, counted by time; null if unmatched."),
    Column(
        name="match_quality",
        dtype=pl.Enum(QUALITIES),
        doc="``sequence`` number, ``order`` in the step, ``time`` (all were in it at one moment), ``doubtful`` (they were not), ``unmatched``.",
    ),
    Column(name="members", dtype=pl.Int32, doc="Ranks found in the collective."),
    Column(
        name="size_bytes",
        dtype=pl.Int64,
        unit="bytes",
        nullable=True,
        doc="Message as nccl-tests count it: the whole buffer, e.g. the output of an all-gather; null if unknown.",
    ),
    Column(
        name="last_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="When the last rank came, from the run's origin."
    ),
    Column(
        name="last_rank",
        dtype=pl.Int32,
        nullable=True,
        doc="Which one; null where they came closer together than the clocks can tell.",
    ),
    Column(name="runner_up_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="When the last rank but one came."),
    Column(
        name="wait_ns",
        dtype=pl.Int64,
        unit="ns",
        nullable=True,
        doc="How long this rank waited for the last one; null where ``doubtful``.",
    ),
    Column(
        name="transfer_ns",
        dtype=pl.Int64,
        unit="ns",
        nullable=True,
        doc="From the last arrival to the first end, the same on all ranks: what the network took.",
    ),
    Column(
        name="leave_ns",
        dtype=pl.Int64,
        unit="ns",
        nullable=True,
        doc="The rest of this rank's duration, after the first rank had left.",
    ),
)

MATCHED = Table(
    name="matched",
    doc="``collectives`` with the match of each: who came last, waiting and transfer. The three parts add up to ``dur_ns``.",
    columns=(*COLLECTIVES.columns, *_ADDED),
)

_PAIR = 2
KEY = ("communicator", "op", "_window", "_step", "_number")


def numbered(collectives: pl.LazyFrame) -> pl.LazyFrame:
    """*collectives* with ``communicator``, the rest of the key and ``match_quality``; null keys where nothing numbers them.

    The key does not depend on clocks. Rows are sorted by timeline and start.
    """
    here = [*TIMELINE, "communicator", "op"]
    of_step = ["communicator", "op", "window", "step"]
    seq, count = pl.col("seq"), pl.len()
    counting = seq.is_not_null() & (seq.n_unique().over(here) * 2 >= count.over(here))  # some versions write 0 always
    counts = count.over(*here, "step")
    even = (counts.min() == counts.max()).over(of_step)
    all_there = pl.col("rank").n_unique().over(of_step) == pl.col("rank").n_unique().over("communicator")
    quality = (
        pl.when(_is_point_to_point())
        .then(None)
        .when(pl.col("_counting").all().over("communicator"))
        .then(pl.lit("sequence"))
        .when(even & all_there)
        .then(pl.lit("order"))
    )
    by_seq = pl.col("match_quality") == "sequence"
    return (
        collectives.sort(*TIMELINE, "start_ns")
        .with_columns(communicator=_communicator())
        .with_columns(_counting=counting)
        .with_columns(match_quality=quality)
        .drop("_counting")
        .with_columns(
            _window=pl.when(by_seq).then(-1).otherwise("window").cast(pl.Int64),
            _step=pl.when(by_seq).then(seq).otherwise(pl.col("step").fill_null(-1)),
        )
        .with_columns(_number=pl.int_range(count).over(*here, "_step"))
    )


def matched(run: RunTables) -> pl.LazyFrame:
    """Rows of `MATCHED`, one for each of ``collectives``, sorted by match and rank; unmatched ones last."""
    rows = numbered(run["collectives"].filter(pl.col("rank").is_in(run.ranks["rank"].unique().to_list()))).collect()
    known = rows["match_quality"].is_not_null()
    timed = _by_time(rows.filter(~known))
    errors = run.ranks.lazy().select(*TIMELINE, error_ns=pl.col("clock_error_ns").fill_null(0))
    both = pl.concat([rows.filter(known), timed]).lazy().join(errors, on=TIMELINE, how="left")
    return MATCHED.conform(_waits(both.with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"), size_bytes=_size())))


def _communicator() -> pl.Expr:
    """Name and ranks of the group; a group that was not recorded is a stream's, or the backend's."""
    stream = pl.col("lane").rank("dense").over(*TIMELINE)
    unnamed = pl.when(pl.col("device") < 0).then(pl.lit("host")).otherwise(pl.format("stream {}", stream))
    name = pl.col("group").fill_null("")
    told = pl.concat_str(name, pl.col("group_ranks").fill_null(""), separator=" ").str.strip_chars()
    return pl.when(told == "").then(unnamed).otherwise(told)


def _is_point_to_point() -> pl.Expr:
    """Sends and receives have a peer each; a kernel called SendRecv, by its name alone, may be an all-to-all."""
    return (pl.col("op") == "send_recv") & ((pl.col("op_source") == "metadata") | (pl.col("device") < 0))


def _by_time(rows: pl.DataFrame) -> pl.DataFrame:
    """*rows* without a key, keyed by the spell of time in which their ranks meet, where all meet equally often."""
    kind, start, end = ["communicator", "op"], pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    spell = [*kind, "_step"]
    ordered = rows.filter(~_is_point_to_point()).sort("start_ns")
    begins = (start >= end.cum_max().shift(1)).fill_null(True)
    counts = pl.len().over(*spell, "rank")
    all_there = pl.col("rank").n_unique().over(spell) == pl.col("rank").n_unique().over("communicator")
    spelled = (
        ordered.with_columns(_window=pl.lit(-2, pl.Int64), _step=begins.cum_sum().over(kind).cast(pl.Int64))
        .with_columns(_number=pl.int_range(pl.len()).over(*spell, "rank"))
        .with_columns(
            match_quality=pl.when((counts.min() == counts.max()).over(spell) & all_there).then(pl.lit("time"))
        )
    )
    rest = rows.filter(_is_point_to_point())
    return pl.concat([spelled, rest.with_columns(match_quality=pl.lit(None, pl.String))]).select(rows.columns)


def _size() -> pl.Expr:
    """The message of an operation in bytes, as nccl-tests count it."""
    op, sent, got = pl.col("op"), pl.col("in_bytes"), pl.col("out_bytes")
    larger = pl.max_horizontal(sent, got)
    return pl.when(op == "all_gather").then(pl.coalesce(got, larger)).otherwise(larger)


def _waits(rows: pl.LazyFrame) -> pl.LazyFrame:
    """*rows* [..., end_ns, size_bytes, error_ns] as those of `MATCHED`: grouped by their key, measured, and taken apart again."""
    start, end, rank = pl.col("start_ns"), pl.col("end_ns"), pl.col("rank")
    columns = [*COLLECTIVES.schema.names(), "end_ns"]
    lists = [name for name in columns if name != "op"]
    keyed = pl.col("match_quality").is_not_null()
    groups = (
        rows.filter(keyed)
        .sort("rank", maintain_order=True)
        .group_by(KEY)
        .agg(
            *lists,
            members=rank.n_unique(),
            rows=pl.len(),
            quality=pl.col("match_quality").first(),
            size_bytes=pl.col("size_bytes").max(),
            error_ns=pl.col("error_ns").max(),
            first_ns=start.min(),
            last_ns=start.max(),
            last_rank=rank.get(start.arg_max()),
            runner_up_ns=start.top_k(2).min(),
            first_end_ns=end.min(),
        )
    )
    among_all = (pl.col("op") == "send_recv") & (pl.col("members") > _PAIR)  # sends and receives of all with all
    pair = (pl.col("members") > 1) & (pl.col("members") == pl.col("rows"))
    apart = pl.col("op").is_in(SYNCHRONISING) & (pl.col("first_end_ns") + pl.col("error_ns") < pl.col("last_ns"))
    told = pl.col("last_ns") - pl.col("runner_up_ns") > pl.col("error_ns")
    numbers = (
        groups.filter(pair)
        .with_columns(op=pl.when(among_all).then(pl.lit("all_to_all")).otherwise("op"))
        .sort("first_ns", "communicator", "op", "last_ns")
        .with_row_index("match_id")
        .with_columns(
            match_quality=pl.when(apart).then(pl.lit("doubtful")).otherwise("quality"),
            last_rank=pl.when(told & ~apart).then("last_rank"),
            transfer_ns=pl.when(~apart).then((pl.col("first_end_ns") - pl.col("last_ns")).clip(0)),
        )
        .explode(lists)
        .with_columns(
            wait_ns=pl.when(pl.col("transfer_ns").is_not_null()).then(
                (pl.min_horizontal("last_ns", "end_ns") - start).clip(0)
            )
        )
        .with_columns(leave_ns=pl.col("dur_ns") - pl.col("wait_ns") - pl.col("transfer_ns"))
    )
    alone = groups.filter(~pair).explode(lists)
    rest = pl.concat([alone, rows.filter(~keyed)], how="diagonal")
    unmatched = rest.select(
        *MATCHED.schema.names()[: len(COLLECTIVES.columns)], "communicator", "size_bytes",
        match_quality=pl.lit("unmatched"), members=1,
    ).sort("start_ns", "rank")  # fmt: skip
    return pl.concat([numbers.drop("_window", "_step", "_number"), unmatched], how="diagonal_relaxed")
