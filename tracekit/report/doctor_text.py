"""A diagnosis on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from tracekit.report.doctor import Diagnosis, Lack
from tracekit.report.layout import paragraph
from tracekit.report.page import Page


def render(diagnosis: Diagnosis, page: Page) -> RenderableType:
    """What is there, what is lacking and why that matters, and the recording that has it all."""
    lines = [paragraph(f"{diagnosis.title} holds", page.width, first="", strong=diagnosis.title)]
    lines += [paragraph(text, page.width, first="+  ") for text in diagnosis.holds]
    if not diagnosis.lacks:
        return Group(*lines, Text(), Text("and lacks nothing that tracekit knows to use.", style="bold"))
    lines += [Text(), Text("and lacks", style="bold")]
    lines += [line for lack in diagnosis.lacks for line in _lack(lack, page)]
    if diagnosis.recipe:
        lines += [Text(), Text("A recording that has it:", style="bold"), Text(diagnosis.recipe.rstrip())]
    return Group(*lines)


def _lack(lack: Lack, page: Page) -> list[Text]:
    return [
        paragraph(lack.what, page.width, first="-  ", strong=lack.what, style="yellow"),
        paragraph(f"would tell: {lack.gain}", page.width),
        paragraph(f"try: {lack.remedy}", page.width, strong="try:"),
    ]
