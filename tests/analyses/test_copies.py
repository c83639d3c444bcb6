"""Copies by direction and memory."""

from __future__ import annotations

import pytest

from tests.builders import Row, compute, context, kernel, memcpy, step
from tracekit.analyses.copies import ANALYSIS
from tracekit.model.finding import Finding, Severity

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"


@pytest.mark.parametrize(
    ("name", "direction", "memory"),
    [
        (PAGEABLE, "HtoD", "pageable"),
        (PINNED, "HtoD", "pinned"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", "pinned"),
        ("Memcpy DtoH (Device -> Pageable)", "DtoH", "pageable"),
        ("Memcpy DtoD (Device -> Device)", "DtoD", "device"),
        ("Memcpy PtoP (Device -> Device)", "PtoP", "device"),
        ("Memcpy HtoD (Host -> Device)", "HtoD", "host"),
        ("Memcpy DtoH (Device -> Host)", "DtoH", "host"),
        ("CopyHostToDevice", "HtoD", "host"),
        ("CopyDeviceToDevice", "DtoD", "device"),
        ("Memcpy HtoD (Managed -> Device)", "HtoD", "managed"),
        ("Memset (Device)", "memset", "device"),
        ("Memset (Unknown)", "memset", "device"),
        ("Memcpy (Unknown)", "other", "device"),
    ],
)
def test_direction_and_memory_are_read_from_the_name(name: str, direction: str, memory: str) -> None:
    table = compute(ANALYSIS, memcpy(name, 0, 10))

    assert table.select("direction", "memory").rows() == [(direction, memory)]


def test_copies_are_added_up_per_kind() -> None:
    table = compute(
        ANALYSIS,
        memcpy(PINNED, 0, 10, bytes=100),
        memcpy(PINNED, 20, 50, bytes=300),
        memcpy(PINNED, 60, 70),
        memcpy("Memset (Device)", 80, 90),
        kernel("k", 100, 110),
    )

    columns = ("direction", "copies", "bytes", "total_ns", "bandwidth_bytes_per_s")
    assert table.select(columns).rows() == [("HtoD", 3, 400, 50, 10e9), ("memset", 1, None, 10, None)]


def test_exposed_is_what_runs_under_neither_compute_nor_communication() -> None:
    table = compute(
        ANALYSIS,
        memcpy(PINNED, 0, 100, lane=8),
        memcpy(PINNED, 90, 120, lane=9),
        kernel("gemm", 10, 40, cls="gemm"),
        kernel("nccl", 30, 60, cls="communication", lane=20),
        memcpy("Memset (Device)", 110, 130),
        memcpy(PINNED, 0, 5, rank=1),
    )

    assert table.select("rank", "direction", "exposed_ns").rows() == [
        (0, "HtoD", 70),
        (0, "memset", 20),
        (1, "HtoD", 5),
    ]


def test_copy_that_is_hidden_altogether_is_not_exposed() -> None:
    table = compute(ANALYSIS, memcpy(PINNED, 10, 20, lane=8), kernel("gemm", 0, 40, cls="gemm"))

    assert table["exposed_ns"].to_list() == [0]


def test_figures_per_step_are_of_complete_steps_alone() -> None:
    """Of four copies of 10 ns, one was launched before the step and one after it."""
    table = compute(
        ANALYSIS,
        step(0, 100, 200),
        *(memcpy(PINNED, at, at + 10, step=number) for at, number in ((50, None), (120, 0), (150, 0), (250, 1))),
    )

    assert table.select("copies", "exposed_ns", "step_copies", "step_exposed_ns").rows() == [(4, 40, 2, 20)]


def test_run_without_copies_has_no_rows() -> None:
    assert compute(ANALYSIS, kernel("gemm", 0, 40)).is_empty()


def found(*rows: Row, step_ns: int, steps: int = 1) -> dict[str, Finding]:
    return {finding.code: finding for finding in ANALYSIS.find(compute(ANALYSIS, *rows), context(steps, step_ns))}


def test_pageable_copies_from_a_hundredth_of_the_step_on() -> None:
    finding = found(memcpy(PAGEABLE, 0, 100, bytes=1_000), memcpy(PINNED, 100, 110, bytes=400), step_ns=10_000)[
        "TK-COPY-PAGEABLE"
    ]

    assert finding.title == "Copies of pageable host memory hold up the device: 1.00 % of the step (100 ns)"
    assert finding.cause == "1 copy a step, HtoD most, at 10.0 GB/s. The driver stages pageable memory."
    assert finding.cost_ns == (75, 100)  # the run's pinned copies are four times as fast


def test_gain_of_pinned_memory_is_unknown_without_a_pinned_copy() -> None:
    finding = found(memcpy(PAGEABLE, 0, 100, bytes=1_000), step_ns=10_000)["TK-COPY-PAGEABLE"]

    assert finding.cost_ns == (0, 100)


def test_pageable_copies_without_recorded_bytes_have_no_bandwidth() -> None:
    finding = found(memcpy(PAGEABLE, 0, 100), memcpy(PAGEABLE, 200, 300), step_ns=10_000)["TK-COPY-PAGEABLE"]

    assert finding.cause == "2 copies a step, HtoD most. The driver stages pageable memory."
    assert "bandwidth" not in {quantity.label for quantity in finding.evidence}


@pytest.mark.parametrize(
    "rows",
    [
        [memcpy(PAGEABLE, 0, 99)],
        [memcpy(PAGEABLE, 0, 5_000, lane=8), kernel("gemm", 0, 5_000)],
        [memcpy("Memcpy HtoD (Host -> Device)", 0, 200)],
    ],
    ids=["too short", "hidden", "not known to be pageable"],
)
def test_other_copies_are_no_pageable_finding(rows: list[Row]) -> None:
    assert found(*rows, step_ns=10_000) == {}


def test_exposed_copies_from_three_hundredths_of_the_step_on() -> None:
    rows = [memcpy("Memcpy DtoD (Device -> Device)", 0, 200), memcpy("Memset (Device)", 200, 300)]

    finding = found(*rows, step_ns=10_000)["TK-COPY-EXPOSED"]

    assert finding.title == "The device copies and does nothing else: 3.00 % of the step (300 ns)"
    assert finding.cause == "Largest part: DtoD copies (device memory), 66.7 % in 1 copy a step."
    assert (finding.cost_ns, finding.severity) == ((0, 300), Severity.LOW)
    assert found(*rows, step_ns=10_001) == {}


def test_costs_are_per_step() -> None:
    assert found(memcpy(PINNED, 0, 1_000), step_ns=10_000, steps=2)["TK-COPY-EXPOSED"].cost_ns == (0, 500)
