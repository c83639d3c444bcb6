"""The mean step of each rank, communication that it exposes, and ranks that are late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.builders import Row, compute, context, kernel, memcpy, step
from tracekit.analyses import step_breakdown
from tracekit.analyses.mean_step import ANALYSIS
from tracekit.model.finding import Finding


def nccl(start: int, end: int, **columns: Any) -> Row:
    return kernel("nccl", start, end, cls="communication", lane=20, **columns)


def test_parts_of_the_mean_step_add_up_to_it() -> None:
    """Steps of 100 and 60 ns: the mean is the time from the first one's begin to the last one's end over two."""
    table = compute(
        ANALYSIS,
        step(0, 0, 100),
        step(1, 100, 160),
        kernel("gemm", 0, 50, step=0),
        nccl(40, 90, step=0),
        kernel("gemm", 100, 140, step=1),
        memcpy(start=140, end=150, step=1),
        before=[step_breakdown.ANALYSIS],
    )
    (row,) = table.to_dicts()
    parts = [row[name] for name in ("compute_ns", "exposed_comm_ns", "exposed_memory_ns", "idle_ns")]
    assert (row["steps"], row["window_ns"], parts) == (2, 80, [45, 20, 5, 10])
    assert (row["overlap_ratio"], row["utilization_ratio"]) == (0.2, 70 / 80)


def test_recording_without_complete_steps_is_its_window() -> None:
    table = compute(
        ANALYSIS,
        kernel("a", 10, 30),
        kernel("b", 40, 60),
        step(0, 0, 60, complete=False),
        before=[step_breakdown.ANALYSIS],
    )
    assert table.select("steps", "window_ns", "idle_ns").rows() == [(0, 50, 10)]


def found(*rows: Row, ranks: Sequence[int] = (0,)) -> dict[str, Finding]:
    table = compute(ANALYSIS, *rows, before=[step_breakdown.ANALYSIS])
    return {finding.code: finding for finding in ANALYSIS.find(table, context(ranks=ranks))}


def half_hidden(exposed_ns: int) -> list[Row]:
    return [kernel("gemm", 0, 1000 - exposed_ns), nccl(1000 - 2 * exposed_ns, 1000)]


def test_exposed_communication_from_three_hundredths_of_the_step_on() -> None:
    finding = found(*half_hidden(30))["TK-COMM-EXPOSED"]

    assert finding.title == "Communication that no compute covers takes 3.00 % of the step (30 ns)"
    assert (finding.cost_ns, finding.share_ratio) == ((0, 30), 0.03)
    assert "TK-RANK-UNEVEN" not in finding.remedy
    assert found(*half_hidden(29)) == {}


def computing(*compute_ns: int, step_ns: int = 1000) -> list[Row]:
    """Ranks that compute for so long and wait in an all-reduce until all are there."""
    return [
        row
        for rank, length in enumerate(compute_ns)
        for row in (kernel("gemm", 0, length, rank=rank), nccl(length, step_ns, rank=rank))
    ]


def test_rank_that_computes_longer_is_late() -> None:
    findings = found(*computing(500, 500, 560, 500), ranks=range(4))
    finding = findings["TK-RANK-UNEVEN"]

    assert finding.title == "Rank 2 is late: it computes 60 ns a step longer than the median rank"
    assert (finding.ranks, finding.cost_ns, finding.share_ratio) == ((2,), (60, 60), 0.06)
    assert "First mend what makes ranks late (TK-RANK-UNEVEN)" in findings["TK-COMM-EXPOSED"].remedy
    assert "TK-RANK-UNEVEN" not in found(*computing(500, 500, 550, 500), ranks=range(4))


def test_of_several_late_ranks_the_latest_is_described() -> None:
    finding = found(*computing(500, 500, 560, 500, 580), ranks=range(5))["TK-RANK-UNEVEN"]

    assert finding.title == "Ranks 2, 4 are late: rank 4 computes 80 ns a step longer than the median rank"


def test_rank_that_idles_longer_is_late() -> None:
    """Rank 1 starts its 500 ns of compute 100 ns late."""
    rows = [
        *computing(500),
        kernel("set", 0, 1, rank=1),
        kernel("gemm", 101, 600, rank=1),
        nccl(600, 1000, rank=1),
    ]
    finding = found(*rows, ranks=(0, 1))["TK-RANK-UNEVEN"]

    assert finding.title == "Rank 1 is late: it idles 100 ns a step longer than the other rank"


def test_nobody_is_late_where_nobody_communicates() -> None:
    assert found(kernel("gemm", 0, 900), kernel("gemm", 0, 1000, rank=1), ranks=(0, 1)) == {}


def test_nobody_is_late_where_the_recordings_are_not_of_the_same_steps() -> None:
    assert "TK-RANK-UNEVEN" not in found(
        *computing(500, 500), kernel("gemm", 0, 900, rank=2), nccl(900, 1300, rank=2), ranks=range(3)
    )
