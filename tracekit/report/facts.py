"""What a run's tables hold: the counts that `tracekit doctor` judges by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE
from tracekit.model.tables import DEVICE_KINDS

_MOST_NAMED: Final = 3
_ON_CPUS: Final = frozenset({"gloo", "mpi", "ucc"})
"""Backends of jobs that run on CPUs."""
READ: Final = ("read", "truncated")
"""Statuses of the recordings that figures are built on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """How much there is of everything that an answer can be built on, over all recordings that were read."""

    ranks: tuple[int, ...]
    world_size: int | None
    unread: tuple[str, ...]
    """``sources: reason`` of the recordings that could not be used."""
    set_aside: tuple[str, ...]
    """The same of those that belong to another run."""
    truncated: tuple[int, ...]
    rank_sources: tuple[str, ...]
    backends: tuple[str, ...]
    """Communication backends, where recorded."""
    devices: tuple[str, ...]
    """Names of the accelerators, where recorded."""
    hip_calls: int
    """Distinct calls of the HIP runtime, whose profiler writes no occupancy."""
    steps: int
    """Complete steps of the rank that has the fewest."""
    step_source: str
    """``annotation``, ``inferred``, or empty when there are no steps."""
    events: int
    operators: int
    stacks: int
    """Events of the Python tracer."""
    kernels: int
    occupied: int
    """Kernels with an occupancy."""
    device_events: int
    launched: int
    """Device events whose launch is recorded."""
    attributed: int
    """Device events that name the operator behind them."""
    collectives: int
    grouped: int
    """Collectives that name their process group."""
    numbered: int
    """Collectives with their group's sequence number."""
    sized: int
    """Collectives with their bytes."""
    memory: int
    shapes: bool | None
    """Whether operators carry the shapes of their inputs; None when that could not be looked up."""

    @property
    def on_cpus(self) -> bool:
        """Whether the job itself ran on CPUs, rather than its devices having gone unrecorded."""
        return not self.device_events and bool(_ON_CPUS & set(self.backends))


def world_size(ranks: pl.DataFrame) -> int | None:
    """World size by the recordings that were read, by the others when none was; None when no trace says it.

    A recording that was set aside belongs to another run, with a world of its own.
    """
    read = ranks.filter(pl.col("status").is_in(READ))
    told = read if len(read) else ranks.filter(pl.col("status") != "set_aside")
    return max((size for size in told["world_size"].to_list() if size), default=None)


def devices_unrecorded(ranks: pl.DataFrame) -> bool:
    """Whether a recording that holds no device events names a device, or a backend that needs one."""
    host = ranks.filter(pl.col("view") == "host")
    backends = host["backend"].drop_nulls()
    return bool(len(host["device_name"].drop_nulls())) or not set(backends) <= _ON_CPUS


def unused(ranks: pl.DataFrame) -> tuple[str, ...]:
    """What was left out, or read only in part, of *ranks*: ``sources: reason``, those with the same reason together."""
    sources: dict[str, list[str]] = defaultdict(list)
    for recording in ranks.filter(pl.col("status") != "read").select("source", "status", "reason").to_dicts():
        sources[recording["reason"] or recording["status"]].append(recording["source"])
    return tuple(f"{_named(names)}: {reason}" for reason, names in sources.items())


def gather(run: RunTables, shapes: bool | None) -> Facts:
    """Count what *run* holds. Whether operators carry *shapes* only the source files know: the caller looks."""
    read = run.ranks.filter(pl.col("status").is_in(READ))
    status = pl.col("status")
    unread = run.ranks.filter(~status.is_in(READ), status != "set_aside")
    steps = run["steps"].filter(pl.col("complete")).select(*TIMELINE, "source").collect()
    per_rank = read.select(TIMELINE).join(steps.group_by(TIMELINE).len(), on=TIMELINE, how="left")["len"].fill_null(0)
    return Facts(
        ranks=_ints(read["rank"]),
        world_size=world_size(run.ranks),
        unread=unused(unread),
        set_aside=unused(run.ranks.filter(status == "set_aside")),
        truncated=_ints(read.filter(pl.col("status") == "truncated")["rank"]),
        rank_sources=_texts(read["rank_source"]),
        backends=_texts(read["backend"]),
        devices=_texts(read["device_name"]),
        steps=_int(per_rank.min()) or 0,
        step_source=next(iter(_texts(steps["source"])), ""),
        shapes=shapes,
        memory=run["memory"].select(pl.len()).collect().item(),
        **_collectives(run["collectives"]),
        **_events(run["events"]),
    )


def _collectives(collectives: pl.LazyFrame) -> dict[str, int]:
    return (
        collectives.select(
            collectives=pl.len(),
            grouped=pl.col("group").is_not_null().sum(),
            numbered=pl.col("seq").is_not_null().sum(),
            sized=pl.coalesce("in_bytes", "out_bytes").is_not_null().sum(),
        )
        .collect()
        .row(0, named=True)
    )


def _events(events: pl.LazyFrame) -> dict[str, int]:
    """Counts over `events`; one scan for the plain ones, one join for the launches."""
    kind = pl.col("kind")
    on_device = kind.is_in(DEVICE_KINDS)
    counts = events.select(
        events=pl.len(),
        operators=(kind == "cpu_op").sum(),
        stacks=(kind == "python").sum(),
        kernels=(kind == "kernel").sum(),
        occupied=((kind == "kernel") & pl.col("occupancy_ratio").is_not_null()).sum(),
        device_events=on_device.sum(),
        attributed=(on_device & pl.col("external_id").is_not_null()).sum(),
    )
    calls = events.filter(kind == "runtime", pl.col("correlation").is_not_null()).select(*TIMELINE, "correlation")
    launched = events.filter(on_device).join(calls, on=[*TIMELINE, "correlation"], how="semi").select(launched=pl.len())
    names = events.filter(kind == "runtime").select(pl.col("name").unique().cast(pl.String))
    hip_calls = names.filter(pl.col("name").str.starts_with("hip")).select(hip_calls=pl.len())
    frames = pl.collect_all([counts, launched, hip_calls])
    return {key: value for frame in frames for key, value in frame.row(0, named=True).items()}


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _ints(column: pl.Series) -> tuple[int, ...]:
    return tuple(column.unique().sort().to_list())


def _texts(column: pl.Series) -> tuple[str, ...]:
    return tuple(text for text in column.drop_nulls().unique(maintain_order=True) if text)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None
