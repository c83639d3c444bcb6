"""Folders that people keep: what is written opens again, as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracekit
from tests.conftest import ROOT
from tracekit.model.errors import UnreadableError, UsageError
from tracekit.store.index import is_run
from tracekit.store.runs import write_run

SAMPLE = ROOT / "sample_traces" / "ddp"


def test_a_converted_run_opens_as_it_was(tmp_path: Path) -> None:
    run = tracekit.open(SAMPLE, cache=False)
    files = write_run(run, tmp_path / "kept")
    assert [str(file.relative_to(tmp_path / "kept")) for file in files][:4] == [
        "ranks.parquet",
        "events/rank-0.parquet",
        "events/rank-1.parquet",
        "collectives/rank-0.parquet",
    ]
    again = tracekit.open(tmp_path / "kept")
    assert again.ranks.equals(run.ranks)
    assert again.events.collect().equals(run.events.collect())
    assert tracekit.open(tmp_path / "kept", ranks=[1]).events.collect()["rank"].unique().to_list() == [1]


def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="not empty; give a new folder"):
        write_run(tracekit.open(SAMPLE, cache=False), tmp_path)
    assert not is_run(tmp_path)


def test_a_folder_of_another_version_says_so(tmp_path: Path) -> None:
    write_run(tracekit.open(SAMPLE, cache=False), tmp_path / "old")
    (tmp_path / "old" / "tracekit.json").write_text('{"format": 99}')
    with pytest.raises(UnreadableError, match="format 99"):
        tracekit.open(tmp_path / "old")
