"""Device time by operator."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Row, compute, kernel, launch, op
from tracekit.analyses.operators import ANALYSIS

Line = tuple[str | None, int, int, int, int]


def launched(number: int, start: int, end: int, at: int = 0, **columns: Any) -> list[Row]:
    """A kernel and its launch on thread 100."""
    ids = {"correlation": number, **columns}
    return [kernel("k", start, end, **ids), launch(number, at, at + 2, **columns)]


def lines(*rows: Row, view: str = "device") -> list[Line]:
    """(operator, calls, kernels, device time, host time) of each row."""
    table = compute(ANALYSIS, *rows, view=view)
    return table.select("operator", "calls", "kernels", "device_ns", "host_ns").rows()


def test_kernels_belong_to_the_operator_with_their_external_id() -> None:
    rows = [
        *launched(1, 100, 160, external_id=7),
        *launched(2, 160, 170, external_id=7),
        *launched(3, 170, 175, external_id=8),
        *launched(4, 175, 185, external_id=9),
        op("aten::mm", 0, 30, external_id=7),
        op("aten::add", 30, 35, external_id=8),
        op("aten::mm", 35, 40, external_id=9),
        op("aten::view", 40, 41, external_id=10),
    ]

    assert lines(*rows) == [("aten::mm", 2, 3, 80, 35), ("aten::add", 1, 1, 5, 5)]
    assert compute(ANALYSIS, *rows)["device_ratio"].to_list() == [80 / 85, 5 / 85]


def test_id_of_the_launch_serves_when_the_kernel_has_none() -> None:
    rows = [kernel("k", 100, 160, correlation=1), launch(1, 5, 10, external_id=7), op("aten::mm", 0, 30, external_id=7)]

    assert lines(*rows) == [("aten::mm", 1, 1, 60, 30)]


def test_ids_that_lead_nowhere_give_way_to_the_innermost_operator_on_the_thread() -> None:
    rows = [
        *launched(901, 100, 160, at=12, external_id=901),
        *launched(902, 160, 170, at=16, external_id=902),
        *launched(903, 170, 175, at=25, external_id=903),
        op("aten::linear", 0, 30, external_id=1),
        op("aten::addmm", 10, 20, external_id=2),
    ]

    assert lines(*rows) == [("aten::addmm", 1, 2, 70, 10), ("aten::linear", 1, 1, 5, 30)]


def test_replayed_kernels_belong_to_the_graph_launch() -> None:
    replayed = [kernel("k", start, start + 10, correlation=1) for start in (100, 110, 120)]
    again = [kernel("k", 200, 210, correlation=2)]
    calls = [launch(1, 0, 40, "cudaGraphLaunch", external_id=7), launch(2, 60, 70, "cudaGraphLaunch")]

    table = compute(ANALYSIS, *replayed, *again, *calls, op("aten::mm", 0, 50, external_id=7))

    assert table.select("operator", "graph", "calls", "kernels", "device_ns", "host_ns").rows() == [
        ("cudaGraphLaunch", True, 2, 4, 40, 50)
    ]


def test_kernels_without_operator_stay_in_a_row_without_name() -> None:
    rows = [kernel("orphan", 0, 30), *launched(1, 100, 160, external_id=7), op("aten::mm", 0, 9, external_id=7)]

    assert lines(*rows) == [("aten::mm", 1, 1, 60, 9), (None, 0, 1, 30, 0)]


def test_one_id_in_two_ranks_is_two_operators() -> None:
    rows = [row | {"rank": rank} for rank in (0, 1) for row in launched(1, 100, 160, external_id=7)]
    operators = [op("aten::mm", 0, 9, external_id=7), op("aten::add", 0, 9, external_id=7, rank=1)]

    table = compute(ANALYSIS, *rows, *operators)

    assert table.select("rank", "operator", "device_ratio").rows() == [(0, "aten::mm", 1.0), (1, "aten::add", 1.0)]


def test_run_on_cpus_spends_its_time_in_the_innermost_operators() -> None:
    rows = [op("aten::linear", 0, 30), op("aten::addmm", 5, 25), op("aten::add", 30, 34)]

    assert lines(*rows, view="host") == [
        ("aten::addmm", 1, 1, 20, 20),
        ("aten::linear", 1, 1, 10, 10),
        ("aten::add", 1, 1, 4, 4),
    ]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([7, 8, 901, None]), st.booleans(), st.integers(1, 50)),
        min_size=1,
        max_size=12,
    )
)
def test_operators_add_up_to_all_device_time(events: list[tuple[int, int | None, bool, int]]) -> None:
    operators = [
        op("aten::mm", 0, 30, external_id=7),
        op("aten::mm", 0, 30, external_id=7),
        op("aten::add", 30, 60, external_id=8),
    ]
    rows: list[Row] = []
    for number, (rank, external, graph, length) in enumerate(events):
        ids: Row = {"correlation": number, "external_id": external, "rank": rank}
        rows += [
            kernel("k", 0, length, **ids),
            launch(number, number * 5, number * 5 + 2, "cudaGraphLaunch" if graph else "cudaLaunchKernel", rank=rank),
        ]

    table = compute(ANALYSIS, *operators, *rows)

    for rank in (0, 1):
        mine = [event for event in events if event[0] == rank]
        part = table.filter(rank=rank)
        assert (part["kernels"].sum(), part["device_ns"].sum()) == (len(mine), sum(event[3] for event in mine))
