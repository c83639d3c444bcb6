"""What a sidecar adds to the recording that it stands beside: identity, clock, and what collectives are."""

from __future__ import annotations

import msgspec
import polars as pl

from tracekit.model.records import Collective, Sidecar
from tracekit.model.tables import COLLECTIVES
from tracekit.readers.recording import Info

_EARLY_NS = 1_000_000
"""How much before its creation a range may seem to start: the profiler's clock is calibrated to the system's, not equal."""
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


def describe(collectives: pl.LazyFrame, sidecar: Sidecar) -> pl.LazyFrame:
    """The ``collectives`` of one recording with group, sequence and sizes from the *sidecar*, where the trace has none.

    Flight recorder and trace list the same operations in the same order, and both end where the recording ends: the last
    range of each name belongs to the last entry. Where an entry would have been created after its range began they do not
    belong together, and nothing of that name is filled in. *collectives* must still be in absolute time.
    """
    frame = collectives.collect()
    if not sidecar.collectives or frame["seq"].is_not_null().any():
        return frame.lazy()
    groups = {group.name: group for group in sidecar.groups}
    last_ns = frame["start_ns"].max()
    entries: dict[str, list[Collective]] = {}
    for entry in sidecar.collectives:
        if isinstance(last_ns, int) and entry.created_ns <= last_ns + _EARLY_NS:
            entries.setdefault(entry.op, []).append(entry)
    ordered = frame.with_row_index("row").sort("start_ns")
    found: list[dict[str, object]] = []
    for (name,), part in ordered.group_by("name", maintain_order=True):
        mine = entries.get(str(name), [])[-part.height :]
        rows, starts = part["row"].to_list()[-len(mine) :], part["start_ns"].to_list()[-len(mine) :]
        if mine and all(e.created_ns <= start + _EARLY_NS for e, start in zip(mine, starts, strict=True)):
            for row, entry in zip(rows, mine, strict=True):
                group = groups.get(entry.group)
                found.append(
                    {
                        "row": row,
                        "group": entry.group,
                        "group_desc": group.description if group else None,
                        "group_ranks": str(list(group.ranks)) if group else None,
                        "group_size": len(group.ranks) if group else None,
                        "seq": entry.seq,
                        "dtype": entry.dtype,
                        "in_bytes": entry.in_bytes,
                        "out_bytes": entry.out_bytes,
                    }
                )
    schema = {"row": pl.get_index_type()} | {name: COLLECTIVES.schema[name] for name in _DESCRIBED}
    known = pl.DataFrame(found, schema=schema)
    filled = frame.with_row_index("row").update(known, on="row", how="left")
    return filled.drop("row").lazy()


def completed(steps: pl.LazyFrame, sidecar: Sidecar) -> pl.LazyFrame:
    """The ``steps`` of one recording; those beyond the completed ones that the *sidecar* counts are not complete."""
    if sidecar.complete:
        return steps
    return steps.with_columns(complete=pl.col("complete") & (pl.col("start_ns").rank("ordinal") <= sidecar.steps))
