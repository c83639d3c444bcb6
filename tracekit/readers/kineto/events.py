"""The parts of a trace event that tracekit uses, as msgspec decodes them. Everything else in the JSON is skipped unread."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

ABSENT = -1
"""Stands for an absent integer: no id, stream or correlation of the profiler is negative where it means something."""


class Args(msgspec.Struct, gc=False, frozen=True):
    """What is read of every event's ``args``. Integers where every profiler writes integers, `Any` where dialects disagree.

    Each field here costs every event (a field that is absent is set all the same), so what only few events have is in
    `Details`. Fields stand in the order in which the profiler writes them: msgspec looks for the next one first.
    """

    external_id: int = msgspec.field(default=ABSENT, name="External id")
    sequence: int = msgspec.field(default=ABSENT, name="Sequence number")
    device: Any = ABSENT
    stream: Any = ABSENT  # hex text on HIP runtime calls, integer elsewhere
    correlation: int = ABSENT
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    bytes: Any = ABSENT  # text on some HIP runtime calls
    size: Any = ABSENT  # MTIA's spelling of bytes
    collective: Any = msgspec.field(default=None, name="Collective name")


class Details(Args, gc=False, frozen=True):
    """``args`` of collectives and of the allocator's events."""

    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_desc: Any = msgspec.field(default=None, name="Process Group Description")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    group_size: Any = msgspec.field(default=None, name="Group size")
    in_elements: Any = msgspec.field(default=None, name="In msg nelems")
    out_elements: Any = msgspec.field(default=None, name="Out msg nelems")
    dtype: Any = None
    seq: Any = msgspec.field(default=None, name="Seq")
    memory_bytes: Any = msgspec.field(default=None, name="Bytes")
    memory_device_type: Any = msgspec.field(default=None, name="Device Type")
    memory_device: Any = msgspec.field(default=None, name="Device Id")
    memory_allocated: Any = msgspec.field(default=None, name="Total Allocated")
    memory_reserved: Any = msgspec.field(default=None, name="Total Reserved")


NO_ARGS = Args()
NO_DETAILS = Details()
MEMORY_EVENT = "[memory]"
"""Name of the allocator's events."""


class Complete(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """A complete event with times as JSON numbers."""

    ph: ClassVar[str] = "X"
    cat: str | None = None
    name: str = ""
    pid: int | str = ABSENT
    tid: int | str = ABSENT
    ts: float = 0
    dur: float = 0
    args: Args = NO_ARGS


class Instant(Complete, gc=False, tag="i"):
    """An instant: the allocator writes them."""

    ph: ClassVar[str] = "i"


class Skipped(msgspec.Struct, gc=False, tag_field="ph"):
    """A phase that nothing is taken from: its fields are passed over unread. Flows are a third of a GPU trace."""

    ph: ClassVar[str] = ""


class FlowStart(Skipped, gc=False, tag="s"):
    """Flows repeat what correlation ids say."""


class FlowStep(Skipped, gc=False, tag="t"):
    pass


class FlowEnd(Skipped, gc=False, tag="f"):
    pass


class Metadata(Skipped, gc=False, tag="M"):
    """Names and order of processes and threads."""


Common = Complete | Instant | FlowStart | FlowStep | FlowEnd | Metadata
"""What nearly every block consists of. A block with any other phase is decoded as `Event`."""


class Event(msgspec.Struct, gc=False):
    """An event of any phase, with times as JSON numbers."""

    ph: str
    cat: str | None = None
    name: str = ""
    pid: int | str = ABSENT
    tid: int | str = ABSENT
    ts: float = 0
    dur: float = 0
    args: Args = NO_ARGS


class DetailedEvent(Event, gc=False):
    """The same with details."""

    args: Details = NO_DETAILS


class ExactEvent(msgspec.Struct, gc=False):
    """An event with times as their text, for files whose times a double cannot hold (16 digits and a fraction)."""

    ph: str
    cat: str | None = None
    name: str = ""
    pid: int | str = ABSENT
    tid: int | str = ABSENT
    ts: msgspec.Raw = msgspec.Raw(b"0")
    dur: msgspec.Raw = msgspec.Raw(b"0")
    args: Details = NO_DETAILS


AnyEvent = Complete | Event | ExactEvent
"""An event of a phase that something is taken from."""

KIND_OF_CATEGORY = {
    "cpu_op": "cpu_op",
    "operator": "cpu_op",
    "kernel": "kernel",
    "concurrent_kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "hip_runtime": "runtime",
    "runtime": "runtime",
    "mtia_runtime": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "glow_runtime": "runtime",
    "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime",
    "cuda_sync": "sync",
    "user_annotation": "annotation",
    "gpu_user_annotation": "gpu_annotation",
    "python_function": "python",
}
"""Event kind by category in lower case. A category that is not here is ``other``: never device time by accident."""

MTIA_CATEGORY = "mtia_ccp_events"
"""MTIA writes kernels, copies and event waits in one category; the name tells them apart."""
MTIA_KIND_OF_NAME = {"dma_request": "memcpy", "event_record": "other", "event_wait": "sync"}
