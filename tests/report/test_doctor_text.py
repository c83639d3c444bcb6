"""A diagnosis on a terminal."""

from __future__ import annotations

from dataclasses import replace

from tests.report.build import screen
from tests.report.test_doctor import WHOLE
from tracekit.report.doctor import Diagnosis, diagnosis_of
from tracekit.report.doctor_text import render
from tracekit.report.page import Page


def lines(diagnosis: Diagnosis) -> list[str]:
    return screen(render(diagnosis, Page(width=80)), 80)


def test_a_lack_is_told_with_its_gain_and_remedy() -> None:
    shown = lines(diagnosis_of("run/", replace(WHOLE, memory=0)))
    start = shown.index("and lacks")
    assert shown[:2] == ["run/ holds", "+  2 of 2 ranks"]
    assert shown[start + 1 : start + 4] == [
        "-  no allocator events",
        "   would tell: peak memory, and stalls that the allocator causes",
        "   try: profile_memory=True",
    ]
    assert "    profile_memory=True," in shown
    assert max(map(len, shown)) <= 80


def test_nothing_lacking() -> None:
    assert lines(diagnosis_of("run/", WHOLE))[-1] == "and lacks nothing that tracekit knows to use."
