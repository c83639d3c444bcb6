"""Which parallel dimension a process group serves, and how that is known: its mesh, its description, what it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from tracekit.model.layout import DIMENSIONS
from tracekit.model.records import Sidecar
from tracekit.model.run import RunTables
from tracekit.model.table import Column, Table

DECIDED_BY = ("mesh", "description", "declared", "operations", "nothing")

GROUPS = Table(
    name="groups",
    doc="What each process group does: one row for each of its operations, with the parallel dimension that it serves.",
    columns=(
        Column(name="communicator", dtype=pl.String, doc="As in ``matched``."),
        Column(name="op", dtype=pl.String, doc="Operation."),
        Column(name="group", dtype=pl.String, nullable=True, doc="Process group name as recorded."),
        Column(name="group_desc", dtype=pl.String, nullable=True, doc="Its description."),
        Column(
            name="ranks",
            dtype=pl.List(pl.Int32),
            doc="Its members as recorded; where they were not, the ranks that were seen in it.",
        ),
        Column(name="group_size", dtype=pl.Int32, doc="Number of members."),
        Column(
            name="dimension",
            dtype=pl.Enum(DIMENSIONS),
            doc="Parallel dimension: " + ", ".join(DIMENSIONS) + ".",
        ),
        Column(
            name="decided_by",
            dtype=pl.Enum(DECIDED_BY),
            doc="``mesh`` and ``declared`` (the recorder's sidecar), ``description`` of the group, ``operations``, ``nothing``.",
        ),
        Column(name="reason", dtype=pl.String, doc="The same in words."),
        Column(name="count", dtype=pl.Int64, doc="Operations of one member, the mean."),
        Column(name="median_bytes", dtype=pl.Float64, unit="bytes", nullable=True, doc="Median message."),
    ),
)

_NAMES: tuple[tuple[str, str], ...] = (
    (r"expert_?data|edp", "dp"),
    (r"expert|(^|_)(ep|moe)($|_)", "ep"),
    (r"tensor_?model|tensor_?parallel|(^|_)e?tp($|_)", "tp"),
    (r"pipeline|embedding|(^|_)pp($|_)", "pp"),
    (r"fsdp|zero|dp_?shard|shard", "dp_shard"),
    (r"data_?parallel|replicate|(^|_)(dp|ddp|batch|data)($|_)", "dp"),
    (r"context|ring|ulysses|(^|_)(cp|sp)($|_)", "cp"),
)
"""Words in names of mesh dimensions and groups, as torchtitan, Megatron-LM and DeepSpeed write them; the first that fits.

A flattened dimension counts as the one that moves the bytes: gradients of ``dp_shard_cp`` are the shards'.
"""
_SCALAR_BYTES = 4096
_PER_LAYER = 8
"""Equal messages from which on they are activations of layers, and not gradients or parameters."""
_EQUAL_SIZES = 2


@dataclass(frozen=True, slots=True)
class Decision:
    """A dimension, what decided it, and why, in words."""

    dimension: str
    decided_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Use:
    """What is known of one operation of a group."""

    op: str
    description: str
    ranks: tuple[int, ...]
    ops: frozenset[str]
    """All operations of the group."""
    count: float
    """Operations of a member."""
    sizes: int
    """Different sizes of messages."""
    median_bytes: float | None
    largest_bytes: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the whole run says of its strategy."""

    sidecars: Mapping[tuple[int, int], Sidecar]
    pipeline: bool = False
    """Whether actions of a pipeline schedule were recorded."""
    fsdp: bool = False
    """Whether FSDP's ranges were."""
    ddp: bool = False
    tables: bool = False
    """Whether embedding tables were looked up, as in recommendation models."""


def dimension_of_name(name: str) -> str:
    """The dimension that *name* of a mesh dimension or group tells, e.g. ``mesh_dp_shard``; empty if none.

    >>> dimension_of_name("TENSOR_MODEL_PARALLEL_GROUP")
    'tp'
    """
    word = name.lower().removeprefix("mesh_")
    return next((dimension for pattern, dimension in _NAMES if re.search(pattern, word)), "")


def decide(use: Use, evidence: Evidence) -> Decision:
    """The dimension that *use* serves: by the mesh, else the description, what the script declared, the operations."""
    for decision in (_by_mesh(use, evidence), _by_description(use), _by_declaration(use, evidence)):
        if decision is not None:
            return decision
    return _by_operations(use, evidence)


def groups(run: RunTables) -> pl.LazyFrame:
    """Rows of `GROUPS`, sorted by communicator and operation."""
    matched = run["matched"]
    used = (
        matched.group_by("communicator", "op")
        .agg(
            pl.col("group", "group_desc", "group_ranks").drop_nulls().first(),
            pl.col("group_size").max(),
            seen=pl.col("rank").unique().sort(),
            count=pl.len() / pl.col("rank").n_unique(),
            sizes=pl.col("size_bytes").n_unique(),
            median_bytes=pl.col("size_bytes").median(),
            largest_bytes=pl.col("size_bytes").max(),
        )
        .sort("communicator", "op")
        .collect()
    )
    ops = dict(used.group_by("communicator").agg("op").rows())
    evidence = _evidence(run)
    rows = [
        row
        | {"ranks": list(use.ranks), "group_size": row["group_size"] or len(use.ranks)}
        | _told(decide(use, evidence))
        for row, use in ((row, _use(row, frozenset(ops[row["communicator"]]))) for row in used.to_dicts())
    ]
    names = GROUPS.schema.names()
    return pl.LazyFrame([{name: row[name] for name in names} for row in rows], schema=GROUPS.schema, strict=False)


def members(group_ranks: str | None) -> tuple[int, ...]:
    """Ranks of ``[0, 1]`` as recorded; empty where they were not, or were shortened (``[0, 1, ..., 7]``)."""
    parts = (group_ranks or "").strip("[]").split(",")
    return tuple(map(int, parts)) if all(part.strip().isdecimal() for part in parts) else ()


def _use(row: dict[str, Any], ops: frozenset[str]) -> Use:
    return Use(
        op=row["op"],
        description=row["group_desc"] or "",
        ranks=members(row["group_ranks"]) or tuple(row["seen"]),
        ops=ops,
        count=row["count"],
        sizes=row["sizes"],
        median_bytes=row["median_bytes"],
        largest_bytes=row["largest_bytes"],
    )


def _told(decision: Decision) -> dict[str, str]:
    return {"dimension": decision.dimension, "decided_by": decision.decided_by, "reason": decision.reason}


def _evidence(run: RunTables) -> Evidence:
    names = run["events"].filter(pl.col("kind").is_in(["annotation", "cpu_op"])).select(pl.col("name").unique())
    texts = names.select(pl.col("name").cast(pl.String)).collect()["name"]
    pipeline = "pipeline" in run and not run["pipeline"].head(1).collect().is_empty()
    return Evidence(
        run.sidecars,
        pipeline=pipeline,
        fsdp=bool(texts.str.contains(r"^FSDP::|FullyShardedDataParallel").any()),
        tables=bool(texts.str.contains("(?i)embedding_?bag|split_embedding").any()),
        ddp=bool(texts.str.contains("DistributedDataParallel|^c10d::Reducer|torch::distributed::reducer").any()),
    )


def _by_mesh(use: Use, evidence: Evidence) -> Decision | None:
    for mesh in (dimension for sidecar in evidence.sidecars.values() for dimension in sidecar.mesh):
        if tuple(sorted(mesh.ranks)) == tuple(sorted(use.ranks)) and (name := dimension_of_name(mesh.name)):
            return Decision(name, "mesh", f"dimension {mesh.name} of the device mesh")
    return None


def _by_description(use: Use) -> Decision | None:
    name = dimension_of_name(use.description) if use.description not in {"default_pg", "undefined"} else ""
    return Decision(name, "description", f"the group is described as {use.description}") if name else None


def _by_declaration(use: Use, evidence: Evidence) -> Decision | None:
    """What the script said, where only one of its dimensions has as many ranks as the group and goes with the operation."""
    declared = {
        key: value for sidecar in evidence.sidecars.values() for key, value in sidecar.strategy.declared.items()
    }
    fitting = [name for name in _candidates(use.op) if declared.get(name.removesuffix("_shard")) == len(use.ranks)]
    if "dp" in fitting and "dp_shard" in fitting:
        fitting.remove("dp" if declared.get("zero") in {2, 3} else "dp_shard")
    if len(fitting) != 1:
        return None
    return Decision(
        fitting[0], "declared", f"the script declared {fitting[0].removesuffix('_shard')} = {len(use.ranks)}"
    )


def _candidates(op: str) -> tuple[str, ...]:
    """Dimensions whose traffic can be *op*."""
    if op in {"all_to_all", "dispatch", "combine"}:
        return "ep", "cp"
    if op == "send_recv":
        return "pp", "cp"
    if op in {"all_gather", "reduce_scatter"}:
        return "dp_shard", "tp", "cp"
    return "dp", "tp"


def _by_operations(use: Use, evidence: Evidence) -> Decision:
    for dimension, reason in _rules(use, evidence):
        return Decision(dimension, "operations", reason)
    return Decision("unknown", "nothing", "nothing tells what the group is for")


def _rules(use: Use, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """What operations tell, most telling first."""
    equal = use.sizes <= _EQUAL_SIZES and use.count >= _PER_LAYER and use.median_bytes is not None
    sharded = {"all_gather", "reduce_scatter"}
    if use.op == "all_to_all" and evidence.tables:
        yield "unknown", "lookups of sharded embedding tables are exchanged, or tokens"
    if use.op in {"all_to_all", "dispatch", "combine"}:
        yield "ep", "tokens go to experts by all-to-all"
    if use.op == "send_recv" and evidence.pipeline:
        yield "pp", "sends and receives beside the actions of a pipeline schedule"
    if use.largest_bytes is not None and use.largest_bytes <= _SCALAR_BYTES and not equal:
        yield "world", "single numbers, as of a loss or a norm"
    if use.op in sharded and evidence.fsdp:
        yield "dp_shard", "parameters are gathered and gradients scattered, and FSDP's ranges were recorded"
    if use.op == "all_reduce" and evidence.ddp:
        yield "dp", "gradients are reduced, and DistributedDataParallel's ranges were recorded"
    if equal and use.op in {*sharded, "all_reduce"}:
        yield "tp", "many messages of one size, as activations of layers are"
    if use.op in sharded and use.ops >= sharded:
        yield "dp_shard", "parameters are gathered and gradients scattered"
    if use.op == "all_reduce":
        yield "dp", "few large messages, as gradients are"
