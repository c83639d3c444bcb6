"""The command line as a shell sees it: what goes where, and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracekit
from tests.cli.traces import write_run
from tracekit.cli import main, with_default_command


class Shell:
    """Runs `tracekit` in this process with *arguments* and keeps what it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self.monkeypatch.setattr(sys, "argv", ["tracekit", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
        output = self.capsys.readouterr()
        code = exited.value.code
        return int(code or 0), output.out, output.err


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.delenv("TRACEKIT_DEBUG", raising=False)
    return Shell(monkeypatch, capsys)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def test_a_path_alone_is_analyzed(run_folder: Path) -> None:
    assert with_default_command([str(run_folder), "--json"]) == ["analyze", str(run_folder), "--json"]
    assert with_default_command(["gone.json"]) == ["analyze", "gone.json"]
    assert with_default_command(["runs/*"]) == ["analyze", "runs/*"]


@pytest.mark.parametrize("arguments", [[], ["doctor", "x"], ["--version"], ["analize"]])
def test_anything_else_stays(arguments: list[str]) -> None:
    assert with_default_command(arguments) == arguments


def test_help_names_every_command_and_an_example(shell: Shell) -> None:
    code, out, err = shell("--help")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("analyze", "doctor", "convert", "explain", "demo", "Example:"))


@pytest.mark.parametrize("command", ["analyze", "doctor", "convert", "explain", "demo"])
def test_the_help_of_a_command_has_an_example(shell: Shell, command: str) -> None:
    _, out, _ = shell(command, "--help")
    assert "Example" in out
    assert f"tracekit {command}" in out


def test_nothing_heavy_is_imported_for_help() -> None:
    """What makes `tracekit --help` slow is imports: none of these may happen before a command runs."""
    code = "import sys, tracekit.cli; print([m for m in ('polars', 'numpy', 'rich', 'msgspec', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_mistyped_command_is_a_usage_error_with_a_suggestion(shell: Shell) -> None:
    code, out, err = shell("analize")
    assert (code, out) == (2, "")
    assert "Did you mean 'analyze'?" in err


def test_version(shell: Shell) -> None:
    code, out, _ = shell("--version")
    assert code == 0
    assert out.startswith("tracekit ")


def test_a_missing_path_is_one_line_and_exit_code_3(shell: Shell, tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.json")
    code, out, err = shell("analyze", missing)
    assert (code, out) == (3, "")
    assert err == f"error: {missing}: no such file or folder; check the path\n"


def test_an_unexpected_error_is_one_line_that_asks_for_a_report(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_paths: str, **_options: object) -> None:
        raise ZeroDivisionError("by zero\x1b[2J")

    monkeypatch.setattr(tracekit, "open", fails)
    code, out, err = shell("analyze", "x.json")
    assert (code, out) == (4, "")
    assert err.startswith(
        "error: tracekit failed: ZeroDivisionError: by zero�[2J; this is a bug in tracekit: please report it"
    )
    assert err.count("\n") == 1


def test_with_debugging_on_an_unexpected_error_is_raised(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_paths: str, **_options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(tracekit, "open", fails)
    monkeypatch.setenv("TRACEKIT_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["tracekit", "analyze", "x.json"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_control_c_ends_with_130(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_paths: str, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tracekit, "open", interrupted)
    code, out, _ = shell("analyze", "x.json")
    assert (code, out) == (130, "")


def test_a_reader_that_goes_away_ends_it_quietly(run_folder: Path) -> None:
    """``tracekit analyze ... | head -0``"""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "tracekit.cli", "analyze", str(run_folder), "--json"]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


def test_analyze_prints_a_report_and_says_nothing_else(shell: Shell, run_folder: Path) -> None:
    code, out, err = shell("analyze", str(run_folder))
    assert (code, err) == (0, "")
    assert "2 of 2 ranks · 3 steps" in " ".join(out.split())
    assert "\x1b" not in out


def test_a_terminal_without_unicode_gets_what_it_can_show(run_folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "tracekit.cli", "analyze", str(run_folder)]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stderr == b""
    assert b"####" in done.stdout
    assert done.stdout.isascii()


def test_analyze_json(shell: Shell, run_folder: Path) -> None:
    code, out, _ = shell("analyze", str(run_folder), "--json", "--tables", "breakdown")
    value = json.loads(out)
    assert code == 0
    assert [rank["compute_ns"] for rank in value["ranks"]] == [1_200_000, 600_000]
    assert [rank["exposed_comm_ns"] for rank in value["ranks"]] == [300_000, 300_000]
    assert list(value["tables"]) == ["breakdown"]


def test_analyze_of_some_steps_and_ranks(shell: Shell, run_folder: Path) -> None:
    _, out, _ = shell("analyze", str(run_folder), "--json", "--steps", "1-2", "--ranks", "0")
    (rank,) = json.loads(out)["ranks"]
    assert (rank["rank"], rank["compute_ns"]) == (0, 800_000)


def test_analyze_markdown(shell: Shell, run_folder: Path) -> None:
    code, out, _ = shell("analyze", str(run_folder), "--markdown")
    assert code == 0
    assert out.startswith("### tracekit: ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--steps", "7-9"], "no such steps; the run has steps 0-2"),
        (["--ranks", "5"], "no such ranks; the run has ranks 0-1"),
        (["--steps", "x"], "steps are written as 4 or 3-5"),
        (["--json", "--markdown"], "cannot both be printed"),
        (["--tables", "kernels"], "--tables adds to JSON"),
        (["--json", "--tables", "nothing"], "no such table"),
        (["--workers", "0"], "greater than or equal to 1"),
    ],
)
def test_wrong_usage_is_said_with_exit_code_2(shell: Shell, run_folder: Path, options: list[str], words: str) -> None:
    code, out, err = shell("analyze", str(run_folder), *options)
    assert (code, out) == (2, "")
    assert words in err


def test_what_can_be_analysed_is_and_the_rest_is_a_warning(shell: Shell, run_folder: Path) -> None:
    (run_folder / "rank2.json").write_text("not a trace")
    code, out, err = shell("analyze", str(run_folder), "--json")
    assert code == 0
    assert len(json.loads(out)["ranks"]) == 3
    assert err.startswith("warning: rank2.json: ")


def test_recordings_left_out_for_the_same_reason_are_one_warning(shell: Shell, run_folder: Path) -> None:
    for rank in range(2, 7):
        (run_folder / f"rank{rank}.json").write_text("not a trace")
    _, _, err = shell("analyze", str(run_folder), "--json")
    assert err.startswith("warning: rank2.json, rank3.json, rank4.json and 2 more: ")
    assert err.count("\n") == 1


def test_nothing_analysable_is_reported_with_exit_code_3(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0.json").write_text('{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1}]}')
    code, out, err = shell("analyze", str(tmp_path / "run"), "--json")
    assert code == 3
    assert json.loads(out)["ranks"][0]["status"] == "empty"
    assert "nothing could be analysed" in err


def test_doctor(shell: Shell, run_folder: Path) -> None:
    code, out, err = shell("doctor", str(run_folder))
    assert (code, err) == (0, "")
    assert "+  2 of 2 ranks" in out
    assert "try: record_shapes=True" in out


def test_doctor_json(shell: Shell, run_folder: Path) -> None:
    code, out, _ = shell("doctor", str(run_folder), "--json")
    assert code == 0
    assert "shapes" in {lack["key"] for lack in json.loads(out)["lacks"]}


def test_convert_prints_the_folder_and_says_what_it_wrote(shell: Shell, run_folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "tables"
    code, out, err = shell("convert", str(run_folder), "-o", str(target))
    assert (code, out) == (0, f"{target}\n")
    assert "wrote " in err
    assert list(target.rglob("*.parquet"))


def test_convert_never_writes_into_a_folder_that_holds_something(shell: Shell, run_folder: Path) -> None:
    code, out, err = shell("convert", str(run_folder), "-o", str(run_folder))
    assert (code, out) == (2, "")
    assert "the folder is not empty" in err


def test_convert_to_where_nothing_can_be_written(shell: Shell, run_folder: Path) -> None:
    code, _, err = shell("convert", str(run_folder), "-o", str(run_folder / "rank0.json"))
    assert code == 2
    assert "cannot be written" in err


def test_a_converted_run_is_analyzed_as_its_traces_are(shell: Shell, run_folder: Path, tmp_path: Path) -> None:
    shell("convert", str(run_folder), "-o", str(tmp_path / "tables"))
    of_traces = json.loads(shell("analyze", str(run_folder), "--json")[1])
    of_tables = json.loads(shell("analyze", str(tmp_path / "tables"), "--json")[1])
    assert of_tables["ranks"] == of_traces["ranks"]
    assert of_tables["findings"] == of_traces["findings"]


def test_explain_lists_and_prints(shell: Shell) -> None:
    code, out, _ = shell("explain")
    first = out.split()[0]
    assert code == 0
    assert first.startswith("TK-")
    code, out, _ = shell("explain", first.lower())
    assert code == 0
    assert out.startswith(f"# {first}: ")
    assert shell("explain", first.removeprefix("TK-"))[1] == out


def test_explain_suggests_the_nearest(shell: Shell) -> None:
    code, out, err = shell("explain", "TK-HOST-BUOND")
    assert (code, out, err) == (2, "", "error: TK-HOST-BUOND: no such code; did you mean TK-HOST-BOUND?\n")


def test_demo(shell: Shell) -> None:
    code, out, err = shell("demo")
    assert code == 0
    assert "2 of 2 ranks" in out
    assert "How to read it" in err
    assert max(map(len, (out + err).splitlines())) <= 80
