"""From paths to a run: what is found, what is read, what is said of what could not be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.readers.kineto_text import HEADER, event, kernel, step, text, write
from tracekit.engine import executors
from tracekit.engine.assemble import Loaded
from tracekit.engine.load import FileProgress, Options, load
from tracekit.engine.messages import Request
from tracekit.model.errors import UnreadableError, UsageError
from tracekit.readers.recording import Recording
from tracekit.store import recordings
from tracekit.store.cache import Cache


def rank_text(rank: int, *events: dict[str, object], world_size: int = 2) -> str:
    header = {**HEADER, "distributedInfo": {"rank": rank, "world_size": world_size}}
    return text(*(events or (step(0, 100, 50), kernel(ts=110 + rank))), header=header)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    for rank in (0, 1):
        write(tmp_path / "run" / f"rank{rank}.json", rank_text(rank))
    return tmp_path / "run"


def load_without_cache(*paths: Path | str) -> Loaded:
    return load(paths, Options(cache=None))


def ranks(loaded: Loaded, *columns: str) -> list[tuple[object, ...]]:
    return loaded.tables.ranks.select(columns).rows()


def test_times_count_from_the_runs_origin(run_folder: Path) -> None:
    events = load_without_cache(run_folder).tables["events"].filter(kind="kernel").collect()
    assert events.select("rank", "window", "start_ns").rows() == [(0, 0, 10_000), (1, 0, 11_000)]


def test_files_folders_and_globs_name_each_file_once(run_folder: Path) -> None:
    loaded = load_without_cache(run_folder, run_folder / "rank1.json", f"{run_folder}/rank*.json")
    assert ranks(loaded, "rank", "source") == [(0, "rank0.json"), (1, "rank1.json")]


def test_the_second_opening_reads_nothing(run_folder: Path, tmp_path: Path) -> None:
    states: list[tuple[str, str]] = []

    def progress(file: FileProgress) -> None:
        if file.state != "reading":
            states.append((file.source, file.state))

    options = Options(cache=Cache(tmp_path / "cache"), progress=progress)
    first, second = load([run_folder], options), load([run_folder], options)
    assert states == [
        ("rank0.json", "read"),
        ("rank1.json", "read"),
        ("rank0.json", "cached"),
        ("rank1.json", "cached"),
    ]
    assert first.tables["events"].collect().equals(second.tables["events"].collect())
    assert first.tables.ranks.equals(second.tables.ranks)


def test_ranks_can_be_chosen(run_folder: Path) -> None:
    loaded = load([run_folder], Options(cache=None, ranks=frozenset({1})))
    assert ranks(loaded, "rank") == [(1,)]
    assert loaded.tables["events"].collect()["rank"].unique().to_list() == [1]


def test_a_cache_that_cannot_be_written_is_done_without(run_folder: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    loaded = load([run_folder], Options(cache=Cache(blocked)))
    assert loaded.tables["events"].collect().height == 4
    assert "read without it" in loaded.notes[-1]


def test_a_cache_that_fills_up_while_writing_is_done_without(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = recordings.write

    def full(found: Sequence[Recording], folder: Path) -> None:
        if tmp_path / "cache" in folder.parents:
            raise OSError(28, "No space left on device")
        real(found, folder)

    monkeypatch.setattr(recordings, "write", full)
    loaded = load([run_folder], Options(cache=Cache(tmp_path / "cache")))
    assert loaded.tables["events"].collect().height == 4
    assert "No space left on device" in loaded.notes[-1]


class TestBadInput:
    def test_one_bad_rank_costs_one_rank(self, run_folder: Path) -> None:
        write(run_folder / "rank2.json", b"\x80pickle")
        write(run_folder / "rank3.json", b"")
        loaded = load_without_cache(run_folder)
        assert ranks(loaded, "source", "status") == [
            ("rank0.json", "read"),
            ("rank3.json", "empty"),
            ("rank1.json", "read"),
            ("rank2.json", "failed"),
        ] or sorted(ranks(loaded, "source", "status")) == [
            ("rank0.json", "read"),
            ("rank1.json", "read"),
            ("rank2.json", "failed"),
            ("rank3.json", "empty"),
        ]
        assert "pickle" in loaded.tables.ranks.filter(source="rank2.json")["reason"].item()

    def test_other_json_in_the_folder_is_left_out_with_a_word(self, run_folder: Path) -> None:
        write(run_folder / "config.json", "{}")
        loaded = load_without_cache(run_folder)
        assert "config.json holds no trace and was left out" in loaded.notes
        assert loaded.tables.ranks.height == 2

    def test_a_folder_of_nothing_but_other_json_says_so_of_each_file(self, tmp_path: Path) -> None:
        write(tmp_path / "config.json", "{}")
        assert ranks(load_without_cache(tmp_path), "source", "status") == [("config.json", "failed")]

    def test_mixed_runs_are_told_apart(self, run_folder: Path) -> None:
        write(run_folder / "old.json", rank_text(0, world_size=8))
        loaded = load_without_cache(run_folder)
        assert ranks(loaded, "source", "status") == [
            ("rank0.json", "read"),
            ("rank1.json", "read"),
            ("old.json", "set_aside"),
        ]
        assert loaded.tables["events"].collect().height == 4

    def test_a_single_named_file_that_is_no_trace_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableError, match="no traceEvents"):
            load_without_cache(write(tmp_path / "x.json", "{}"))

    @pytest.mark.parametrize(
        ("path", "says"), [("nowhere", "no such file"), ("no*thing", "nothing matches"), ("", "no traces")]
    )
    def test_paths_that_lead_nowhere(self, tmp_path: Path, path: str, says: str) -> None:
        with pytest.raises(UnreadableError, match=says):
            load_without_cache(tmp_path / path)
        with pytest.raises(UsageError, match="no path"):
            load_without_cache()


class TestChildren:
    """Reading in child processes gives what reading here gives."""

    def test_same_outcome(self, run_folder: Path, tmp_path: Path) -> None:
        here = load([run_folder], Options(cache=Cache(tmp_path / "a"), workers=1)).tables["events"].collect()
        children = load([run_folder], Options(cache=Cache(tmp_path / "b"), workers=2)).tables["events"].collect()
        assert here.equals(children)

    def test_a_child_that_dies_costs_its_file(
        self, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The executable is replaced by one that ends at once, as a child does that the kernel kills."""
        monkeypatch.setattr(sys, "executable", "/bin/false")
        folders = [tmp_path / name for name in "ab"]
        for folder in folders:
            folder.mkdir()
        requests = [Request(str(run_folder / f"rank{rank}.json"), str(folders[rank])) for rank in (0, 1)]
        outcomes = executors.run(requests, [1, 1], 2, lambda _index, _bytes: None)
        assert ["died" in outcome.error for outcome in outcomes] == [True, True]


def test_nothing_in_the_trace_folder_is_written(run_folder: Path) -> None:
    before = sorted(path.name for path in run_folder.rglob("*"))
    run_folder.chmod(0o555)
    load_without_cache(run_folder)
    run_folder.chmod(0o755)
    assert sorted(path.name for path in run_folder.rglob("*")) == before


def test_a_memory_table_of_two_ranks_counts_from_the_origin(tmp_path: Path) -> None:
    def memory(ts: float) -> dict[str, object]:
        return {"ph": "i", "name": "[memory]", "ts": ts, "args": {"Bytes": 1, "Device Type": 0, "Device Id": 0}}

    for rank in (0, 1):
        write(tmp_path / f"rank{rank}.json", rank_text(rank, event(ts=100), memory(105 + rank)))
    assert load_without_cache(tmp_path).tables["memory"].select(
        "rank", "time_ns", pl.col("device")
    ).collect().rows() == [
        (0, 5000, -1),
        (1, 6000, -1),
    ]
