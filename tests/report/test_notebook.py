"""A report at a prompt and in a notebook."""

from __future__ import annotations

from dataclasses import fields

from tests.report.build import FINDING, breakdown_row, make_report
from tracekit.report.notebook import ShownReport


def test_a_line_at_a_prompt_and_markdown_in_a_notebook() -> None:
    report = make_report([breakdown_row(0, compute=50, exposed=10)], findings=(FINDING,))
    shown = ShownReport(**{field.name: getattr(report, field.name) for field in fields(report)})
    assert repr(shown) == "<tracekit report 'run/': window 60 ns, 1 finding, 3 tables>"
    assert shown._repr_markdown_().startswith("### tracekit: run/\n")
