"""The report on a terminal, as a person sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.report.build import FINDING, breakdown_row, make_report, screen
from tracekit.model.finding import Confidence, Severity
from tracekit.model.report import Report, Skipped
from tracekit.report.page import Page
from tracekit.report.text import render

MS = 1_000_000


def lines(report: Report, width: int = 80, **page: Any) -> list[str]:
    return screen(render(report, Page(width=width, command="run/", **page)), width)


def text(report: Report, width: int = 80, **page: Any) -> str:
    """The report as one line of words, however it was wrapped."""
    return " ".join(" ".join(lines(report, width, **page)).split())


def two_ranks() -> Report:
    rows = [
        breakdown_row(0, compute=10 * MS, exposed=4 * MS, overlapped=1 * MS, idle=6 * MS),
        breakdown_row(1, compute=10 * MS, exposed=1 * MS, overlapped=1 * MS, idle=9 * MS),
    ]
    steps = [{**row, "step": step} for row in rows for step in (3, 4)]
    ranks = [{"rank": rank, "world_size": 8, "device_name": "A100", "backend": "nccl"} for rank in (0, 1)]
    return make_report(rows, steps=steps, ranks=ranks)


def test_a_whole_screen() -> None:
    assert lines(two_ranks()) == [
        "run/  2 of 8 ranks · 2 steps · A100 x 2 · nccl",
        "",
        "step 20.0 ms  median rank's mean; ranks and steps take 20.0 ms",
        "   ██ compute 10.0 ms, 50.0 %   ▒▒ exposed communication 4.00 ms, 20.0 %",
        "   ·· idle 6.00 ms, 30.0 %   (numbers of rank 0)",
        "   rank 0  ██████████████████████▒▒▒▒▒▒▒▒▒··············  20.0 ms  comm +3.00 ms",
        "   rank 1  ██████████████████████▒▒▒····················  20.0 ms  idle +3.00 ms",
        "   the two ranks differ by more than 10 % of a rank's time",
        "   communication 2.00 ms to 5.00 ms a rank, waiting for other ranks included;",
        "   20.0 % to 50.0 % of it runs under compute",
        "",
        "No finding: none of the costs that tracekit looks for stands out.",
        "",
        "health: 240 events read · 0 repaired · 0 dropped",
        "next: tracekit doctor run/",
    ]


def test_no_communication_is_said_and_never_a_ratio() -> None:
    report = make_report([breakdown_row(0, compute=10, exposed=0, idle=10)])
    assert "no communication observed" in text(report)
    assert "exposed communication" not in text(report)


def test_without_steps_the_figures_are_of_the_window_and_said_so() -> None:
    words = text(make_report([breakdown_row(0, compute=10 * MS, exposed=0)]))
    assert "window 10.0 ms no steps found: figures are of the whole recording" in words


def test_inferred_steps_are_said_to_be() -> None:
    report = replace(two_ranks(), step_source="inferred")
    assert "steps were inferred from periodicity, not marked" in text(report)


def test_ranks_without_steps_are_named() -> None:
    rows = [breakdown_row(rank, compute=10, exposed=0) for rank in (0, 1)]
    assert "rank 1 without steps: whole window" in text(make_report(rows, steps=[{**rows[0], "step": 1}]))


def test_findings_are_told_with_cost_cause_and_remedy() -> None:
    report = replace(
        two_ranks(),
        findings=(
            FINDING,
            replace(FINDING, code="TK-SYNC", severity=Severity.LOW, confidence=Confidence.HIGH, cost_ns=(5, 5)),
        ),
    )
    shown = lines(report, top=1, width=100)
    start = shown.index("What costs most, per step")
    assert shown[start + 1 : start + 6] == [
        " 1 TK-COMM-EXPOSED  high · 1.00 ms to 4.00 ms (20.0 %) · ranks 0-1 · medium confidence",
        "   4.00 ms of communication is exposed",
        "   cause: it is launched after the compute that could hide it",
        "   try: DistributedDataParallel(..., bucket_cap_mb=100)",
        "   1 more finding: --top 2",
    ]
    assert shown[-1] == "next: tracekit explain TK-COMM-EXPOSED · tracekit doctor run/"


def test_many_ranks_show_those_that_differ_and_say_so() -> None:
    rows = [breakdown_row(rank, compute=50, exposed=10, idle=40 + (30 if rank == 17 else 0)) for rank in range(64)]
    shown = lines(make_report(rows))
    assert sum(line.startswith("   rank ") and "█" in line for line in shown) == 3
    assert "rank 17 differs from the median rank by more than 10 % of its time; 3 of 64 bars shown" in text(
        make_report(rows)
    )
    assert any(line.startswith("   rank 17") and line.endswith("idle +30 ns") for line in shown)
    assert any(line.endswith("and 61 more like it") for line in shown)


def test_recordings_that_were_not_used_and_notes_are_told() -> None:
    rows = [breakdown_row(rank, compute=10, exposed=0) for rank in (0, 1)]
    ranks = [
        {"rank": 0, "notes": ["2 durations clipped"], "events_repaired": 2, "device_ns_touched": 10 * MS},
        {"rank": 1, "notes": ["2 durations clipped"]},
        {"rank": -1, "source": "bad.json", "status": "failed", "reason": "not a trace"},
    ]
    words = text(
        make_report(
            rows,
            ranks=ranks,
            notes=("no clock calibration",),
            skipped=(Skipped(analysis="copies", reason="no copies"),),
        )
    )
    assert "2 repaired (10.0 ms of device time) · 0 dropped · 1 recording not used" in words
    assert "no clock calibration bad.json: not a trace every rank: 2 durations clipped" in words
    assert "not analysed: copies (no copies)" in words


def test_nothing_measured() -> None:
    report = make_report([], ranks=[{"rank": 0, "status": "empty", "reason": "no complete events"}])
    words = text(replace(report, skipped=(Skipped(analysis="copies", reason="no device events"),)))
    assert words == (
        "run/ 0 ranks · no steps Nothing was measured: no recording holds device or operator time. "
        "health: 120 events read · 0 repaired · 0 dropped · 1 recording not used rank0.json: no complete events"
    )


def test_kernels_are_named_shortly() -> None:
    kernels = [
        {
            "name": "void at::native::add_kernel<4, (anonymous namespace)::F>(int, float*)",
            "class": "elementwise",
            "count": 12,
            "total_ns": 3 * MS,
        },
        {"name": "gemm", "class": "gemm", "count": 1, "total_ns": 1 * MS},
    ]
    classes = [{"class": "gemm", "total_ns": 1 * MS}, {"class": "elementwise", "total_ns": 3 * MS}]
    report = make_report(
        [breakdown_row(0, compute=10, exposed=0)], tables={"kernels": kernels, "kernel_classes": classes}
    )
    shown = lines(report)
    assert "Kernels  elementwise 75.0 % · gemm 25.0 %" in shown
    assert any(line.startswith("   add_kernel<4, F>  ") and line.endswith("12 x  3.00 ms  75.0 %") for line in shown)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    report = replace(two_ranks(), findings=(FINDING,), notes=("a sentence that goes on and on " * 5,))
    assert max(map(len, lines(report, width))) <= width


def test_a_name_cannot_command_the_terminal() -> None:
    kernels = [{"name": "\x1b[2J[bold]gemm[/bold]:smile:", "class": "gemm", "count": 1, "total_ns": 1}]
    report = make_report(
        [breakdown_row(0, compute=10, exposed=0)], title="\x1b]0;x\x07", tables={"kernels": kernels}, notes=("\x9b2J",)
    )
    words = text(report)
    assert "\x1b" not in words
    assert "\x9b" not in words
    assert "�[2J[bold]gemm[/bold]:smile:" in words


def test_bars_need_neither_colour_nor_blocks() -> None:
    assert "   rank 1  ######################===...................." in "\n".join(lines(two_ranks(), ascii_only=True))


def test_commands_to_go_on_with_are_never_broken() -> None:
    """Nor cut: what is wider than the terminal is left to it, so that it can be copied."""
    report = replace(two_ranks(), findings=(FINDING,))
    folder = "a/long/path/" * 8
    shown = screen(render(report, Page(width=60, command=folder)), 200)
    assert shown[-2:] == ["next: tracekit explain TK-COMM-EXPOSED", f"      tracekit doctor {folder}"]


def test_without_findings_in_full_their_number_is_told() -> None:
    shown = lines(replace(two_ranks(), findings=(FINDING,)), top=0)
    assert "   1 finding: --top 1" in shown
    assert not any("What costs most" in line for line in shown)


def test_what_the_idle_time_waits_for() -> None:
    spans = [
        {"rank": 0, "window": 0, "cause": "host_bound", "step_ns": 5 * MS},
        {"rank": 0, "window": 0, "cause": "host_bound", "step_ns": 3 * MS},
        {"rank": 0, "window": 0, "cause": "data", "step_ns": 4 * MS},
        {"rank": 0, "window": 0, "cause": "sync", "step_ns": 0},
    ]
    steps = [breakdown_row(0, step=step, compute=10 * MS, exposed=0, idle=6 * MS) for step in (1, 2)]
    report = make_report(steps[:1], steps=steps, tables={"idle_spans": spans})
    assert "   idle: 4.00 ms until the host launched · 2.00 ms for the next batch" in lines(report)
