"""What is copied, how fast, and does it hold anything up?

**Question.** How many bytes move in which direction and from which kind of memory, at what bandwidth, and how much of that
time does nothing else run?

**Method.** Device copies and sets by direction and memory, both read from the distinct names (``Memcpy HtoD (Pageable ->
Device)``, AMD's ``CopyHostToDevice``, ``Memset (Device)``). Bandwidth is bytes over the sum of durations, of the copies
whose bytes were recorded. Exposed is the time under neither compute nor communication.

**When it misleads.** Small copies measure latency, not bandwidth. Copies of two kinds that run at one time count as exposed
in both rows. AMD's names do not say whether host memory is pinned. Copies that kernels make (``aten::copy_`` between
layouts) are kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tracekit.engine.intervals import union, within
from tracekit.engine.stats import burden, counted
from tracekit.model.analysis import Analysis, Context
from tracekit.model.finding import Confidence, Finding, Quantity
from tracekit.model.quantity import percent, rate
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

DIRECTIONS = ("HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "memset", "other")
MEMORIES = ("pageable", "pinned", "managed", "host", "device")

TABLE = Table(
    name="copies",
    doc="Device copies and sets of every timeline by direction and memory.",
    columns=(
        *timeline_columns(),
        Column(name="direction", dtype=pl.Enum(DIRECTIONS), doc="Direction: " + ", ".join(DIRECTIONS) + "."),
        Column(
            name="memory",
            dtype=pl.Enum(MEMORIES),
            doc="Memory on the host's side; ``host`` if the name does not say which kind, ``device`` if no host memory is involved.",
        ),
        Column(name="copies", dtype=pl.Int64, doc="Number of copies or sets."),
        Column(
            name="bytes",
            dtype=pl.Int64,
            unit="bytes",
            nullable=True,
            doc="Bytes moved; null when none of the copies recorded them.",
        ),
        Column(name="total_ns", dtype=pl.Int64, unit="ns", doc="Sum of durations."),
        Column(
            name="bandwidth_bytes_per_s",
            dtype=pl.Float64,
            unit="bytes_per_s",
            nullable=True,
            doc="Bytes over the durations of the copies that recorded them.",
        ),
        Column(
            name="exposed_ns",
            dtype=pl.Int64,
            unit="ns",
            doc="Time of the copies' union under neither compute nor communication.",
        ),
        Column(name="step_copies", dtype=pl.Int64, doc="Copies that complete steps launched."),
        Column(name="step_exposed_ns", dtype=pl.Int64, unit="ns", doc="Exposed time inside ``step_spans``."),
    ),
)

_KIND = (*TIMELINE, "direction", "memory")

_DIRECTION_OF = {
    "memset": r"(?i)memset|fillbuffer",
    "HtoD": "HtoD|H2D|HostToDevice",
    "DtoH": "DtoH|D2H|DeviceToHost",
    "PtoP": "PtoP|P2P|PeerToPeer",
    "DtoD": "DtoD|D2D|DeviceToDevice",
    "HtoH": "HtoH|H2H|HostToHost",
}
_MEMORY_OF = {
    "pageable": "(?i)pageable",
    "pinned": "(?i)pinned",
    "managed": "(?i)managed|unified",
    "host": "(?i)hto|toh|h2|2h|host",
}


def compute(run: RunTables) -> pl.LazyFrame:
    rows = (
        run["device"]
        .filter(pl.col("set") == "memory")
        .select(*TIMELINE, "name", "start_ns", "end_ns", "dur_ns", "bytes", "in_step")
    )
    copies = rows.join(_kinds(rows), on="name")
    alone = pl.col("memory") & ~pl.col("compute") & ~pl.col("communication")
    masks = {"exposed_ns": alone, "step_exposed_ns": alone & pl.col("in_step")}
    exposure = within(union(copies, _KIND), run["segments"], masks, TIMELINE).group_by(_KIND).agg(pl.col(masks).sum())
    sums = copies.group_by(_KIND).agg(
        copies=pl.len(),
        step_copies=pl.col("in_step").sum(),
        total_ns=pl.col("dur_ns").sum(),
        bytes=pl.when(pl.col("bytes").count() > 0).then(pl.col("bytes").sum()),
        timed_ns=pl.col("dur_ns").filter(pl.col("bytes").is_not_null()).sum(),
    )
    table = sums.join(exposure, on=_KIND, how="left").with_columns(
        pl.col(masks).fill_null(0),
        bandwidth_bytes_per_s=pl.when(pl.col("timed_ns") > 0).then(pl.col("bytes") * 1e9 / pl.col("timed_ns")),
    )
    return TABLE.conform(table).sort(_KIND)


def _kinds(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Direction and memory of each distinct name: [name, direction, memory]."""
    text = pl.col("name").cast(pl.String)

    def first(patterns: dict[str, str], otherwise: str) -> pl.Expr:
        matched = [pl.when(text.str.contains(pattern)).then(pl.lit(kind)) for kind, pattern in patterns.items()]
        return pl.coalesce(*matched, pl.lit(otherwise))

    return rows.select(pl.col("name").unique()).select(
        "name",
        direction=first(_DIRECTION_OF, "other").cast(pl.Enum(DIRECTIONS)),
        memory=first(_MEMORY_OF, "device").cast(pl.Enum(MEMORIES)),
    )


def find(table: pl.DataFrame, context: Context) -> Sequence[Finding]:
    """Copies that nothing hides: from and to pageable memory from 1 % of the step on, of any kind from 3 %."""
    return [finding for finding in (_pageable(table, context), _exposed(table, context)) if finding is not None]


def _pageable(table: pl.DataFrame, context: Context) -> Finding | None:
    """Pinned memory wins what its measured bandwidth saves, or nothing that is known; hiding the copy wins all of it."""
    pinned = table.filter(pl.col("memory") == "pinned").select(
        *TIMELINE, "direction", pinned_bytes_per_s="bandwidth_bytes_per_s"
    )
    saved = (1 - pl.col("bandwidth_bytes_per_s") / pl.col("pinned_bytes_per_s")).fill_null(0).clip(0, 1)
    rows = table.filter(pl.col("memory") == "pageable").join(pinned, on=[*TIMELINE, "direction"], how="left")
    rows = rows.with_columns(lower_ns=(pl.col("step_exposed_ns") * saved).cast(pl.Int64), upper_ns="step_exposed_ns")
    load = burden(rows, context, at_least=0.01)
    if load is None:
        return None
    here = rows.filter(rank=load.rank).sort("step_exposed_ns", descending=True)
    timed = here.filter(pl.col("bytes").is_not_null())
    copies = context.per_step(load.rank, int(here["step_copies"].sum()))
    moved, spent_ns = int(timed["bytes"].sum()), int(timed["total_ns"].sum())
    measured = (
        Quantity(label="bytes of all copies", value=moved, unit="bytes"),
        Quantity(label="bandwidth", value=moved * 1e9 / spent_ns, unit="bytes_per_s"),
    ) if spent_ns else ()  # fmt: skip
    speed = f", at {rate(measured[1].value)}" if measured else ""
    return load.finding(
        code="TK-COPY-PAGEABLE",
        title=f"Copies of pageable host memory hold up the device: {load}",
        cause=f"{counted(copies, 'copy', 'copies')} {load.each}, {here['direction'][0]} most{speed}. The driver stages pageable memory.",
        remedy="DataLoader(pin_memory=True) or tensor.pin_memory(), copies with non_blocking=True, on a side stream one batch ahead",
        confidence=Confidence.HIGH,
        evidence=(
            *load.evidence("exposed copies"),
            Quantity(label=f"copies per {load.unit}", value=copies, unit="count"),
            *measured,
        ),
    )


def _exposed(table: pl.DataFrame, context: Context) -> Finding | None:
    rows = table.with_columns(lower_ns=pl.lit(0, pl.Int64), upper_ns="step_exposed_ns")
    load = burden(rows, context, at_least=0.03)
    if load is None:
        return None
    kinds = (
        rows.filter(rank=load.rank).group_by("direction", "memory").agg(pl.col("step_copies", "step_exposed_ns").sum())
    )
    here = kinds.sort("step_exposed_ns", "direction", descending=[True, False])
    direction, memory, copies, exposed_ns = here.row(0)
    share, number = exposed_ns / here["step_exposed_ns"].sum(), context.per_step(load.rank, copies)
    return load.finding(
        code="TK-COPY-EXPOSED",
        title=f"The device copies and does nothing else: {load}",
        cause=f"Largest part: {direction} copies ({memory} memory), {percent(share)} in {counted(number, 'copy', 'copies')} {load.each}.",
        remedy="Copy one batch ahead on a side stream (non_blocking=True, pinned memory); offload fewer layers; avoid .contiguous() and layout changes",
        confidence=Confidence.MEDIUM,
        evidence=(
            *load.evidence("exposed copies"),
            Quantity(
                label=f"copies per {load.unit}",
                value=context.per_step(load.rank, int(here["step_copies"].sum())),
                unit="count",
            ),
        ),
    )


ANALYSIS = Analysis(
    table=TABLE,
    needs=("device", "segments"),
    compute=compute,
    find=find,
    codes=("TK-COPY-PAGEABLE", "TK-COPY-EXPOSED"),
)
