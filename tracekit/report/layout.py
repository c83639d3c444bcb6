"""Lines of a terminal: paragraphs that hang, and things side by side. A number stays on the line of its unit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import wrap
from typing import Final

from rich.text import Text

from tracekit.report.safe import plain

INDENT: Final = 3
"""Cells that everything below a heading is indented by."""

_BETWEEN: Final = "   "
_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[kMGTP]?B(?:/s)?)(?![\w/]))")
_KEPT: Final = "\N{NO-BREAK SPACE}"


def paragraph(text: str, width: int, *, first: str | None = None, strong: str = "", style: str = "bold") -> Text:
    """*text* wrapped to *width*, below the first line indented by `INDENT`.

    *first* stands before the first line instead of that indent; *strong*, which the text starts with, is set in *style*.
    """
    rest = " " * INDENT
    lead = rest if first is None else first
    kept = _BEFORE_UNIT.sub(_KEPT, plain(text))
    lines = wrap(kept, max(width, 2 * INDENT), initial_indent=lead, subsequent_indent=rest, break_on_hyphens=False)
    set_ = Text("\n".join(lines).replace(_KEPT, " "))
    if strong:
        set_.stylize(style, len(lead), len(lead) + len(strong))
    return set_


def packed(entries: Iterable[Text], width: int) -> list[Text]:
    """*entries* side by side, on as many indented lines as they need; none is broken in two."""
    lines: list[Text] = []
    for entry in entries:
        if lines and len(lines[-1]) + len(_BETWEEN) + len(entry) <= width:
            lines[-1].append(_BETWEEN).append_text(entry)
        else:
            lines.append(Text(" " * INDENT).append_text(entry))
    return lines
