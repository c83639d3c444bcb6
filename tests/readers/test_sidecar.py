"""What is read of the file beside a trace, and what is said of one that cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tracekit
from tests.readers.kineto_text import event, step, text, write
from tracekit.model.records import Sidecar, encode
from tracekit.readers import sidecar

TRACE = text(event(ts=1.0, dur=5.0), step(1, 0.0, 10.0), header={"schemaVersion": 1})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "rank3.pt.trace.json.gz", TRACE)
    (tmp_path / "rank3.tracekit.json").write_bytes(encode(Sidecar(version=1, rank=3, world_size=8, backend="gloo")))
    return tmp_path


def test_a_sidecar_is_written_as_it_is_read(folder: Path) -> None:
    found, note = sidecar.beside(folder / "rank3.pt.trace.json.gz")
    assert found == Sidecar(version=1, rank=3, world_size=8, backend="gloo")
    assert note == ""


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"{", "cannot be read and was left out"),
        (b"[]", "cannot be read and was left out"),
        (b"\xff\xfe", "cannot be read and was left out"),
        (b'{"version": 1, "rank": "three"}', "cannot be read and was left out"),
        (b'{"version": 2, "tracekit": "9.0"}', r"written by a newer tracekit \(9.0\)"),
    ],
)
def test_one_that_cannot_be_used_costs_itself_and_is_told(folder: Path, content: bytes, note: str) -> None:
    (folder / "rank3.tracekit.json").write_bytes(content)
    run = tracekit.open(folder, cache=False)
    assert re.search(note, " ".join(run.notes))
    assert run.sidecars == {}
    assert run.ranks["rank"].to_list() == [3]  # by the file's name


def test_fields_of_later_versions_are_passed_over(folder: Path) -> None:
    (folder / "rank3.tracekit.json").write_bytes(b'{"version": 1, "rank": 3, "flavour": "strange"}')
    assert tracekit.open(folder, cache=False).sidecars[3, 0].rank == 3


def test_a_sidecar_given_by_name_stands_for_its_trace(folder: Path) -> None:
    run = tracekit.open(*folder.iterdir(), cache=False)
    assert run.ranks.select("source", "rank_source").rows() == [("rank3.pt.trace.json.gz", "sidecar")]


def test_a_converted_run_keeps_its_sidecars(folder: Path, tmp_path: Path) -> None:
    from tracekit.store.runs import write_run

    run = tracekit.open(folder, cache=False)
    write_run(run, tmp_path / "kept")
    assert tracekit.open(tmp_path / "kept").sidecars == run.sidecars
    assert tracekit.open(tmp_path / "kept", ranks=[0, 3]).sidecars == run.sidecars
