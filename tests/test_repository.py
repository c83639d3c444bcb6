"""The repository itself: its layout, its limits, and what must never be in it."""

from __future__ import annotations

import ast
import gzip
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 60
SOURCES = ("analyses", "benchmarks", "docs", "examples", "instrument", "sample_traces", "tracekit")
TABLE_CODE = ("analyses", "tracekit/engine")
ROW_LOOPS = {"iter_rows", "iter_slices", "map_elements", "map_rows", "apply", "iterrows", "itertuples"}
PRIVATE = re.compile(rb"(?<![\w./-])/(?:home|root|Users|work|mnt|srv)/\w|(?:index-url|find-links|trusted-host)[ =]")
"""Absolute paths of somebody's machine, and where somebody's packages come from."""


def tracked() -> list[Path]:
    """Files that git tracks or would add; links to files and folders are left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Relative name and text of every Python file below *folders*; the links in ``tracekit`` are not followed."""
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        if not any(parent.is_symlink() for parent in path.parents):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("tracekit/analyses", "../analyses"),
        ("tracekit/instrument", "../instrument"),
        ("docs/reference/findings", "../../analyses/pages"),
    ],
)
def test_links_are_relative_and_lead_somewhere(link: str, target: str) -> None:
    assert str((ROOT / link).readlink()) == target
    assert (ROOT / link).is_dir()


def test_nothing_names_a_machine() -> None:
    found = []
    for path in tracked():
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        if path != Path(__file__) and (match := PRIVATE.search(content)):
            found.append(f"{path.relative_to(ROOT)}: {match[0].decode()}")
    assert found == []


def test_files_stay_short() -> None:
    lengths = {name: len(text.splitlines()) for name, text in sources(*SOURCES)}
    assert {name: lines for name, lines in lengths.items() if lines > LINES_OF_A_FILE} == {}


def test_functions_stay_short() -> None:
    long = {
        f"{name}:{node.name}": node.end_lineno - node.lineno + 1
        for name, text in sources(*SOURCES, "tests")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_tables_are_not_walked_row_by_row() -> None:
    walked = [
        f"{name}:{node.lineno}: {node.attr}"
        for name, text in sources(*TABLE_CODE)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ROW_LOOPS
    ]
    assert walked == []
