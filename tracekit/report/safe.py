"""Text from traces, which strangers wrote, made harmless for a terminal and for Markdown."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that move the cursor, reorder or hide text: control, format (bidi overrides), surrogates, separators."""
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]|~])")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"})


def plain(text: str) -> str:
    """*text* on one line, with every character that a terminal could obey replaced by U+FFFD."""
    if text.isprintable():  # nearly always: names are asked for by the thousand
        return text
    return "".join(_REPLACEMENT if unicodedata.category(char) in _UNSEEN else char for char in text)


def markdown_text(text: str) -> str:
    """*text* for running Markdown: no markup, HTML, mention or link of its own comes to life."""
    escaped = _MARKDOWN.sub(r"\\\1", plain(text)).translate(_ENTITIES)
    return escaped.replace("://", ":&#47;&#47;")


def markdown_code(text: str) -> str:
    """*text* as a code span that is whole even inside a table's cell."""
    return "`{}`".format(plain(text).replace("`", "'").replace("|", r"\|"))
