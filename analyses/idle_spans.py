"""What was each moment of idleness waiting for?

**Question.** The device runs nothing: who keeps it waiting, and with which call?

**Method.** A gap is a maximal span in which no device interval runs. What ended it tells its cause: the first device
event to start at the gap's end, and the host call that launched it.

* Until that launch began, *the host was late*. That time is charged to what the launching thread was doing, the first of
  these that holds: blocked in a call that waits for the device (``sync``), in an allocator call of the driver
  (``allocation``), fetching a batch (``data``). Whatever else it did is ``host_bound``.
* A call that waits drains the queue, so the device stays dry after it has returned, too. Without the call the launch would
  have come earlier by as long as the call had blocked *before* the device ran dry; so much of the time after its return
  is charged to it as well (``returned`` is true), the rest is ``host_bound``. A call that blocks for 6 µs explains no 50 µs.
* The launch itself is ``host_bound``: until the launching call has returned, and 20 µs from its start at least, which is
  what a launch into an empty queue may take.
* From then on the work was queued and the device did not start it: ``dependency``, on another stream, an event, a peer, or
  the device's own pause between two kernels (inside a replayed graph every pause is that).
* A gap that is ended by an event without a launch record is ``other``. One that nothing ends (the device has done the last
  step, the host has not) is the host's.

On runs without an accelerator the gaps lie between operators; nothing launches them, so their causes are ``data`` and
``other`` (Python between two operators, most often).

Gaps are looked for in the window and in the steps, of which the first and the last may reach beyond the window. The spans
of a gap cover it exactly, so the causes add up to the idle time: ``window_ns`` to the window's, ``step_ns`` to the steps'.

**When it misleads.** Calls are looked for on the launching thread alone: when one thread blocks and another, woken by it,
launches, the gap reads ``host_bound``. A queue that a call has drained stays short for a while: the small gaps after the
first are ``host_bound``, so ``sync`` is a lower figure. A clock that differs between host and device shifts time between
``host_bound`` and ``dependency``. Profiling itself makes launches slower, Python stacks most of all.
"""

from __future__ import annotations

import polars as pl

from tracekit.analyses.idle_rules import CODES, find
from tracekit.engine.host import LAUNCH_NS, THREAD, named, with_operator
from tracekit.engine.intervals import intersect, sweep, union, within
from tracekit.model.analysis import Analysis
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns
from tracekit.model.tables import Name

CAUSES = ("host_bound", "sync", "data", "dependency", "allocation", "other")
Cause = pl.Enum(CAUSES)

TABLE = Table(
    name="idle_spans",
    doc="Every span of device idleness with its cause; the spans of a timeline add up to its idle time, in the window and in the steps.",
    columns=(
        *timeline_columns(),
        Column(name="gap", dtype=pl.Int64, doc="Number of the gap in the timeline; a gap has one span or more."),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="Step of the event that ended the gap."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="end_ns", dtype=pl.Int64, unit="ns", doc="End."),
        Column(name="window_ns", dtype=pl.Int64, unit="ns", doc="How much of it is in the window."),
        Column(name="step_ns", dtype=pl.Int64, unit="ns", doc="How much of it is in ``step_spans``."),
        Column(name="cause", dtype=Cause, doc="Cause: " + ", ".join(CAUSES) + "."),
        Column(
            name="returned",
            dtype=pl.Boolean,
            doc="True where the blocking call had returned and its drained queue was still empty.",
        ),
        Column(
            name="call",
            dtype=Name,
            nullable=True,
            doc="The call that the host was in, or the launching call where it was in none; null where nothing was launched.",
        ),
        Column(name="operator", dtype=Name, nullable=True, doc="Operator that made the call."),
        Column(name="kernel", dtype=Name, nullable=True, doc="Device event that ended the gap."),
    ),
)

_COPY = "^(cuda|cu|hip)Memcpy"
_ALLOCATION = "^(cuda|hip)(Ext|Host)?(Malloc|Free|Alloc|Register|Unregister)|^(cu|hip)Mem(Create|Map|Unmap|Release|Address|SetAccess|Alloc|Free|HostAlloc)"
_FETCH = r"enumerate\(DataLoader\)|dataloader\.py\(\d+\): __next__"
_TO_HOST = "DtoH|D2H|DeviceToHost"

_CLAIMS = ("sync", "allocation", "data", "sync_returned", "allocation_returned", "late")
"""Who lays claim to the time until a launch, strongest first: each moment goes to the first whose claim holds it."""


def compute(run: RunTables) -> pl.LazyFrame:
    gaps, calls = _gaps(run).lazy(), _calls(run).collect().lazy()  # small, and used several times
    spans = (
        _divided(gaps, calls)
        .join_asof(gaps.drop("end_ns"), on="start_ns", by=list(TIMELINE), check_sortedness=False)
        .with_columns(
            cause=pl.when(claim="late")
            .then(pl.when("linked").then(pl.lit("host_bound")).otherwise(pl.lit("other")))
            .when(claim="queued")
            .then(pl.lit("dependency"))
            .otherwise(pl.col("claim").str.strip_suffix("_returned")),
            returned=pl.col("claim").str.ends_with("_returned"),
        )
    )
    masks = {"window_ns": pl.col("in_window"), "step_ns": pl.col("in_step")}
    return TABLE.conform(_with_names(within(spans, run["segments"], masks, TIMELINE), calls))


def _gaps(run: RunTables) -> pl.DataFrame:
    """The gaps with what ended them: thread, call and kernel, and the moments ``late_ns`` and ``queued_ns`` that part them.

    The host was late until ``late_ns``, the launch took until ``queued_ns``, the rest was waiting in the queue.
    """
    idle = pl.any_horizontal("in_window", "in_step") & ~pl.any_horizontal("compute", "communication", "memory")
    merged = union(run["segments"].filter(idle), TIMELINE)
    gaps = merged.with_columns(gap=pl.int_range(pl.len()).over(TIMELINE)).collect()
    launched = run["launches"].select(
        *TIMELINE, "step", "operator", "launch_start_ns", "launch_end_ns", "linked",
        end_ns="start_ns", thread="launch_thread", call="launch_name", kernel="name",
    )  # fmt: skip
    on_host = run["device"].filter(pl.col("device") == -1)
    ends = [launched, on_host.select(*TIMELINE, "step", end_ns="start_ns", thread="lane", kernel="name")]
    ended = gaps.lazy().join(pl.concat(ends, how="diagonal"), on=[*TIMELINE, "end_ns"], how="left").collect()
    if ended.height > gaps.height:  # several events end a gap together: the one launched first
        ended = ended.sort("launch_start_ns", nulls_last=True).unique([*TIMELINE, "gap"], keep="first")
    ended = ended.sort("start_ns")
    launch, queued = (
        pl.col("launch_start_ns"),
        pl.max_horizontal(pl.col("launch_start_ns") + LAUNCH_NS, "launch_end_ns"),
    )
    linked = pl.col("linked").fill_null(False)
    unended = pl.col("kernel").is_null() & linked.any().over(TIMELINE)
    return ended.with_columns(
        linked=linked | unended,
        thread=pl.coalesce("thread", pl.when(unended).then(pl.col("thread").forward_fill().over(TIMELINE))),
        late_ns=pl.when(linked).then(launch.clip("start_ns", "end_ns")).otherwise("end_ns"),
        queued_ns=pl.when(linked).then(queued.clip("start_ns", "end_ns")).otherwise("end_ns"),
    )


def _calls(run: RunTables) -> pl.LazyFrame:
    """Host calls that keep a thread from launching: [rank, window, thread, start_ns, end_ns, cause, name, operator, ...]."""
    events, kind, name = run["events"], pl.col("kind"), pl.col("name")
    runtime = events.filter(kind == "runtime")
    waiting = name.str.contains("(?i)synchronize") | (name.str.contains(_COPY) & ~name.str.contains("Async"))
    fetching = events.filter(kind.is_in(["annotation", "cpu_op", "python"]), name.cat.ends_with("__next__"))
    found = [
        named(rows, pattern).select(
            *TIMELINE,
            "start_ns",
            "name",
            "external_id",
            thread="lane",
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            cause=pl.lit(cause),
        )
        for rows, pattern, cause in (
            (runtime, waiting, "sync"),
            (runtime, name.str.contains(_ALLOCATION), "allocation"),
            (fetching, name.str.contains(_FETCH), "data"),
        )
    ]
    # A copy to pageable memory keeps its call, asynchronous by name, until the copy is done.
    to_host = named(run["launches"].filter("linked", pl.col("set") == "memory"), name.str.contains(_TO_HOST))
    copying = to_host.filter(pl.col("launch_end_ns") >= pl.col("end_ns")).select(
        *TIMELINE,
        "operator",
        start_ns="launch_start_ns",
        end_ns="launch_end_ns",
        thread="launch_thread",
        name="launch_name",
        cause=pl.lit("sync"),
    )
    issued = with_operator(pl.concat(found).with_columns(at_ns="start_ns"), events)
    return pl.concat([issued, copying], how="diagonal").sort("start_ns")


def _divided(gaps: pl.LazyFrame, calls: pl.LazyFrame) -> pl.LazyFrame:
    """Every gap divided among its claims: [rank, window, start_ns, end_ns, claim], sorted by start.

    Only gaps that calls lay claim to are swept; the others, most of them, belong to their launch.
    """
    claims = (
        pl.concat(_claims(gaps, calls)).filter(pl.col("start_ns") < pl.col("end_ns")).sort("start_ns").collect().lazy()
    )
    gap = [*TIMELINE, "gap"]
    contested = claims.join_asof(
        gaps.select(*gap, "start_ns"), on="start_ns", by=list(TIMELINE), check_sortedness=False
    ).select(gap)
    late = gaps.select(*gap, "start_ns", end_ns="queued_ns", claim=pl.lit("late"))
    queued = gaps.select(*TIMELINE, pl.col("queued_ns").alias("start_ns"), "end_ns", claim=pl.lit("queued"))
    swept = sweep(
        pl.concat([claims, late.join(contested, on=gap, how="semi").drop("gap")]), "claim", _CLAIMS, TIMELINE
    ).filter(pl.any_horizontal(_CLAIMS))
    strongest = pl.coalesce(pl.when(name).then(pl.lit(name)) for name in _CLAIMS)
    parts = [
        swept.select(*TIMELINE, "start_ns", "end_ns", claim=strongest),
        late.join(contested, on=gap, how="anti").drop("gap"),
        queued,
    ]
    return pl.concat(parts).filter(pl.col("start_ns") < pl.col("end_ns")).sort("start_ns")


def _claims(gaps: pl.LazyFrame, calls: pl.LazyFrame) -> list[pl.LazyFrame]:
    """What calls claim of the time in which the host was late: [rank, window, start_ns, end_ns, claim]."""
    late = gaps.filter(pl.col("thread").is_not_null(), pl.col("start_ns") < pl.col("late_ns"))
    dry, launch = pl.col("dry_ns"), pl.col("late_ns")
    start, end = pl.col("start_ns"), pl.col("end_ns")
    blocked = (  # a thread cannot launch while it is blocked, so a call is followed by one late launch of it at most
        calls.filter(pl.col("cause") != "data")
        .sort("end_ns")
        .join_asof(
            late.select(*THREAD, "late_ns", dry_ns="start_ns"),
            left_on="end_ns", right_on="dry_ns", by=list(THREAD), allow_exact_matches=False, check_sortedness=False,
        )
        .filter(start < launch)
    )  # fmt: skip
    inside = blocked.select(
        *TIMELINE, start_ns=pl.max_horizontal(start, dry), end_ns=pl.min_horizontal(end, launch), claim="cause"
    )
    after = blocked.select(
        *TIMELINE,
        start_ns=end,
        end_ns=pl.min_horizontal(end + (dry - start).clip(0), launch),
        claim=pl.col("cause") + "_returned",
    )
    fetches = union(calls.filter(pl.col("cause") == "data"), THREAD)
    windows = late.select(*THREAD, "start_ns", end_ns="late_ns")
    near = windows.join_asof(  # of the windows that overlap a fetch, the last fetch to start before their end does
        fetches.select(*THREAD, until="end_ns", fetch_ns="start_ns"),
        left_on="end_ns", right_on="fetch_ns", by=list(THREAD), check_sortedness=False,
    ).filter(pl.col("until") > pl.col("start_ns"))  # fmt: skip
    fetching = intersect(fetches, near, THREAD).select(*TIMELINE, "start_ns", "end_ns", claim=pl.lit("data"))
    return [inside, after, fetching]


def _with_names(spans: pl.LazyFrame, calls: pl.LazyFrame) -> pl.LazyFrame:
    """*spans* with the call and operator of the blocking call where one was the cause, of the launch otherwise."""
    caller = calls.select(*THREAD, "cause", "start_ns", "name", caller_operator="operator")
    return (
        spans.join_asof(caller, on="start_ns", by=[*THREAD, "cause"], check_sortedness=False)
        .with_columns(
            operator=pl.when(pl.col("name").is_null()).then("operator").otherwise("caller_operator"),
            call=pl.coalesce("name", "call"),
        )
        .sort(*TIMELINE, "start_ns")
    )


ANALYSIS = Analysis(
    table=TABLE,
    needs=("events", "device", "segments"),
    compute=compute,
    find=find,
    codes=CODES,
)
