"""Actions of pipeline schedules, from tracekit's ranges and from torch's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.kineto_text import event, text, write
from tracekit.readers.kineto.reader import read

COLUMNS = ("stage", "chunk", "microbatch", "action", "start_ns")


def actions(path: Path, *names: str) -> list[tuple[object, ...]]:
    """Rows of the ``pipeline`` table for ranges called *names*, one a microsecond."""
    ranges = [event(name, float(at), 0.5, cat="user_annotation") for at, name in enumerate(names)]
    (recording,) = read(write(path / "rank0.json", text(*ranges)))
    return recording.tables["pipeline"].select(COLUMNS).rows()


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("tracekit.pipeline 2F3", (2, 0, 3, "F", 0)),
        ("tracekit.pipeline 0W11", (0, 0, 11, "W", 0)),
        ("PP:1I4", (1, 0, 4, "I", 0)),
        ("PP:1SEND_F4", (1, 0, 4, "SEND_F", 0)),
        ("PP:3UNSHARD", (3, 0, None, "UNSHARD", 0)),
        ("Forward 5", (None, None, 5, "F", 0)),
        ("Backward 5", (None, None, 5, "B", 0)),
    ],
)
def test_a_range_is_an_action(tmp_path: Path, name: str, row: tuple[object, ...]) -> None:
    assert actions(tmp_path, name) == [row]


@pytest.mark.parametrize(
    "name", ["PP:", "PP:0X1", "tracekit.pipeline F3", "Forward", "Forward pass 5", "PP:(0F1;1B0)OVERLAP_F_B"]
)
def test_other_ranges_are_none(tmp_path: Path, name: str) -> None:
    assert actions(tmp_path, name) == []


def test_torchs_ranges_for_the_same_work_are_left_out_because_they_include_the_wait(tmp_path: Path) -> None:
    assert actions(tmp_path, "PP:0F0", "tracekit.pipeline 0F0", "PP:0SEND_F0") == [
        (0, 0, 0, "F", 1_000),
        (0, 0, 0, "SEND_F", 2_000),
    ]


def test_chunks_count_the_ranks_own_stages(tmp_path: Path) -> None:
    assert [row[:2] for row in actions(tmp_path, "PP:6F0", "PP:2F0", "PP:6F1")] == [(6, 1), (2, 0), (6, 1)]
