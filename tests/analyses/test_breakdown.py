"""Where each rank's time goes: the definitions."""

from __future__ import annotations

from tests.builders import collective, compute, kernel, memcpy, op, rank, run, with_tables
from tracekit.analyses.breakdown import ANALYSIS


def test_the_parts_of_a_window() -> None:
    """gemm 0-60, an all-reduce 40-100 of which 20 are covered, a copy 90-110 of which 10 are alone, nothing 110-120, a kernel."""
    (row,) = compute(
        ANALYSIS,
        kernel("gemm", 0, 60),
        kernel("nccl", 40, 100, cls="communication", lane=20),
        memcpy(start=90, end=110),
        kernel("gemm", 120, 150, occupancy_ratio=0.5),
    ).to_dicts()
    assert row == {
        "rank": 0,
        "window": 0,
        "device_events": 4,
        "compute_kernels": 2,
        "comm_kernels": 1,
        "memory_ops": 1,
        "window_ns": 150,
        "busy_ns": 140,
        "idle_ns": 10,
        "compute_ns": 90,
        "comm_ns": 60,
        "memory_ns": 20,
        "overlapped_comm_ns": 20,
        "exposed_comm_ns": 40,
        "exposed_memory_ns": 10,
        "utilization_ratio": 140 / 150,
        "compute_utilization_ratio": 90 / 150,
        "overlap_ratio": 20 / 60,
        "comm_to_compute_ratio": 60 / 90,
        "sm_utilization_ratio": 15 / 150,
    }
    assert row["compute_ns"] + row["exposed_comm_ns"] + row["exposed_memory_ns"] + row["idle_ns"] == row["window_ns"]


def test_no_communication_is_no_ratio() -> None:
    table = compute(ANALYSIS, kernel("gemm", 0, 60))
    assert table.select("comm_ns", "overlap_ratio", "comm_to_compute_ratio", "sm_utilization_ratio").rows() == [
        (0, None, 0.0, None)
    ]


def test_two_kernels_at_once_are_one_time() -> None:
    table = compute(
        ANALYSIS, kernel("a", 0, 60, lane=7), kernel("b", 0, 60, lane=8), kernel("nccl", 0, 60, cls="communication")
    )
    assert table.select("compute_ns", "overlapped_comm_ns", "overlap_ratio").rows() == [(60, 60, 1.0)]


def test_each_recording_is_measured_by_itself() -> None:
    table = compute(
        ANALYSIS, kernel(start=0, end=10), kernel(start=100, end=130, window=1), kernel(start=5, end=10, rank=1)
    )
    assert table.select("rank", "window", "window_ns").rows() == [(0, 0, 10), (0, 1, 30), (1, 0, 5)]


def test_without_an_accelerator_operators_and_backend_ranges_stand_for_the_device() -> None:
    """The window is the host's; an operator counts where it is the innermost, one that hands over communication not at all."""
    table = compute(
        ANALYSIS,
        op("aten::linear", 0, 50),
        op("aten::addmm", 10, 40),
        op("c10d::allreduce_", 60, 70),
        collective("all_reduce", 30, 90, device=-1, lane=200, name="gloo:all_reduce"),
        op("aten::add", 95, 100),
        view="host",
    )
    names = ("device_events", "window_ns", "compute_ns", "comm_ns", "overlapped_comm_ns", "idle_ns")
    assert table.select(names).rows() == [(0, 100, 55, 60, 20, 5)]


def test_a_rank_that_was_not_read_has_no_row() -> None:
    tables = with_tables(run(kernel(), rank(0), rank(1, status="failed", reason="cut")))
    assert ANALYSIS.compute(tables).collect()["rank"].to_list() == [0]
