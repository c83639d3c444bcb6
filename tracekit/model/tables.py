"""The tables that readers fill. Time is int64 nanoseconds from the run's origin; strings that repeat are categorical."""

from __future__ import annotations

import polars as pl

from tracekit.model.table import Column, Table, timeline_columns

KINDS = (
    "cpu_op",
    "kernel",
    "memcpy",
    "memset",
    "runtime",
    "sync",
    "annotation",
    "gpu_annotation",
    "python",
    "other",
)
"""What an event is. Device time is ``kernel``, ``memcpy`` and ``memset`` and nothing else."""

DEVICE_KINDS = ("kernel", "memcpy", "memset")

CLASSES = (
    "gemm",
    "attention_flash",
    "attention",
    "normalization",
    "softmax",
    "elementwise",
    "reduction",
    "embedding",
    "optimizer",
    "convolution",
    "pooling",
    "loss",
    "moe",
    "sort",
    "scan",
    "random",
    "fft",
    "copy",
    "fused",
    "communication",
    "memcpy",
    "memset",
    "other",
    "",
)
"""What a device event does, decided once per distinct name. ``other`` is an unclassified kernel; empty is a host event."""

Kind = pl.Enum(KINDS)
Class = pl.Enum(CLASSES)
Name = pl.Categorical()

EVENTS = Table(
    name="events",
    doc="Every complete event of every rank: host operators, runtime calls, kernels, copies, annotations.",
    columns=(
        *timeline_columns(),
        Column(
            name="process",
            dtype=pl.Int64,
            doc="Process id as recorded (the device's number on device events); -1 if it is not a number.",
        ),
        Column(name="device", dtype=pl.Int32, doc="Device number; -1 for host events."),
        Column(
            name="lane",
            dtype=pl.Int64,
            doc="Stream of a device event, thread id of a host event; -1 if it is not a number.",
        ),
        Column(name="kind", dtype=Kind, doc="What the event is: " + ", ".join(KINDS) + "."),
        Column(name="name", dtype=Name, doc="Name as recorded, control characters replaced."),
        Column(name="class", dtype=Class, doc="Kernel class, decided once per distinct name; empty on host events."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="dur_ns", dtype=pl.Int64, unit="ns", doc="Duration."),
        Column(
            name="correlation",
            dtype=pl.Int64,
            nullable=True,
            doc="Links a device event with the runtime call that launched it, within one process and recording.",
        ),
        Column(
            name="external_id",
            dtype=pl.Int64,
            nullable=True,
            doc="Links a runtime call or device event with the operator that issued it.",
        ),
        Column(
            name="step",
            dtype=pl.Int32,
            nullable=True,
            doc="Step that the event belongs to: host events by time, device events by their launch. Null outside steps.",
        ),
        Column(name="bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Bytes moved by a copy or set."),
        Column(
            name="occupancy_ratio",
            dtype=pl.Float32,
            unit="ratio",
            nullable=True,
            doc="Estimated achieved occupancy of a kernel, 0 to 1, where the profiler wrote it.",
        ),
        Column(
            name="sequence",
            dtype=pl.Int64,
            nullable=True,
            doc="Autograd sequence number that forward and backward operators share.",
        ),
    ),
)

COLLECTIVES = Table(
    name="collectives",
    doc="Every communication operation a rank took part in, with what its metadata or its name says of it.",
    columns=(
        *timeline_columns(),
        Column(
            name="device", dtype=pl.Int32, doc="Device number; -1 when the backend runs on host threads (gloo, MPI)."
        ),
        Column(name="lane", dtype=pl.Int64, doc="Stream or thread."),
        Column(name="name", dtype=Name, doc="Kernel or range name."),
        Column(name="group", dtype=pl.String, nullable=True, doc="Process group name as recorded."),
        Column(
            name="group_desc",
            dtype=pl.String,
            nullable=True,
            doc="Process group description as recorded (``default_pg``, ``mesh_tp``, ...).",
        ),
        Column(name="group_ranks", dtype=pl.String, nullable=True, doc="Member ranks as recorded, e.g. ``[0, 1]``."),
        Column(
            name="op",
            dtype=pl.String,
            doc="Operation: all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send_recv, barrier, dispatch, combine, unknown.",
        ),
        Column(name="op_source", dtype=pl.String, doc="How the operation was decided: ``metadata`` or ``name``."),
        Column(
            name="algorithm",
            dtype=pl.String,
            nullable=True,
            doc="Algorithm and protocol read from the kernel name, e.g. ``RING_LL``.",
        ),
        Column(name="seq", dtype=pl.Int64, nullable=True, doc="Sequence number of the operation in its group."),
        Column(name="dtype", dtype=pl.String, nullable=True, doc="Element type as recorded."),
        Column(name="in_bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Bytes of the rank's input."),
        Column(name="out_bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Bytes of the rank's output."),
        Column(name="group_size", dtype=pl.Int32, nullable=True, doc="Number of ranks in the group."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="dur_ns", dtype=pl.Int64, unit="ns", doc="Duration: transfer and waiting together."),
        Column(name="correlation", dtype=pl.Int64, nullable=True, doc="As in ``events``."),
        Column(name="external_id", dtype=pl.Int64, nullable=True, doc="As in ``events``."),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="As in ``events``."),
    ),
)

STEPS = Table(
    name="steps",
    doc="The training steps of every rank, on the host's clock.",
    columns=(
        *timeline_columns(),
        Column(name="step", dtype=pl.Int32, doc="Step number as the profiler counts it, or 0, 1, ... when inferred."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="dur_ns", dtype=pl.Int64, unit="ns", doc="Duration on the host."),
        Column(
            name="complete",
            dtype=pl.Boolean,
            doc="False for a step that the recording cut off; it is left out of per-step figures.",
        ),
        Column(
            name="source",
            dtype=pl.String,
            doc="How it was found: ``annotation`` (ProfilerStep) or ``inferred`` (periodicity).",
        ),
    ),
)

MEMORY = Table(
    name="memory",
    doc="Allocator events of the profiler's memory recording (``profile_memory=True``).",
    columns=(
        *timeline_columns(),
        Column(name="device", dtype=pl.Int32, doc="Device number; -1 for host memory."),
        Column(name="time_ns", dtype=pl.Int64, unit="ns", doc="Moment, from the run's origin."),
        Column(name="delta_bytes", dtype=pl.Int64, unit="bytes", doc="Bytes allocated (positive) or freed (negative)."),
        Column(
            name="allocated_bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Total allocated after the event."
        ),
        Column(
            name="reserved_bytes", dtype=pl.Int64, unit="bytes", nullable=True, doc="Total reserved after the event."
        ),
    ),
)

PIPELINE = Table(
    name="pipeline",
    doc="Every action of a pipeline schedule: which stage worked on which microbatch, when, on the host's clock.",
    columns=(
        *timeline_columns(),
        Column(name="stage", dtype=pl.Int32, nullable=True, doc="Stage; null where the schedule did not write it."),
        Column(
            name="chunk",
            dtype=pl.Int32,
            nullable=True,
            doc="Which of the rank's own stages it is, from 0: interleaved schedules hold several.",
        ),
        Column(name="microbatch", dtype=pl.Int32, nullable=True, doc="Microbatch, from 0; null for actions on none."),
        Column(
            name="action",
            dtype=pl.String,
            doc="F forward, B backward, I and W its halves (gradients of input and of weights), SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, REDUCE_GRAD.",
        ),
        Column(name="lane", dtype=pl.Int64, doc="Thread that ran it."),
        Column(name="start_ns", dtype=pl.Int64, unit="ns", doc="Start, from the run's origin."),
        Column(name="dur_ns", dtype=pl.Int64, unit="ns", doc="Duration on the host."),
        Column(name="step", dtype=pl.Int32, nullable=True, doc="As in ``events``."),
    ),
)

RANKS = Table(
    name="ranks",
    doc="One row per recording of a rank, readable or not, with what was read, repaired and dropped.",
    columns=(
        *timeline_columns(),
        Column(name="source", dtype=pl.String, doc="File that the rank was read from, relative to the path given."),
        Column(name="process", dtype=pl.Int64, nullable=True, doc="Process id, when one file holds several ranks."),
        Column(
            name="status",
            dtype=pl.String,
            doc="``read``, ``truncated`` (complete events were read), ``empty``, ``failed`` or ``set_aside`` (another run's).",
        ),
        Column(name="reason", dtype=pl.String, doc="Why the status is not ``read``; empty otherwise."),
        Column(
            name="rank_source",
            dtype=pl.String,
            doc="What decided the rank: ``sidecar``, ``distributedInfo``, ``process group``, ``file name``, ``device``, ``process``, ``order``, ``only file``.",
        ),
        Column(name="world_size", dtype=pl.Int32, nullable=True, doc="World size as recorded."),
        Column(name="backend", dtype=pl.String, nullable=True, doc="Communication backend as recorded."),
        Column(
            name="view",
            dtype=pl.String,
            doc="``device`` when the recording has device events, ``host`` when operators and backend ranges stand for them (CPU runs).",
        ),
        Column(name="device_name", dtype=pl.String, nullable=True, doc="Accelerator name as recorded."),
        Column(
            name="base_ns", dtype=pl.Int64, unit="ns", doc="``baseTimeNanoseconds`` that was added to the rank's times."
        ),
        Column(
            name="clock_offset_ns",
            dtype=pl.Int64,
            unit="ns",
            doc="Correction added to the rank's times, at its first event; reversible.",
        ),
        Column(
            name="clock_drift_ppb",
            dtype=pl.Float64,
            doc="How much the correction grows from there on, in nanoseconds a second.",
        ),
        Column(
            name="clock_error_ns",
            dtype=pl.Int64,
            unit="ns",
            nullable=True,
            doc="Error bar of the correction; null when the clock was not calibrated.",
        ),
        Column(
            name="complete_events", dtype=pl.Int64, doc="Complete events in the file (``ph`` X, or paired B and E)."
        ),
        Column(name="device_events", dtype=pl.Int64, doc="Kernel, memcpy and memset events among them."),
        Column(name="events_read", dtype=pl.Int64, doc="Trace events of any phase that were decoded."),
        Column(
            name="events_repaired",
            dtype=pl.Int64,
            doc="Events kept after a repair (control characters, quotes, overflowing durations).",
        ),
        Column(name="events_dropped", dtype=pl.Int64, doc="Events that could not be used."),
        Column(
            name="device_ns_touched", dtype=pl.Int64, unit="ns", doc="Device time of repaired events, after the repair."
        ),
        Column(
            name="notes", dtype=pl.List(pl.String), doc="What a person should know of this recording, a sentence each."
        ),
    ),
)

RECORDED: tuple[Table, ...] = (EVENTS, COLLECTIVES, STEPS, PIPELINE, MEMORY)
"""What a reader fills for each recording."""

TABLES: tuple[Table, ...] = (*RECORDED, RANKS)
"""Every table of a run, in the order of the data dictionary."""
