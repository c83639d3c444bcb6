"""The report as Markdown, for an issue or a pull request. Whatever a trace put into a name stays text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tracekit.model.finding import Finding
from tracekit.model.quantity import ns, of, percent
from tracekit.model.report import Report
from tracekit.model.short_names import shorten
from tracekit.report.digest import PARTS, Digest, digest
from tracekit.report.kernels import top_kernels
from tracekit.report.phrases import ranks_text
from tracekit.report.safe import markdown_code, markdown_text
from tracekit.report.sentences import (
    communication_text,
    cost,
    head_facts,
    health_facts,
    idle_text,
    notes,
    rank_name,
    skipped_text,
    step_text,
    verdict,
)
from tracekit.report.waiting import headline, waiting_text

_MOST_RANKS: Final = 16
_KERNELS: Final = 10
_NAME_WIDTH: Final = 90


def analyze_markdown(report: Report, *, top: int = 3) -> str:
    """The whole report; the *top* findings are told in full, the others in a line of the table."""
    digested = digest(report)
    sections = (
        [f"### tracekit: {markdown_text(report.title)}", "", markdown_text(" · ".join(head_facts(report)))],
        _ranks(report, digested),
        _findings(report, top),
        _kernels(report),
        _footer(report),
    )
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """A table; the columns *numbers* are set to the right."""
    rule = ["---:" if column in numbers else "---" for column in range(len(header))]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _ranks(report: Report, digested: Digest) -> list[str]:
    shown = digested.shown(_MOST_RANKS)
    if not shown:
        return ["Nothing was measured: no recording holds device or operator time."]
    rows = [
        (
            rank_name(bar, digested),
            *(ns(part) for part in bar.parts),
            ns(bar.total_ns),
            percent(bar.overlapped_comm_ns / bar.comm_ns) if bar.comm_ns else "no communication",
        )
        for bar, _ in shown
    ]
    header = (
        "rank",
        "compute",
        "communication, exposed",
        "copies, exposed",
        "idle",
        "total",
        "communication under compute",
    )
    numbers = range(1, len(PARTS) + 3)
    time, how = step_text(report, digested)
    told = [verdict(digested, len(shown))] if len(digested.bars) > 1 else []
    told += filter(
        None, (headline(report), communication_text(digested), waiting_text(report), idle_text(report, digested))
    )
    return [f"**{time}** ({how})", "", *_table(header, rows, numbers), "", *(f"- {text}" for text in told)]


def _findings(report: Report, top: int) -> list[str]:
    if report.analysed.is_empty():
        return []
    if not report.findings:
        return ["**No finding.**"]
    header = ("finding", "severity", "confidence", "cost per step" if report.steps else "cost of the window", "ranks")
    rows = [
        (
            markdown_code(finding.code),
            finding.severity.value,
            finding.confidence.value,
            cost(finding),
            ranks_text(finding.ranks) if finding.ranks else "all",
        )
        for finding in report.findings
    ]
    details = [line for finding in report.findings[:top] for line in ("", *_details(finding))]
    return ["**What costs most**", "", *_table(header, rows, numbers=(3,)), *details]


def _details(finding: Finding) -> list[str]:
    lines = [f"- {markdown_code(finding.code)} {markdown_text(finding.title)}"]
    told = (("Cause", finding.cause), ("Try", finding.remedy))
    lines += [f"  - {label}: {markdown_text(text)}" for label, text in told if text]
    if finding.evidence:
        numbers = ", ".join(f"{quantity.label} {of(quantity.value, quantity.unit)}" for quantity in finding.evidence)
        lines.append(f"  - Measured: {markdown_text(numbers)}")
    return lines


def _kernels(report: Report) -> list[str]:
    kernels = top_kernels(report, _KERNELS)
    rows = [
        (
            markdown_code(shorten(kernel.name, _NAME_WIDTH)),
            kernel.kind,
            f"{kernel.calls:,}",
            ns(kernel.total_ns),
            percent(kernel.share),
        )
        for kernel in kernels
    ]
    return (
        [
            "**Kernels that take the most device time, all ranks together**",
            "",
            *_table(("kernel", "class", "calls", "time", "share"), rows, (2, 3, 4)),
        ]
        if rows
        else []
    )


def _footer(report: Report) -> list[str]:
    told = [*notes(report), *([] if report.analysed.is_empty() else skipped_text(report))]
    health = f"Health: {markdown_text(' · '.join(health_facts(report)))}"
    return [health, "", *(f"- {markdown_text(text)}" for text in told)] if told else [health]
