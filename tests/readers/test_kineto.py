"""The Kineto reader: dialects, exact times, damage that costs one event, who and which step."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.kineto_text import event, kernel, launch, step, text, write
from tracekit.model.errors import UnreadableError
from tracekit.readers import dispatch, kineto, source
from tracekit.readers.kineto import times
from tracekit.readers.recording import Recording


def read(path: Path, content: str | bytes) -> Recording:
    """The only recording of a file with *content*."""
    (recording,) = dispatch.read(write(path, content))
    return recording


def rows(recording: Recording, *columns: str) -> list[tuple[object, ...]]:
    return recording.tables["events"].select(columns).rows()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


def test_the_columns_of_an_event(file: Path) -> None:
    copy = {"device": 1, "stream": 20, "correlation": 9, "External id": 4, "bytes": 1024}
    recording = read(file, text(event("Memcpy HtoD", 10.5, 1.25, cat="gpu_memcpy", pid=1, tid=20, args=copy)))
    assert recording.tables["events"].to_dicts() == [
        {
            "process": 1,
            "device": 1,
            "lane": 20,
            "kind": "memcpy",
            "name": "Memcpy HtoD",
            "class": "memcpy",
            "start_ns": 10_500,
            "dur_ns": 1_250,
            "correlation": 9,
            "external_id": 4,
            "step": None,
            "bytes": 1024,
            "occupancy_ratio": None,
            "sequence": None,
        }
    ]


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("kernel", "kernel"),
        ("Kernel", "kernel"),
        ("gpu_memcpy", "memcpy"),
        ("Memcpy", "memcpy"),
        ("Memset", "memset"),
        ("gpu_memset", "memset"),
        ("Runtime", "runtime"),
        ("cuda_runtime", "runtime"),
        ("cuda_driver", "runtime"),
        ("mtia_runtime", "runtime"),
        ("cuda_sync", "sync"),
        ("Operator", "cpu_op"),
        ("cpu_op", "cpu_op"),
        ("user_annotation", "annotation"),
        ("gpu_user_annotation", "gpu_annotation"),
        ("python_function", "python"),
        ("a category of next year", "other"),
    ],
)
def test_kinds_in_every_spelling(file: Path, category: str, kind: str) -> None:
    assert rows(read(file, text(event(cat=category))), "kind") == [(kind,)]


def test_mtia_tells_kernels_copies_and_waits_apart_by_name(file: Path) -> None:
    names = ("pe_exe", "dma_request", "event_wait", "event_record")
    recording = read(file, text(*(event(name, cat="mtia_ccp_events", args={"stream": 108}) for name in names)))
    assert rows(recording, "name", "kind") == [
        ("pe_exe", "kernel"),
        ("dma_request", "memcpy"),
        ("event_wait", "sync"),
        ("event_record", "other"),
    ]


@pytest.mark.parametrize(
    ("ts", "start_ns"),
    [
        (1694128201435418, 1694128201435418000),  # integer microseconds
        (4458676522690.655, 4458676522690655),  # relative, nanosecond resolution
        ("1050.125", 1050125),  # a string
        ("1727000000000000.123", 1727000000000000123),  # a string that no double holds
        (0.0004, 0),  # below a nanosecond
    ],
)
def test_times_are_exact(file: Path, ts: float | str, start_ns: int) -> None:
    assert rows(read(file, text(event(ts=ts))), "start_ns") == [(start_ns,)]


def test_absolute_times_with_a_fraction_are_taken_from_their_text(file: Path) -> None:
    content = text(event(ts=0)).replace('"ts": 0', '"ts": 1712195495519689.047')
    assert rows(read(file, content), "start_ns") == [(1712195495519689047,)]


@given(st.integers(0, 8_796_093_022_207_999))
def test_doubles_below_the_limit_lose_nothing(nanoseconds: int) -> None:
    """Every nanosecond below 2**43 microseconds survives being written as a decimal and read as a double."""
    decimal = Decimal(nanoseconds) / 1000
    assert times.from_numbers([float(decimal)]).tolist() == [nanoseconds]


def test_the_base_time_is_added(file: Path) -> None:
    recording = read(file, text(event(ts=1), trailer={"baseTimeNanoseconds": 1_727_000_000_000_000_000}))
    assert recording.info.start_ns == 1_727_000_000_000_001_000


def test_begin_and_end_pairs_nest_per_thread(file: Path) -> None:
    def mark(phase: str, ts: float, name: str = "", tid: int = 1) -> dict[str, Any]:
        return {"ph": phase, "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts}

    marks = [
        mark("B", 0, "outer"),
        mark("B", 1, "inner"),
        mark("B", 1, "other", 2),
        mark("E", 3),
        mark("E", 9),
        mark("E", 9, tid=2),
    ]
    recording = read(file, text(*marks, mark("E", 10)))
    assert sorted(rows(recording, "name", "start_ns", "dur_ns")) == [
        ("inner", 1000, 2000),
        ("other", 1000, 8000),
        ("outer", 0, 9000),
    ]
    assert (recording.info.complete_events, recording.info.events_dropped) == (3, 1)


def test_array_form_and_byte_order_mark(file: Path) -> None:
    content = b"\xef\xbb\xbf" + json.dumps([event("a"), event("b")]).encode()
    assert rows(read(file, content), "name") == [("a",), ("b",)]


def test_gzip_members_are_one_text_and_the_name_does_not_matter(file: Path) -> None:
    content = text(event("a"), event("b")).encode()
    half = len(content) // 2
    assert rows(read(file, gzip.compress(content[:half]) + gzip.compress(content[half:]) + b"\0" * 512), "name") == [
        ("a",),
        ("b",),
    ]


@pytest.mark.parametrize("chunk", [64, 257, 4096])
def test_blocks_may_be_cut_anywhere(file: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the chunk size, and with keys of any size around the list, no event is lost or doubled."""
    monkeypatch.setattr(source, "CHUNK", chunk)
    noise = {"environment": "x" * 10_000 + '"traceEvents": [{"ph"', "nested": [{"ph": "X"}, {"ph": "X"}]}
    mixed: list[dict[str, Any]] = [{"ph": "M", "name": "process_name"}, {"name": "end", "ph": "i", "ts": 1}]
    events = [event(f"op {i}", i, args={"list": [{"name": 1}, {"name": "},{"}], "External id": i}) for i in range(50)]
    random.Random(1).shuffle(events)
    recording = read(file, text(*events, *mixed, header=noise, trailer=noise))
    assert sorted(rows(recording, "external_id")) == [(i,) for i in range(50)]
    assert (recording.info.events_read, recording.info.events_dropped, recording.info.events_repaired) == (52, 0, 0)


def test_metadata_that_is_no_json_is_read_around(file: Path) -> None:
    content = text(event(), trailer={"baseTimeNanoseconds": 5000}).replace(
        '"schemaVersion": 1', '"INFO": "a "log" line'
    )
    recording = read(file, content)
    assert (recording.info.rank, recording.info.world_size, recording.info.base_ns) == (0, 2, 5000)


def test_no_secret_of_the_metadata_is_kept(file: Path) -> None:
    recording = read(file, text(event(), header={"environment": {"TOKEN": "hunter2"}, "host_name": "node17"}))
    assert "hunter2" not in repr(recording)
    assert "node17" not in repr(recording)


class TestDamage:
    """One bad event costs one event, and the record says so."""

    @pytest.mark.parametrize(
        ("name", "bad", "kept"),
        [
            ("aten::mm", "aten\x01::mm", "aten ::mm"),
            ("aten::mm", "aten::\udcff\udcfe", "aten::��"),
            ("aten::mm", '{"device": "cpu"}(12): run', '{"device": "cpu"}(12): run'),
            ("aten::mm", 'odd " quote', 'odd " quote'),
        ],
    )
    def test_a_name_that_breaks_the_json_is_repaired(self, file: Path, name: str, bad: str, kept: str) -> None:
        good = [event(f"good {i}") for i in range(3)]
        content = text(*good, event(name), *good).replace(name, bad).encode("utf-8", "surrogateescape")
        recording = read(file, content)
        assert rows(recording, "name")[3] == (kept,)
        assert (recording.info.complete_events, recording.info.events_repaired, recording.info.events_dropped) == (
            7,
            1,
            0,
        )
        assert (
            f"at byte {content.index(bad[:5].encode('utf-8', 'surrogateescape')[:4]) - 39:,}"[:8]
            in recording.info.notes[0]
        )

    def test_a_field_of_an_impossible_type_costs_the_field(self, file: Path) -> None:
        recording = read(file, text(event("a", args={"External id": {}, "correlation": 5}), event(["b"]), event("c")))  # type: ignore[arg-type]
        assert rows(recording, "name", "correlation") == [("a", 5), ("['b']", None), ("c", None)]

    def test_a_device_of_any_number_or_name_is_a_device(self, file: Path) -> None:
        events = [
            kernel(device=70_000),
            event("k", cat="kernel", pid="GPU 3", tid=7),
            event("k", cat="kernel", pid=2, tid="s"),
        ]
        recordings = kineto.read(write(file, text(*events)))
        assert [(r.info.rank, rows(r, "device")) for r in recordings] == [
            (0, [(0,)]),
            (2, [(2,)]),
            (70_000, [(70_000,)]),
        ]

    def test_times_beyond_all_numbers_are_left_out(self, file: Path) -> None:
        recording = read(file, text(event("a"), event("b")).replace('"ts": 1.0', '"ts": 1e999', 1))
        assert rows(recording, "name") == [("b",)]

    def test_negative_and_impossible_durations_are_left_out(self, file: Path) -> None:
        recording = read(file, text(kernel(dur=-7), kernel("ok"), kernel(dur=1e300), kernel(ts=1e25)))
        assert rows(recording, "name") == [("ok",)]
        assert recording.info.events_dropped == 3

    def test_a_list_element_that_is_no_event_is_dropped(self, file: Path) -> None:
        recording = read(file, text(event("a"), event("b")).replace("[\n", "[\n  null, 7,"))
        assert rows(recording, "name") == [("a",), ("b",)] or recording.info.events_dropped >= 1

    def test_a_truncated_file_keeps_its_whole_events(self, file: Path) -> None:
        whole = text(
            step(0, 0, 10),
            launch(1, 1),
            kernel(ts=2, correlation=1),
            step(1, 10, 10),
            launch(2, 11),
            kernel(ts=12, correlation=2),
        )
        recording = read(file, whole[: whole.rindex('"stream"')])
        assert recording.info.status == "truncated"
        assert recording.info.complete_events == 5
        assert recording.tables["steps"].select("step", "complete").rows() == [(0, True), (1, False)]

    def test_a_file_cut_inside_its_first_event_is_an_empty_rank_that_says_so(self, file: Path) -> None:
        recording = read(file, text(event())[:140])
        assert (recording.info.status, recording.info.reason) == ("empty", "the file ends inside its event list")

    def test_truncated_and_corrupt_gzip(self, file: Path) -> None:
        content = gzip.compress(
            text(*(event(str(i), args={"x": random.Random(i).random()}) for i in range(5000))).encode()
        )
        for damaged in (
            content[: len(content) // 2],
            content[: len(content) // 2] + b"\xff" * 64 + content[len(content) // 2 + 64 :],
        ):
            recording = read(file, damaged)
            assert recording.info.status == "truncated"
            assert "gzip" in recording.info.reason
            assert 0 < recording.info.complete_events < 5000

    def test_a_duration_that_overflows_is_clipped_at_its_successor(self, file: Path) -> None:
        normal = [kernel("gemm", ts, 4) for ts in (10, 20, 30)]
        recording = read(file, text(kernel("gemm", 0, 1_600_000), *normal))
        assert rows(recording, "dur_ns") == [(10_000,), (4000,), (4000,), (4000,)]
        assert (recording.info.events_repaired, recording.info.device_ns_touched) == (1, 10_000)

    def test_overlap_on_one_stream_alone_is_no_damage(self, file: Path) -> None:
        """AMD's stream 0 may hold several hardware queues: a long kernel beside short ones is real."""
        recording = read(file, text(kernel("long", 0, 500), *(kernel("short", ts, 1) for ts in range(1, 400, 10))))
        assert recording.info.events_repaired == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello", "not JSON text"),
        (b'{"nodes": []}', "no traceEvents"),
        (b"SQLite format 3\0rest", "SQLite"),
        (b"\x80\x04rest", "pickle"),
        (b"\x1f\x8b\x08broken", "gzip"),
    ],
)
def test_what_is_no_trace_is_said_to_be(file: Path, content: bytes, says: str) -> None:
    with pytest.raises(UnreadableError, match=says):
        dispatch.read(write(file, content))


@pytest.mark.parametrize("content", [b"", text().encode(), text({"ph": "M", "name": "process_name"}).encode()])
def test_an_empty_file_is_an_empty_rank_with_a_reason(file: Path, content: bytes) -> None:
    recording = read(file, content)
    assert recording.info.status == "empty"
    assert recording.info.reason


class TestSteps:
    def test_a_kernel_belongs_to_the_step_that_launched_it(self, file: Path) -> None:
        late = kernel("late", 15, 2, correlation=1)
        recording = read(file, text(step(7, 0, 10), step(8, 10, 10), launch(1, 9), late, kernel("unlinked", 16, 1)))
        assert rows(recording, "name", "step")[2:] == [("cudaLaunchKernel", 7), ("late", 7), ("unlinked", 8)]

    def test_inferred_from_the_optimizer_ranges(self, file: Path) -> None:
        ranges = [event("Optimizer.step#SGD.step", ts, 1, cat="user_annotation") for ts in (9, 19, 29)]
        steps = read(file, text(*ranges)).tables["steps"]
        assert steps.select("step", "start_ns", "dur_ns", "source").rows() == [
            (0, 10_000, 10_000, "inferred"),
            (1, 20_000, 10_000, "inferred"),
        ]

    def test_inferred_from_the_period_of_the_kernels(self, file: Path) -> None:
        kernels = [
            kernel(name, 10 * i + at, 1)
            for i in range(4)
            for at, name in ((0, "gemm"), (2, "gemm"), (5, "adam_kernel"))
        ]
        steps = read(file, text(*kernels)).tables["steps"]
        assert steps["start_ns"].to_list() == [0, 10_000, 20_000, 30_000]

    def test_layers_that_repeat_are_no_steps(self, file: Path) -> None:
        kernels = [kernel(name, 10 * i + at, 1) for i in range(8) for at, name in ((0, "gemm"), (5, "softmax"))]
        assert read(file, text(*kernels)).tables["steps"].is_empty()


class TestRecordingsOfOneFile:
    def test_two_processes_with_colliding_correlations_are_two_ranks(self, file: Path) -> None:
        def process(pid: int, device: int) -> list[dict[str, Any]]:
            call = launch(1, 1) | {"pid": pid}
            return [event("op", pid=pid), call, kernel("gemm", 2, 3, device=device, correlation=1)]

        recordings = kineto.read(write(file, text(*process(100, 0), *process(200, 1))))
        assert [(r.info.process, r.info.rank, r.info.rank_source, r.info.complete_events) for r in recordings] == [
            (100, 0, "device", 3),
            (200, 1, "device", 3),
        ]

    def test_each_device_of_one_process_is_a_rank(self, file: Path) -> None:
        recordings = kineto.read(write(file, text(launch(1, 0), kernel(device=0), kernel(device=3))))
        assert [(r.info.rank, r.tables["events"].filter(pl.col("device") >= 0).height) for r in recordings] == [
            (0, 1),
            (3, 1),
        ]


class TestCollectives:
    METADATA: ClassVar = {
        "Collective name": "allreduce",
        "In msg nelems": 1024,
        "Out msg nelems": 1024,
        "Group size": 2,
        "dtype": "BFloat16",
        "Process Group Name": "3",
        "Process Group Ranks": "[0, 1]",
        "Seq": 5,
    }

    def test_metadata_decides_before_the_name(self, file: Path) -> None:
        recording = read(file, text(kernel("some_kernel_of_tomorrow", **self.METADATA)))
        (row,) = recording.tables["collectives"].to_dicts()
        assert rows(recording, "class") == [("communication",)]
        assert (row["op"], row["op_source"], row["group"], row["seq"]) == ("all_reduce", "metadata", "3", 5)
        assert (row["in_bytes"], row["out_bytes"], row["group_size"], row["dtype"]) == (2048, 2048, 2, "BFloat16")

    def test_a_kernel_without_metadata_takes_its_operators(self, file: Path) -> None:
        operator = event("record_param_comms", args={"External id": 8, **self.METADATA})
        recording = read(file, text(operator, kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", **{"External id": 8})))
        assert recording.tables["collectives"].select("op", "group", "op_source").rows() == [
            ("all_reduce", "3", "metadata")
        ]

    def test_the_rank_follows_from_the_groups_when_nothing_else_says_it(self, file: Path) -> None:
        groups = [{**self.METADATA, "Process Group Ranks": ranks} for ranks in ("[2, 3]", "[0, 2]")]
        recording = read(file, text(*(kernel("nccl", ts=i, **g) for i, g in enumerate(groups)), header={}))
        assert (recording.info.rank, recording.info.rank_source) == (2, "process group")


def test_memory_events(file: Path) -> None:
    args = {"Total Allocated": 4096, "Bytes": 512, "Device Type": 1, "Device Id": 0, "Total Reserved": 8192}
    recording = read(
        file, text(event(), {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 3, "args": args})
    )
    assert recording.tables["memory"].rows() == [(0, 3000, 512, 4096, 8192)]
