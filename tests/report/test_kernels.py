"""Kernels over all ranks, and classes."""

from __future__ import annotations

from tests.report.build import make_report
from tracekit.report.kernels import classes, top_kernels, unclassified


def test_kernels_are_summed_over_ranks_and_largest_first() -> None:
    rows = [
        {"rank": rank, "window": 0, "name": name, "class": "gemm", "count": 2, "total_ns": total}
        for rank, name, total in ((0, "a", 30), (1, "a", 30), (0, "b", 40))
    ]
    kernels = top_kernels(make_report([], ranks=[], tables={"kernels": rows}), 2)
    assert [(kernel.name, kernel.calls, kernel.total_ns, kernel.share) for kernel in kernels] == [
        ("a", 4, 60, 0.6),
        ("b", 2, 40, 0.4),
    ]


def test_classes() -> None:
    rows = [
        {"rank": rank, "window": 0, "class": name, "total_ns": total}
        for rank, name, total in ((0, "gemm", 30), (1, "copy", 70))
    ]
    assert classes(make_report([], ranks=[], tables={"kernel_classes": rows}), 1) == [("copy", 0.7)]


def test_unclassified_kernels_and_the_largest_of_them() -> None:
    rows = [
        {"rank": 0, "window": 0, "class": name, "total_ns": total, "largest": names}
        for name, total, names in (("gemm", 75, ["a"]), ("other", 25, ["mystery", "riddle"]))
    ]
    assert unclassified(make_report([], ranks=[], tables={"kernel_classes": rows})) == (0.25, "mystery")
    assert unclassified(make_report([], ranks=[], tables={"kernel_classes": rows[:1]})) is None


def test_without_tables_there_is_nothing() -> None:
    report = make_report([], ranks=[])
    assert (top_kernels(report, 3), classes(report, 3)) == ([], [])
