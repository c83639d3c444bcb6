"""The cache: found again by content, whole or not at all, safe beside others."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from tracekit.readers.recording import Info, Recording
from tracekit.store import index, recordings
from tracekit.store.cache import Cache, identity

RECORDING = Recording(Info(rank=3), {"events": pl.DataFrame({"start_ns": [1, 2]})})


def entry(cache: Cache, key: str) -> Path:
    folder = cache.new()
    recordings.write([RECORDING], folder)
    return cache.commit(folder, key)


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    written = entry(cache, "abcd")
    assert cache.find("abcd") == written
    assert index.infos(written) == (Info(rank=3),)
    assert recordings.scan(written, 0, "events").collect().to_dict(as_series=False) == {"start_ns": [1, 2]}
    assert cache.find("abce") is None


def test_an_entry_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    (entry(cache, "abcd") / "recordings.json").unlink()
    assert cache.find("abcd") is None
    assert cache.find("abcd") is None
    assert entry(cache, "abcd") == cache.find("abcd")


def test_an_entry_of_another_version_is_not_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    file = entry(cache, "abcd") / "recordings.json"
    file.write_text(file.read_text().replace(f'"format":{index.FORMAT_VERSION}', '"format":0'))
    assert cache.find("abcd") is None


def test_who_comes_second_leaves_the_first_in_place(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = entry(cache, "abcd")
    inode = (first / "recordings.json").stat().st_ino
    assert entry(cache, "abcd") == first
    assert (first / "recordings.json").stat().st_ino == inode
    assert list((tmp_path / "new").iterdir()) == []


def test_identity_follows_the_content_not_the_name(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in "abc")
    a.write_bytes(b"trace")
    b.write_bytes(b"trace")
    c.write_bytes(b"other")
    assert identity(a) == identity(b) != identity(c)


def test_a_large_file_is_known_by_samples_and_time(tmp_path: Path) -> None:
    file = tmp_path / "big"
    file.write_bytes(bytes(5 << 20))
    before = identity(file)
    os.utime(file, ns=(1, 1))
    touched = identity(file)
    with file.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"x")
    os.utime(file, ns=(1, 1))
    assert len({before, touched, identity(file)}) == 3
