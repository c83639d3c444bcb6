"""The documentation's generator: its parts, and that every code, command and exit code has its place."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from tests.conftest import ROOT
from tracekit.analyses import ANALYSES
from tracekit.cli import COMMANDS
from tracekit.engine.derived import DERIVED
from tracekit.model.errors import ExitCode
from tracekit.model.metric import METRICS
from tracekit.model.table import DType
from tracekit.model.tables import TABLES


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """``docs/generate.py``, which is a script and in no package."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        (pl.Int64, "int64"),
        (pl.String(), "string"),
        (pl.Enum(["a"]), "category"),
        (pl.Categorical(), "category"),
        (pl.List(pl.String), "list of string"),
    ],
)
def test_types_in_words(generate: ModuleType, dtype: DType, words: str) -> None:
    assert generate.type_name(dtype) == words


def test_a_bar_in_a_cell_does_not_end_it(generate: ModuleType) -> None:
    assert generate.grid(("a", "b"), [("1 | 2", "3")]) == "| a | b |\n| --- | --- |\n| 1 \\| 2 | 3 |"


def test_a_passage_is_replaced_and_the_rest_stays(generate: ModuleType) -> None:
    before = "top\n<!-- generated: x -->\nold\\1\n<!-- end -->\n<!-- generated: y -->\nkept\n<!-- end -->\n"
    after = "top\n<!-- generated: x -->\nnew\\1\n<!-- end -->\n<!-- generated: y -->\nkept\n<!-- end -->\n"
    assert generate.with_passage(before, "x", "new\\1") == after
    assert generate.with_passage(after, "x", "new\\1") == after


def test_a_passage_without_its_marks_is_an_error(generate: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"0 passages are marked `<!-- generated: x -->`"):
        generate.with_passage("<!-- generated: y -->\n<!-- end -->", "x", "")


def test_stale_files_are_named(generate: ModuleType, tmp_path: Path) -> None:
    current, old, missing = (tmp_path / name for name in ("current", "old", "missing"))
    current.write_text("text")
    old.write_text("other")
    assert generate.stale({current: "text", old: "text", missing: "text"}) == [old, missing]


def test_the_data_dictionary_has_every_column(generate: ModuleType) -> None:
    text = generate.data_dictionary()
    for table in (*TABLES, *(a.table for a in (*DERIVED, *ANALYSES))):
        assert f"### `{table.name}`\n" in text
        assert [column.name for column in table.columns if f"| `{column.name}` |" not in text] == []


def test_the_reference_has_every_entry(generate: ModuleType) -> None:
    assert [m.key for m in METRICS if f"| `{m.key}` |" not in generate.metrics()] == []
    assert [a.name for a in ANALYSES if f"## `{a.name}`\n" not in generate.analyses()] == []
    assert [c.__name__ for c in COMMANDS if f"Usage: tracekit {c.__name__}" not in generate.commands()] == []
    assert list(generate.EXIT_CODES) == list(ExitCode)


def test_every_code_has_a_page_and_every_page_a_code(generate: ModuleType) -> None:
    assert sorted(generate.codes()) == sorted(code for analysis in ANALYSES for code in analysis.codes)
