"""Paragraphs that hang, and entries side by side."""

from __future__ import annotations

from rich.text import Text

from tracekit.report.layout import packed, paragraph


def test_a_paragraph_hangs_and_keeps_numbers_with_their_units() -> None:
    assert (
        paragraph("takes 12.5 % of it, 1.25 ms a step", 12).plain
        == "   takes\n   12.5 % of\n   it,\n   1.25 ms a\n   step"
    )


def test_a_flag_is_not_broken() -> None:
    assert paragraph("set --cuda-graph-impl", 22).plain == "   set\n   --cuda-graph-impl"


def test_the_first_line_has_its_own_lead_and_a_strong_start() -> None:
    text = paragraph("CODE  and more", 12, first=" 1 ", strong="CODE", style="red")
    assert text.plain == " 1 CODE  and\n   more"
    assert [(span.start, span.end, span.style) for span in text.spans] == [(3, 7, "red")]


def test_control_characters_do_not_pass() -> None:
    assert paragraph("a\x1b[2J\nb", 40).plain == "   a�[2J�b"


def test_packed_breaks_between_entries_only() -> None:
    lines = packed([Text("aaaa aaaa"), Text("bb"), Text("cc")], 17)
    assert [line.plain for line in lines] == ["   aaaa aaaa   bb", "   cc"]
