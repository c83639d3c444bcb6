"""Where each step begins and ends on its device: what every figure per step is measured in."""

from __future__ import annotations

import polars as pl

from tracekit.engine.host import LAUNCH_NS
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE, Column, Table, timeline_columns

_STEP = (*TIMELINE, "step")

STEP_SPANS = Table(
    name="step_spans",
    doc="Each complete step from where the device begins with it until it begins with the next. A recording without one: its window.",
    columns=(
        *timeline_columns(),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="Step number; null for a recording without steps."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="end_ns", dtype=pl.Int64, unit="ns", doc="End."),
        Column(name="host_ns", dtype=pl.Int64, unit="ns", nullable=True, doc="How long the step took on the host."),
    ),
)


def step_spans(run: RunTables) -> pl.LazyFrame:
    """Rows of `STEP_SPANS`, disjoint, sorted by timeline and start.

    The host runs ahead of the device, so a step of the host holds work of the step before. A span begins when the host
    has begun with the step *and* the device is done with the step before, at the latest with the step's first kernel. It
    ends where the next one begins; the last when the host has finished and the device too. Before the first step the device
    counts as idle, unless work recorded outside the steps, or the wait of its first kernel, shows that it was not.
    """
    host = run["steps"].select(*_STEP, "complete", "start_ns", host_ns="dur_ns").sort(*TIMELINE, "start_ns")
    done, follows = pl.col("last_ns").cum_max().shift(1), pl.col("step").shift(-1) == pl.col("step") + 1
    bounded = (
        host.join(_on_device(run), on=_STEP, how="left", maintain_order="left")
        .join(_before_all_steps(run), on=TIMELINE, how="left", maintain_order="left")
        .with_columns(done_ns=pl.max_horizontal(done.over(TIMELINE), "before_ns"), follows=follows.over(TIMELINE))
        .with_columns(
            begin_ns=pl.max_horizontal("start_ns", pl.min_horizontal("done_ns", "first_ns")).cum_max().over(TIMELINE)
        )
        .with_columns(next_ns=pl.col("begin_ns").shift(-1).over(TIMELINE))
    )
    finished = pl.max_horizontal("begin_ns", pl.col("start_ns") + pl.col("host_ns"), "last_ns")
    spans = bounded.filter("complete").select(
        *_STEP,
        "host_ns",
        start_ns="begin_ns",
        end_ns=pl.when("follows").then("next_ns").otherwise(pl.min_horizontal(finished, "next_ns")),
    )
    whole = windows(run).join(spans, on=TIMELINE, how="anti")
    return STEP_SPANS.conform(pl.concat([spans, whole], how="diagonal_relaxed")).sort(*TIMELINE, "start_ns", "step")


def windows(run: RunTables) -> pl.LazyFrame:
    """The window of each timeline [rank, window, start_ns, end_ns]: first to last device event.

    On runs without an accelerator, first to last host event or collective.
    """
    on_host = run.ranks.lazy().filter(pl.col("view") == "host").select(TIMELINE)
    kind = pl.col("kind").is_in(["cpu_op", "annotation", "runtime"])
    host = run["events"].filter(kind).join(on_host, on=TIMELINE, how="semi")
    ends = [
        run["device"].select(*TIMELINE, "start_ns", "end_ns"),
        host.select(*TIMELINE, "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")),
    ]
    return pl.concat(ends).group_by(TIMELINE).agg(pl.col("start_ns").min(), pl.col("end_ns").max())


def in_complete_steps(events: pl.LazyFrame, steps: pl.LazyFrame) -> pl.LazyFrame:
    """*events* with ``in_step``: whether their step is complete; true for all of a timeline that has no complete step."""
    complete = steps.filter("complete").select(_STEP)
    marked = events.join(complete.with_columns(in_step=True), on=_STEP, how="left", maintain_order="left")
    having = complete.select(TIMELINE).unique().with_columns(has_steps=True)
    return marked.join(having, on=TIMELINE, how="left", maintain_order="left").with_columns(
        in_step=pl.coalesce("in_step", pl.col("has_steps").is_null())
    )


def _on_device(run: RunTables) -> pl.LazyFrame:
    """When the device begins and ends with each step [rank, window, step, first_ns, last_ns].

    It begins with the first kernel on the stream that computes most: a prefetch comes a step early.
    """
    events = run["device"].filter(pl.col("device") >= 0, pl.col("step").is_not_null())
    stream = [*TIMELINE, "device", "lane"]
    compute = events.filter(pl.col("set") == "compute")
    main = (
        compute.group_by(stream)
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", *stream, descending=[True, *[False] * len(stream)])
        .unique(TIMELINE, keep="first", maintain_order=True)
    )
    first = compute.join(main, on=stream, how="semi").group_by(_STEP).agg(first_ns=pl.col("start_ns").min())
    return events.group_by(_STEP).agg(last_ns=pl.col("end_ns").max()).join(first, on=_STEP, how="left")


def _before_all_steps(run: RunTables) -> pl.LazyFrame:
    """When the device is done with what came before the first step [rank, window, before_ns].

    Null where it was busy with something that was not recorded: its first event had to wait although it was launched.
    """
    first = run["steps"].group_by(TIMELINE).agg(first_step_ns=pl.col("start_ns").min())
    events = run["device"].filter(pl.col("device") >= 0).join(first, on=TIMELINE)
    before = events.filter(pl.col("step").is_null(), pl.col("start_ns") < pl.col("first_step_ns"))
    calls = run["events"].filter(kind="runtime").select(
        *TIMELINE, "correlation", "dur_ns", launch_ns="start_ns"
    )  # fmt: skip
    waited = pl.col("start_ns") > pl.col("launch_ns") + pl.max_horizontal("dur_ns", LAUNCH_NS)
    earliest = events.select(*TIMELINE, "start_ns", "correlation").unique(TIMELINE, keep="first", maintain_order=True)
    busy = earliest.join(calls, on=[*TIMELINE, "correlation"]).filter(waited).select(TIMELINE)
    known = before.group_by(TIMELINE).agg(before_ns=pl.col("end_ns").max())
    idle = first.join(busy, on=TIMELINE, how="anti").join(known, on=TIMELINE, how="anti")
    return pl.concat([known, idle.select(*TIMELINE, before_ns="first_step_ns")])
