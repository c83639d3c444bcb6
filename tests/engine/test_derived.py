"""Derived tables: device time, its segments, the launches behind it."""

from __future__ import annotations

import polars as pl

from tests.builders import annotation, collective, kernel, launch, memcpy, op, run, with_tables


def test_device_time_is_kernels_copies_and_sets_and_nothing_else() -> None:
    tables = with_tables(
        run(
            kernel("gemm", 0, 10),
            kernel("nccl", 5, 15, cls="communication"),
            memcpy("Memset (Device)", 20, 25),
            op("aten::mm", 0, 5, lane=0),
            annotation("step", 0, 100),
        )
    )
    rows = tables["device"].select("name", "set", "start_ns", "end_ns", "calls").collect().rows()
    assert rows == [
        ("gemm", "compute", 0, 10, 1),
        ("nccl", "communication", 5, 15, 1),
        ("Memset (Device)", "memory", 20, 25, 1),
    ]


def test_segments_cover_the_window_without_holes() -> None:
    tables = with_tables(run(kernel("a", 0, 10), kernel("nccl", 5, 15, cls="communication"), kernel("b", 20, 30)))
    assert tables["segments"].select("start_ns", "end_ns", "compute", "communication").collect().rows() == [
        (0, 5, True, False),
        (5, 10, True, True),
        (10, 15, False, True),
        (15, 20, False, False),
        (20, 30, True, False),
    ]


def test_on_cpus_an_operator_counts_where_it_is_the_innermost() -> None:
    """aten::mm keeps what its children leave, and counts once; what only issues communication, or dispatches, does not."""
    tables = with_tables(
        run(
            op("autograd::engine::evaluate_function: MmBackward0", 0, 50),
            op("aten::mm", 10, 40),
            op("aten::resolve_conj", 20, 22),
            op("c10d::allreduce_", 42, 45),
            collective("all_reduce", 30, 90, device=-1, lane=9),
            view="host",
        )
    )
    rows = tables["device"].select("name", "set", "start_ns", "end_ns", "calls").collect().rows()
    assert rows == [
        ("aten::mm", "compute", 10, 20, 1),
        ("aten::resolve_conj", "compute", 20, 22, 1),
        ("aten::mm", "compute", 22, 40, 0),
        ("nccl_all_reduce", "communication", 30, 90, 1),
    ]


def test_launches_are_found_by_correlation_within_a_recording() -> None:
    tables = with_tables(
        run(
            kernel("k", 10, 20, correlation=1),
            launch(1, 0, 5, external_id=7),
            kernel("other rank", 30, 40, correlation=1, rank=1),
            kernel("orphan", 50, 60),
        )
    )
    names = ("name", "launch_start_ns", "external_id", "linked")
    assert tables["launches"].select(names).collect().rows() == [
        ("k", 0, 7, True),
        ("orphan", None, None, False),
        ("other rank", None, None, False),
    ]


def test_kernels_of_one_graph_share_its_launch() -> None:
    graph = [kernel("a", 10, 20, correlation=3), kernel("b", 20, 30, correlation=3)]
    tables = with_tables(run(*graph, launch(3, 0, 5, "cudaGraphLaunch")))
    assert tables["launches"].select(pl.col("graph").sum(), pl.col("linked").sum()).collect().rows() == [(2, 2)]
