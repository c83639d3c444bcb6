"""The Python API as a notebook uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import tracekit
from tests.conftest import ROOT
from tracekit.model.tables import COLLECTIVES, EVENTS, STEPS

SAMPLE = ROOT / "sample_traces" / "ddp"


def test_tables_have_the_documented_columns() -> None:
    run = tracekit.open(SAMPLE, cache=False)
    assert run.events.collect_schema() == EVENTS.schema
    assert run.collectives.collect_schema() == COLLECTIVES.schema
    assert run.steps.collect_schema() == STEPS.schema


def test_tables_outlive_the_run() -> None:
    assert tracekit.open(SAMPLE, cache=False).events.select(pl.len()).collect().item() > 1000


def test_an_analysis_of_some_steps() -> None:
    run = tracekit.open(SAMPLE, cache=False)
    numbers = sorted(run.steps.collect()["step"].unique())
    report = run.analyze(steps=numbers[1:2])
    assert report.steps == 1
    assert report.tables["step_breakdown"]["step"].unique().to_list() == numbers[1:2]


def test_a_run_says_what_it_is() -> None:
    run = tracekit.open(SAMPLE, cache=False)
    assert repr(run).startswith(f"<tracekit run {str(SAMPLE)!r}: 2 of 2 ranks, ")
    assert "<table" in run._repr_html_()


def test_a_run_is_a_mapping_of_its_tables() -> None:
    run = tracekit.open(SAMPLE, cache=False)
    assert list(run) == ["ranks", "events", "collectives", "steps", "pipeline", "memory"]
    assert len(run) == 6
    assert run.get("nonsense") is None


def test_a_report_says_what_it_is() -> None:
    report = tracekit.open(SAMPLE, cache=False).analyze()
    assert repr(report).startswith(f"<tracekit report {str(SAMPLE)!r}: step ")


def test_many_paths_are_named_by_the_first() -> None:
    """Of those that a shell makes of a pattern, the others would fill the screen."""
    paths = [SAMPLE / "rank0.pt.trace.json.gz"] * 3
    assert tracekit.open(*paths, SAMPLE, cache=False).title == f"{paths[0]} and 3 more"


def test_an_unknown_table_is_an_error_that_names_the_tables() -> None:
    with pytest.raises(KeyError, match="there are ranks, events"):
        tracekit.open(SAMPLE, cache=False)["nonsense"]


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(tracekit.TracekitError, match="no such file or folder; check the path"):
        tracekit.open(tmp_path / "nowhere")


def test_a_script_without_a_main_guard_may_use_reading_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import tracekit\nprint(tracekit.open({str(SAMPLE)!r}, cache=False, workers=2).ranks.height)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


def test_importing_tracekit_imports_nothing_heavy() -> None:
    code = "import sys, tracekit; print(sorted({'polars', 'numpy', 'rich', 'typer', 'textual'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_opening_cached_tables_imports_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE", str(tmp_path))
    code = f"import sys, tracekit; tracekit.open({str(SAMPLE)!r}); print('tracekit.readers.kineto' in sys.modules)"
    answers = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert answers == ["True\n", "False\n"]
