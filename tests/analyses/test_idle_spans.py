"""What each moment of idleness was waiting for. Times are microseconds here; a launch is given 20 of them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Row, annotation, compute, host, kernel, launch, memcpy, op, step
from tracekit.analyses.idle_spans import ANALYSIS

US = 1_000


def us(row: Row) -> Row:
    """*row* with its times in microseconds."""
    return {**row, "start_ns": row["start_ns"] * US, "dur_ns": row["dur_ns"] * US}


def busy(start: int, end: int, *, launched: tuple[int, int], **columns: Any) -> list[Row]:
    """A kernel and the call that launched it, on thread 100."""
    correlation = columns.pop("correlation", start + 1)
    call = {name: columns.pop(name) for name in ("thread", "call") if name in columns}
    launching = launch(
        correlation,
        *launched,
        call.get("call", "cudaLaunchKernel"),
        lane=call.get("thread", 100),
        rank=columns.get("rank", 0),
    )
    return [kernel("k", start, end, correlation=correlation, **columns), launching]


def runtime(name: str, start: int, end: int, **columns: Any) -> Row:
    return host("runtime", name, start, end, **columns)


def spans(*rows: Row, view: str = "device") -> list[tuple[int, int, str, str | None]]:
    """(start, end, cause, call) of each span."""
    table = compute(ANALYSIS, *map(us, rows), view=view)
    times = table.select(
        pl.col("start_ns", "end_ns") // US, pl.col("cause").cast(pl.String), pl.col("call").cast(pl.String)
    )
    return times.rows()


FIRST = busy(0, 100, launched=(-10, -5))


def test_launch_after_the_device_ran_dry_is_host_bound() -> None:
    assert spans(*FIRST, *busy(160, 200, launched=(150, 155))) == [(100, 160, "host_bound", "cudaLaunchKernel")]


def test_work_that_was_queued_long_before_waits_for_a_dependency() -> None:
    assert spans(*FIRST, *busy(130, 200, launched=(10, 15))) == [(100, 130, "dependency", "cudaLaunchKernel")]


def test_launch_shortly_before_the_device_ran_dry_gets_the_usual_launch_time() -> None:
    assert spans(*FIRST, *busy(130, 200, launched=(95, 100))) == [
        (100, 115, "host_bound", "cudaLaunchKernel"),
        (115, 130, "dependency", "cudaLaunchKernel"),
    ]


def test_launching_call_that_takes_long_is_host_bound_until_it_returns() -> None:
    assert spans(*FIRST, *busy(145, 200, launched=(90, 140))) == [
        (100, 140, "host_bound", "cudaLaunchKernel"),
        (140, 145, "dependency", "cudaLaunchKernel"),
    ]


def test_launch_that_seems_to_come_after_its_kernel_is_host_bound() -> None:
    assert spans(*FIRST, *busy(130, 200, launched=(500, 505))) == [(100, 130, "host_bound", "cudaLaunchKernel")]


@pytest.mark.parametrize(
    "call", ["cudaStreamSynchronize", "hipDeviceSynchronize", "cudaMemcpy", "hipMemcpyWithStream", "synchronizeStream"]
)
def test_blocking_call_is_charged_while_it_lasts_and_for_the_queue_that_it_drained(call: str) -> None:
    rows = [*FIRST, runtime(call, 20, 105), *busy(140, 200, launched=(130, 135))]

    assert spans(*rows) == [
        (100, 105, "sync", call),
        (105, 130, "sync", call),
        (130, 140, "host_bound", "cudaLaunchKernel"),
    ]
    assert compute(ANALYSIS, *map(us, rows))["returned"].to_list() == [False, True, False]


def test_call_that_blocked_shortly_explains_only_as_much_lateness() -> None:
    assert spans(*FIRST, runtime("cudaStreamSynchronize", 94, 105), *busy(170, 200, launched=(160, 165))) == [
        (100, 105, "sync", "cudaStreamSynchronize"),
        (105, 111, "sync", "cudaStreamSynchronize"),
        (111, 170, "host_bound", "cudaLaunchKernel"),
    ]


def test_call_on_a_dry_device_is_charged_for_its_own_length_alone() -> None:
    assert spans(*FIRST, runtime("cudaStreamSynchronize", 120, 122), *busy(150, 200, launched=(145, 150))) == [
        (100, 120, "host_bound", "cudaLaunchKernel"),
        (120, 122, "sync", "cudaStreamSynchronize"),
        (122, 150, "host_bound", "cudaLaunchKernel"),
    ]


def test_calls_of_other_threads_and_calls_that_do_not_block_are_not_charged() -> None:
    others = (
        runtime("cudaStreamSynchronize", 20, 105, lane=101),
        runtime("cudaEventQuery", 100, 105),
        runtime("cudaMemcpyAsync", 105, 110),
    )

    assert spans(*FIRST, *others, *busy(140, 200, launched=(130, 135))) == [
        (100, 140, "host_bound", "cudaLaunchKernel")
    ]


def test_copy_to_the_host_blocks_when_its_call_returns_after_it() -> None:
    copy = memcpy("Memcpy DtoH (Device -> Pageable)", 100, 110, correlation=5)

    assert spans(*FIRST, copy, launch(5, 20, 112, "cudaMemcpyAsync"), *busy(140, 200, launched=(130, 135)))[:2] == [
        (110, 112, "sync", "cudaMemcpyAsync"),
        (112, 130, "sync", "cudaMemcpyAsync"),
    ]


def test_copy_to_the_device_does_not_block() -> None:
    copy = memcpy("Memcpy HtoD (Pageable -> Device)", 100, 110, correlation=5)

    causes = {
        cause
        for _, _, cause, _ in spans(
            *FIRST, copy, launch(5, 20, 112, "cudaMemcpyAsync"), *busy(140, 200, launched=(130, 135))
        )
    }
    assert causes == {"host_bound"}


@pytest.mark.parametrize(
    "call", ["cudaMalloc", "cudaFree", "cudaHostAlloc", "cuMemCreate", "cuMemMap", "hipMalloc", "hipExtMallocWithFlags"]
)
def test_allocation_calls_are_charged(call: str) -> None:
    assert spans(*FIRST, runtime(call, 105, 125), *busy(140, 200, launched=(130, 135))) == [
        (100, 105, "host_bound", "cudaLaunchKernel"),
        (105, 125, "allocation", call),
        (125, 140, "host_bound", "cudaLaunchKernel"),
    ]


FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("kind", "name"),
    [("annotation", FETCH), ("cpu_op", FETCH), ("python", "torch/utils/data/dataloader.py(630): __next__")],
)
def test_fetching_a_batch_is_charged_while_it_lasts(kind: str, name: str) -> None:
    assert spans(*FIRST, host(kind, name, 50, 125), *busy(140, 200, launched=(130, 135))) == [
        (100, 125, "data", name),
        (125, 140, "host_bound", "cudaLaunchKernel"),
    ]


def test_one_fetch_is_charged_in_every_gap_that_it_lasts_through() -> None:
    rows = [
        *FIRST,
        annotation(FETCH, 50, 300),
        *busy(140, 200, launched=(130, 135)),
        *busy(340, 400, launched=(330, 335)),
    ]

    assert [span[:3] for span in spans(*rows) if span[2] == "data"] == [(100, 130, "data"), (200, 300, "data")]


def test_blocking_goes_before_fetching_and_fetching_before_a_drained_queue() -> None:
    rows = [
        *FIRST,
        runtime("cudaStreamSynchronize", 10, 105),
        annotation(FETCH, 90, 120),
        *busy(140, 200, launched=(130, 135)),
    ]

    assert [span[:3] for span in spans(*rows)] == [
        (100, 105, "sync"),
        (105, 120, "data"),
        (120, 130, "sync"),
        (130, 140, "host_bound"),
    ]


def test_gap_before_an_event_without_launch_record_is_other() -> None:
    assert spans(*FIRST, kernel("k", 150, 200)) == [(100, 150, "other", None)]


def test_pauses_of_a_replayed_graph_are_dependencies() -> None:
    replay = [
        kernel("g", 0, 10, correlation=3),
        kernel("g", 12, 20, correlation=3),
        launch(3, -60, -20, "cudaGraphLaunch"),
    ]

    assert spans(*replay) == [(10, 12, "dependency", "cudaGraphLaunch")]


def test_of_events_that_end_a_gap_together_the_one_launched_first_counts() -> None:
    rows = [
        *busy(150, 200, launched=(130, 135), correlation=1),
        *busy(150, 160, launched=(10, 15), correlation=2, lane=9),
    ]

    assert spans(*FIRST, *rows) == [(100, 150, "dependency", "cudaLaunchKernel")]


def test_ranks_are_kept_apart() -> None:
    other = [*busy(0, 100, launched=(-10, -5), rank=1), *busy(130, 200, launched=(10, 15), rank=1)]

    table = compute(ANALYSIS, *map(us, [*FIRST, *busy(160, 200, launched=(150, 155)), *other]))

    assert table.select("rank", pl.col("cause").cast(pl.String)).rows() == [(0, "host_bound"), (1, "dependency")]


def test_spans_name_the_operator_the_kernel_and_the_step() -> None:
    late = busy(160, 200, launched=(150, 155), external_id=7, step=3)
    sync = runtime("cudaStreamSynchronize", 20, 120, external_id=9)

    table = compute(
        ANALYSIS,
        *map(
            us, [*FIRST, *late, sync, op("aten::mm", 140, 158, external_id=7), op("aten::item", 10, 121, external_id=9)]
        ),
    )

    named = table.select(pl.col("operator", "kernel", "cause").cast(pl.String), "step", "gap").rows()
    assert named[0] == ("aten::item", "k", "sync", 3, 0)
    assert named[-1] == ("aten::mm", "k", "host_bound", 3, 0)


def test_gaps_of_a_run_on_cpus_are_data_or_other() -> None:
    rows = [op("aten::mm", 0, 100), annotation(FETCH, 110, 130), op("aten::mm", 150, 200)]

    assert [span[:3] for span in spans(*rows, view="host")] == [
        (100, 110, "other"),
        (110, 130, "data"),
        (130, 150, "other"),
    ]


def test_step_that_ends_after_the_device_has_finished_waits_for_the_host() -> None:
    """The host reads the loss until 180 and logs until 250, after the last kernel: idle time of the step, not of the window."""
    rows = [step(0, -20, 250), *FIRST, runtime("cudaStreamSynchronize", 50, 180)]
    table = compute(ANALYSIS, *map(us, rows))
    columns = ("start_ns", "end_ns", "cause", "call", "window_ns", "step_ns")
    assert [tuple(v // US if isinstance(v, int) else v for v in row) for row in table.select(columns).rows()] == [
        (-20, 0, "host_bound", "cudaLaunchKernel", 0, 20),
        (100, 180, "sync", "cudaStreamSynchronize", 0, 80),
        (180, 230, "sync", "cudaStreamSynchronize", 0, 50),
        (230, 250, "host_bound", None, 0, 20),
    ]


def test_idle_time_between_the_steps_is_in_the_window_alone() -> None:
    rows = [
        step(0, -20, 100), *busy(0, 100, launched=(-10, -5), step=0),
        step(5, 300, 400), *busy(320, 400, launched=(310, 315), step=5),
    ]  # fmt: skip
    table = compute(ANALYSIS, *map(us, rows))
    assert [
        (w // US, s // US) for w, s in table.filter(pl.col("window_ns") > 0).select("window_ns", "step_ns").rows()
    ] == [(220, 20)]


def test_device_without_idle_time_has_no_spans() -> None:
    assert spans(*FIRST) == []


EVENT = st.tuples(
    st.sampled_from(["kernel", "graph", "orphan", "cudaStreamSynchronize", "cudaMalloc", "fetch"]),
    st.integers(0, 1),
    st.integers(0, 300),
    st.integers(1, 40),
    st.integers(0, 60),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=14))
def test_spans_cover_the_idle_time_exactly(events: list[tuple[str, int, int, int, int]]) -> None:
    rows: list[Row] = [kernel("k", 0, 1)]
    for number, (what, rank, start, length, ahead) in enumerate(events):
        if what == "orphan":
            rows.append(kernel("k", start, start + length, rank=rank))
        elif what in {"kernel", "graph"}:
            called = (start - ahead, start - ahead + 30)
            name = "cudaGraphLaunch" if what == "graph" else "cudaLaunchKernel"
            rows += busy(start, start + length, launched=called, correlation=number, rank=rank, call=name)
        else:
            rows.append(
                host(
                    "annotation" if what == "fetch" else "runtime",
                    FETCH if what == "fetch" else what,
                    start,
                    start + length,
                    rank=rank,
                )
            )

    table = compute(ANALYSIS, *map(us, rows))

    for rank in (0, 1):
        covered = [
            tick
            for start, end in table.filter(rank=rank).select(pl.col("start_ns", "end_ns") // US).rows()
            for tick in range(start, end)
        ]
        on_device = [row for row in rows if row["rank"] == rank and row["kind"] == "kernel"]
        running = {tick for row in on_device for tick in range(row["start_ns"], row["start_ns"] + row["dur_ns"])}
        window = range(min(running), max(running) + 1) if running else range(0)
        assert covered == [tick for tick in window if tick not in running]
