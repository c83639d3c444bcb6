"""The step timer writes a line a step, whose phases add up."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tracekit.instrument import StepTimer, say
from tracekit.instrument.timer import Clock, line


class Ticks(Clock):
    """A clock that moves on by 10 ns whenever it is looked at."""

    name = "host"

    def __init__(self) -> None:
        self.now = 0

    def mark(self) -> int:
        self.now += 10
        return self.now

    def between(self, begin: int, end: int) -> int:
        return end - begin


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "rank0.steps.jsonl").read_text().splitlines()]


def test_phases_and_the_rest_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.instrument.timer.clock_of_this_device", Ticks)
    with StepTimer(str(tmp_path)) as timer:
        for _ in timer.data("ab"):
            for _ in range(2):
                with timer.phase("forward"):
                    pass
            timer.step()
    header, *steps = lines(tmp_path)
    assert header == {"version": 1, "clock": "host"}
    assert [{key: value for key, value in step.items() if key != "start_ns"} for step in steps] == [
        {"step": step, "dur_ns": 70, "data_ns": 10, "forward_ns": 20, "other_ns": 40} for step in (0, 1)
    ]


def test_a_line_without_phases() -> None:
    assert line(3, 17, [("step", 50)]) == b'{"step":3,"start_ns":17,"dur_ns":50,"other_ns":50}\n'


def test_a_second_run_is_appended(tmp_path: Path) -> None:
    for _ in range(2):
        with StepTimer(str(tmp_path)) as timer:
            timer.step()
    assert [each.get("step") for each in lines(tmp_path)] == [None, 0, 0]


def test_off_means_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT", "0")
    with StepTimer(str(tmp_path / "out")) as timer, timer.phase("forward"):
        timer.step()
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_costs_the_file_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    say._told.clear()
    logging.getLogger("tracekit").propagate = True
    (tmp_path / "out").write_text("")
    with StepTimer(str(tmp_path / "out")) as timer:
        timer.step()
    assert "the step timer did not work" in caplog.text


def test_a_phase_that_is_none_is_told(tmp_path: Path) -> None:
    with StepTimer(str(tmp_path)) as timer, pytest.raises(ValueError, match="no phase 'fwd'"), timer.phase("fwd"):
        pass
