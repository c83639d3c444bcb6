"""The report on a terminal: where the step goes, which ranks differ, what costs most. The answer first.

Sections are pure functions of the report, each giving a list of lines; `render` puts them under one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from tracekit.model.finding import Confidence, Finding, Severity
from tracekit.model.quantity import ns, percent
from tracekit.model.report import Report
from tracekit.model.short_names import short_name, shorten
from tracekit.report.bars import INKS, bar
from tracekit.report.digest import PARTS, Bar, Difference, Digest, digest
from tracekit.report.kernels import classes, top_kernels, unclassified
from tracekit.report.layout import INDENT, packed, paragraph
from tracekit.report.page import Page
from tracekit.report.phrases import plural, ranks_text
from tracekit.report.safe import plain
from tracekit.report.sentences import (
    communication_text,
    cost,
    head_facts,
    health_facts,
    idle_text,
    kernels_heading,
    notes,
    rank_name,
    skipped_text,
    step_text,
    verdict,
)
from tracekit.report.waiting import headline, waiting_text

_MOST_BARS: Final = 8
_MOST_NOTES: Final = 3
_MOST_CLASSES: Final = 4
_KERNELS: Final = 3
_NARROWEST_BAR: Final = 10
_WIDEST_BAR: Final = 100
_SEVERITY_STYLES: Final = {
    Severity.HIGH: "bold red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}
_PART_WORDS: Final = {
    "compute": "compute",
    "communication": "exposed communication",
    "copies": "exposed copies",
    "idle": "idle",
}
_SHORT: Final = {"communication": "comm"}


def render(report: Report, page: Page) -> RenderableType:
    """The whole report, laid out for *page*."""
    digested = digest(report)
    sections = (
        _where(report, digested, page),
        _findings(report, page),
        _kernels(report, page),
        _footer(report, page),
    )
    return Group(_head(report, page), *(line for section in sections if section for line in (Text(), *section)))


def _head(report: Report, page: Page) -> Text:
    return paragraph(f"{report.title}  {' · '.join(head_facts(report))}", page.width, first="", strong=report.title)


def _where(report: Report, digested: Digest, page: Page) -> list[Text]:
    """The step time, the legend with the typical rank's numbers, and a bar for each rank on one scale."""
    if digested.typical is None:
        return [Text("Nothing was measured: no recording holds device or operator time.", style="bold")]
    time, how = step_text(report, digested)
    lines = [
        paragraph(f"{time}  {how}", page.width, first="", strong=time),
        *([paragraph(waits, page.width, first="", strong=waits)] if (waits := headline(report)) else []),
        *_legend(digested, digested.typical, page),
        *_bar_lines(digested, page),
    ]
    if len(digested.bars) > 1:
        lines.append(paragraph(verdict(digested, len(digested.shown(_MOST_BARS))), page.width))
    told = (communication_text(digested), waiting_text(report), idle_text(report, digested))
    return [*lines, *(paragraph(text, page.width) for text in told if text)]


def _legend(digested: Digest, typical: Bar, page: Page) -> list[Text]:
    """The one legend: glyph, part, and its time on the typical rank. Parts that no rank has are left out."""
    there = [max(values) > 0 for values in zip(*(each.parts for each in digested.bars), strict=True)]
    entries = []
    for part, value in compress(zip(PARTS, typical.parts, strict=True), there):
        glyph = INKS[part].char(ascii_only=page.ascii_only) * 2
        words = f" {_PART_WORDS[part]} {ns(value)}, {percent(value / typical.total_ns)}"
        entries.append(Text.assemble((glyph, INKS[part].style), words))
    if len(digested.bars) > 1:
        which = ", the most typical" if len(digested.bars) > 2 else ""
        entries.append(Text(f"(numbers of {rank_name(typical, digested)}{which})", style="dim"))
    return packed(entries, page.width)


def _bar_lines(digested: Digest, page: Page) -> Iterable[Text]:
    """A line a rank: its name, its bar, its time, and what sets it apart from the median rank."""
    shown = digested.shown(_MOST_BARS)
    labels = [rank_name(each, digested) for each, _ in shown]
    hidden = len(digested.bars) - len(shown)
    notes_ = [
        f"and {hidden} more like it" if hidden and each is digested.typical else _apart(difference)
        for each, difference in shown
    ]
    label_width, note_width = max(map(len, labels)), max(map(len, notes_))
    room = page.width - INDENT - label_width - note_width - len("    1.23 ms  ")
    width = min(max(room, _NARROWEST_BAR), _WIDEST_BAR)
    for (each, difference), label, note in zip(shown, labels, notes_, strict=True):
        drawn = bar(each.parts, digested.scale_ns, width, ascii_only=page.ascii_only)
        line = Text(f"{'':{INDENT}}{label:<{label_width}}  ", no_wrap=True, overflow="crop")
        line.append_text(drawn).append(f"{'':{width - len(drawn)}}  {ns(each.total_ns):>7}")
        yield line.append(f"  {note}" if note else "", style="bold" if difference.differs else "dim")


def _apart(difference: Difference) -> str:
    sign = "+" if difference.ns > 0 else ""
    part = _SHORT.get(difference.part, difference.part)
    return f"{part} {sign}{ns(difference.ns)}" if difference.differs else ""


def _findings(report: Report, page: Page) -> list[Text]:
    if report.analysed.is_empty():
        return []
    if not report.findings:
        return [Text("No finding: none of the costs that tracekit looks for stands out.", style="bold")]
    if page.top == 0:
        return [paragraph(f"{plural(len(report.findings), 'finding')}: --top {len(report.findings)}", page.width)]
    lines = [Text(f"What costs most, {'per step' if report.steps else 'of the window'}", style="bold")]
    for number, finding in enumerate(report.findings[: page.top], start=1):
        lines += _finding(number, finding, page)
    if (more := len(report.findings) - page.top) > 0:
        lines.append(paragraph(f"{plural(more, 'more finding')}: --top {len(report.findings)}", page.width))
    return lines


def _finding(number: int, finding: Finding, page: Page) -> list[Text]:
    facts = [finding.severity.value, cost(finding)]
    facts += [ranks_text(finding.ranks)] if finding.ranks else []
    facts += [f"{finding.confidence.value} confidence"] if finding.confidence != Confidence.HIGH else []
    style = _SEVERITY_STYLES[finding.severity]
    head = f"{finding.code}  {' · '.join(facts)}"
    told = ("", finding.title), ("cause: ", finding.cause), ("try: ", finding.remedy)
    return [
        paragraph(head, page.width, first=f"{number:>2} ", strong=finding.code, style=style),
        *(paragraph(f"{label}{text}", page.width) for label, text in told if text),
    ]


def _kernels(report: Report, page: Page) -> list[Text]:
    """The classes in a line, the biggest kernels in three."""
    kernels = top_kernels(report, _KERNELS)
    if not kernels:
        return []
    heading = kernels_heading(report)
    by_class = " · ".join(f"{kind} {percent(share)}" for kind, share in classes(report, _MOST_CLASSES))
    name_width = page.width - INDENT - len("  120,554 x  1.23 ms  58.9 %")
    columns = f"{'':{INDENT}}{'of the whole recording':<{name_width}}  {'calls':>7}   {'total':>8} {'share':>7}"
    lines = [
        paragraph(f"{heading}  {by_class}", page.width, first="", strong=heading),
        Text(columns, style="dim", no_wrap=True, overflow="crop"),
    ]
    for kernel in kernels:
        name = shorten(plain(short_name(kernel.name)), name_width)
        numbers = f"{kernel.calls:>7,} x {ns(kernel.total_ns):>8} {percent(kernel.share):>7}"
        lines.append(Text(f"{'':{INDENT}}{name:<{name_width}}  {numbers}", no_wrap=True, overflow="crop"))
    if (unknown := unclassified(report)) is not None:
        share, largest = unknown
        name = shorten(plain(short_name(largest)), name_width - len("of no known class"))
        lines.append(paragraph(f"of no known class: {percent(share)}, most of it {name}", page.width))
    return lines


def _footer(report: Report, page: Page) -> list[Text]:
    """How far the numbers can be trusted, and where to go from here."""
    lines = [paragraph(f"health: {' · '.join(health_facts(report))}", page.width, first="")]
    told = notes(report)
    lines += [paragraph(note, page.width) for note in told[:_MOST_NOTES]]
    if (more := len(told) - _MOST_NOTES) > 0:
        lines.append(paragraph(f"{plural(more, 'more note')}: --json", page.width))
    if report.analysed.is_empty():
        return lines
    lines += [paragraph(text, page.width, first="") for text in skipped_text(report)]
    hints = [f"tracekit explain {finding.code}" for finding in report.findings[:1]]
    hints.append(f"tracekit doctor {page.command}")
    return [*lines, *_hints(hints, page)]


def _hints(commands: Sequence[str], page: Page) -> list[Text]:
    """*commands* to go on with, side by side or each on a line of its own; never broken, so that they can be copied."""
    label = "next: "
    line = f"{label}{' · '.join(commands)}"
    if cell_len(line) <= page.width:
        return [Text(line)]
    leads = [label, *[" " * len(label)] * (len(commands) - 1)]
    return [
        Text(f"{lead}{command}", no_wrap=True, overflow="ignore") for lead, command in zip(leads, commands, strict=True)
    ]
