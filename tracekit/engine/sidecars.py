"""What a sidecar adds to the recording that it stands beside: identity, clock, and what collectives are."""

from __future__ import annotations

import msgspec
import polars as pl

from tracekit.model.records import Sidecar
from tracekit.model.tables import COLLECTIVES
from tracekit.readers import names
from tracekit.readers.recording import Info

_EARLY_NS = 1_000_000
"""How much before its creation a range may seem to start: the profiler's clock is calibrated to the system's, not equal."""
_CLOCKS_NS = 20_000
"""How much the two clocks may be apart."""
_DESCRIBED = ("group", "group_desc", "group_ranks", "group_size", "seq", "dtype", "in_bytes", "out_bytes")


def informed(info: Info, sidecar: Sidecar) -> tuple[Info, str]:
    """*info* with what *sidecar* knows better, or as it was with the reason if the two are of different ranks."""
    if info.rank is not None and info.rank != sidecar.rank:
        return info, f"says rank {info.rank} and its sidecar says {sidecar.rank}: the sidecar was left out"
    changes = {
        "rank": sidecar.rank,
        "rank_source": "sidecar",
        "world_size": info.world_size or sidecar.world_size,
        "backend": info.backend or sidecar.backend or None,
        "device_name": info.device_name or (sidecar.device.name if sidecar.device.kind != "cpu" else None) or None,
    }
    return msgspec.structs.replace(info, **changes), ""


def describe(collectives: pl.LazyFrame, sidecar: Sidecar, operators: pl.LazyFrame) -> pl.LazyFrame:
    """The ``collectives`` of one recording with group, sequence and sizes from the *sidecar*, where the trace has none.

    Flight recorder and trace list the same operations in the same order, and both end where the recording ends: the last
    range of each name belongs to the last entry. Where an entry would have been created after its range began they do not
    belong together, and nothing of that name is filled in. *operators* are the recording's ``events``: the ``c10d::`` operator in which
    an entry was created says what the program asked for, which gloo may do by other means (a reduce-scatter by an all-reduce).
    *collectives* and *operators* must still be in absolute time.
    """
    frame = collectives.collect()
    if not sidecar.collectives or frame["seq"].is_not_null().any():
        return frame.lazy()
    last_ns = frame["start_ns"].max()
    entries = _entries(sidecar, operators).filter(
        pl.col("created_ns") <= (last_ns if isinstance(last_ns, int) else 0) + _EARLY_NS
    )
    ordered = frame.with_row_index("row").sort("start_ns").with_columns(pl.col("name").cast(pl.String))
    from_last = (pl.len() - pl.int_range(pl.len())).over("name").alias("from_last")
    both = ordered.select("row", "name", "start_ns", from_last).join(
        entries.select(pl.all(), from_last), on=["name", "from_last"]
    )
    plausible = (pl.col("created_ns") <= pl.col("start_ns") + _EARLY_NS).all().over("name")
    known = both.filter(plausible).select("row", "op", *_DESCRIBED)
    return frame.with_row_index("row").update(known, on="row", how="left").drop("row").lazy()


def _entries(sidecar: Sidecar, operators: pl.LazyFrame) -> pl.DataFrame:
    """The flight recorder's entries in order, described as ``collectives`` are; *op* is what the operator asked for."""
    groups = {group.name: group for group in sidecar.groups}
    rows = [
        {
            "name": entry.op,
            "created_ns": entry.created_ns,
            "group": entry.group,
            "group_desc": group.description,
            "group_ranks": str(list(group.ranks)),
            "group_size": len(group.ranks),
            "seq": entry.seq,
            "dtype": entry.dtype,
            "in_bytes": entry.in_bytes,
            "out_bytes": entry.out_bytes,
        }
        for entry in sidecar.collectives
        if (group := groups.get(entry.group)) is not None
    ]
    schema = {"name": pl.String, "created_ns": pl.Int64} | {name: COLLECTIVES.schema[name] for name in _DESCRIBED}
    asked = (
        operators.filter(pl.col("kind") == "cpu_op")
        .select(pl.col("start_ns"), pl.col("name").cast(pl.String).alias("operator"))
        .filter(pl.col("operator").str.starts_with("c10d::"))
        .collect()
        .sort("start_ns")
    )
    op_of = {name: names.operation_of(name.replace("_base_", "")) for name in asked["operator"].unique()}
    frame = pl.DataFrame(rows, schema=schema).sort("created_ns")
    found = frame.with_columns(at=pl.col("created_ns") + _CLOCKS_NS).join_asof(asked, left_on="at", right_on="start_ns")
    op = pl.col("operator").replace_strict(op_of, default=None, return_dtype=pl.String)
    ran = pl.col("name").replace_strict(
        {n: names.operation_of(n) for n in frame["name"].unique()}, default=None, return_dtype=pl.String
    )
    other = op.is_not_null() & (op != "unknown") & (op != ran)
    return found.select(
        *(pl.col(name) for name in schema if name != "out_bytes"),
        pl.when(~other).then(pl.col("out_bytes")).alias("out_bytes"),  # that of what was run instead
        pl.when(other).then(op).otherwise(ran).alias("op"),
    )


def completed(steps: pl.LazyFrame, sidecar: Sidecar) -> pl.LazyFrame:
    """The ``steps`` of one recording; those beyond the completed ones that the *sidecar* counts are not complete."""
    if sidecar.complete:
        return steps
    return steps.with_columns(complete=pl.col("complete") & (pl.col("start_ns").rank("ordinal") <= sidecar.steps))
