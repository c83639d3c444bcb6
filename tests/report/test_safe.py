"""Names from strangers: nothing in them reaches a terminal as a command, or Markdown as markup."""

from __future__ import annotations

import pytest

from tracekit.report.safe import markdown_code, markdown_text, plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aten::mm", "aten::mm"),
        ("µs – naïve 名前", "µs – naïve 名前"),
        ("\x1b[31mred\x1b[0m", "�[31mred�[0m"),
        ("two\nlines\r", "two�lines�"),
        ("\x9b2J", "�2J"),
        ("\u202egnp.exe", "�gnp.exe"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_markdown_text_stays_text() -> None:
    text = "[x](http://a) <img> @all #12 a_b_c `c` |"
    assert markdown_text(text) == r"\[x\](http:&#47;&#47;a) &lt;img&gt; &#64;all &#35;12 a\_b\_c \`c\` \|"


def test_markdown_code_cannot_be_left() -> None:
    assert markdown_code("a`b|c\n") == r"`a'b\|c�`"
