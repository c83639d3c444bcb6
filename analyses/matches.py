"""Which collective was waited for, which was slow, and what did the network really do?

**Question.** For each collective: who took part, who came last, how long the others waited, how fast the transfer was.

**Method.** Operations are matched across ranks by group and sequence number, else by their place in the step, else by time
(``matched``). ``last = max start``; a rank waits from its start to *last*; the transfer lasts from *last* to the first end.
Bandwidth is bytes over transfer, bus bandwidth that times the factor of nccl-tests (``2 (n - 1) / n`` for an all-reduce).

**When it misleads.** Of a group of which only some ranks were recorded the true last one may be missing: waiting is then a lower
and transfer an upper figure. Transfers of a few microseconds are latency, and their bandwidth is no property of the network.
"""

from __future__ import annotations

import polars as pl

from tracekit.engine.matching import QUALITIES
from tracekit.model.analysis import Analysis
from tracekit.model.layout import DIMENSIONS
from tracekit.model.run import RunTables
from tracekit.model.table import Column, Table

TABLE = Table(
    name="matches",
    doc="One row for each matched collective: who came last, waiting by rank, transfer and bandwidth.",
    columns=(
        Column(name="match_id", dtype=pl.Int64, doc="Number of the collective, by time."),
        Column(name="op", dtype=pl.String, doc="Operation."),
        Column(
            name="dimension", dtype=pl.Enum(DIMENSIONS), doc="Parallel dimension of its group; see ``groups`` for why."
        ),
        Column(name="group", dtype=pl.String, nullable=True, doc="Process group name as recorded."),
        Column(name="group_desc", dtype=pl.String, nullable=True, doc="Its description."),
        Column(name="group_ranks", dtype=pl.List(pl.Int32), doc="Ranks that were found in it."),
        Column(name="group_size", dtype=pl.Int32, doc="Ranks of the group, recorded or not."),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="Step of its first rank."),
        Column(name="bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Message, as nccl-tests count it."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="When the first rank came, from the run's origin."),
        Column(name="last_ns", dtype=pl.Int64, unit="ns", doc="When the last one came."),
        Column(
            name="last_rank",
            dtype=pl.Int32,
            nullable=True,
            doc="The last one; null where they came closer together than the clocks can tell.",
        ),
        Column(
            name="wait_ns",
            dtype=pl.List(pl.Int64),
            unit="ns",
            doc="Waiting of each of ``group_ranks``; nulls where the match is doubtful.",
        ),
        Column(
            name="transfer_ns",
            dtype=pl.Int64,
            unit="ns",
            nullable=True,
            doc="From the last arrival to the first end; null where the match is doubtful.",
        ),
        Column(
            name="algbw_bytes_per_s", dtype=pl.Float64, unit="bytes_per_s", nullable=True, doc="Bytes over transfer."
        ),
        Column(
            name="busbw_bytes_per_s",
            dtype=pl.Float64,
            unit="bytes_per_s",
            nullable=True,
            doc="The same times the factor of the operation: what each link carries.",
        ),
        Column(name="quality", dtype=pl.Enum(QUALITIES), doc="How it was matched: see ``matched``."),
    ),
)

_NS_PER_S = 1e9


def compute(run: RunTables) -> pl.LazyFrame:
    one = pl.col(
        "op",
        "communicator",
        "group",
        "group_desc",
        "size_bytes",
        "last_ns",
        "last_rank",
        "transfer_ns",
        "match_quality",
    ).first()
    found = (
        run["matched"]
        .filter(pl.col("match_id").is_not_null())
        .group_by("match_id", maintain_order=True)
        .agg(
            one,
            pl.col("step").first(),
            pl.col("start_ns").min(),
            pl.col("wait_ns"),
            group_ranks="rank",
            group_size=pl.max_horizontal(pl.col("group_size").max(), pl.len()),
        )
    )
    dimensions = run["groups"].select("communicator", "op", "dimension")
    bandwidth = pl.when(pl.col("transfer_ns") > 0).then(pl.col("size_bytes") * _NS_PER_S / pl.col("transfer_ns"))
    return TABLE.conform(
        found.join(dimensions, on=["communicator", "op"], how="left", maintain_order="left").with_columns(
            bytes="size_bytes",
            quality="match_quality",
            algbw_bytes_per_s=bandwidth,
            busbw_bytes_per_s=bandwidth * bus_factor(pl.col("op"), pl.col("group_size")),
        )
    )


def bus_factor(op: pl.Expr, ranks: pl.Expr) -> pl.Expr:
    """What a link carries for each byte of the message: nccl-tests' factor of *op* among so many *ranks*."""
    share = (ranks - 1) / ranks
    sharing = op.is_in(["all_gather", "reduce_scatter", "all_to_all"])
    return pl.when(op == "all_reduce").then(2 * share).when(sharing).then(share).otherwise(1.0)


ANALYSIS = Analysis(table=TABLE, needs=("matched", "groups"), compute=compute)
