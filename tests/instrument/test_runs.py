"""Real runs of two processes: an untouched script, a killed rank."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import polars as pl

import tracekit
from tests.instrument.scripts import KILLED, PLAIN, torchrun

TRACEKIT = (sys.executable, "-m", "tracekit.cli")


def test_an_untouched_script_is_recorded_on_every_rank(tmp_path: Path) -> None:
    out = tmp_path / "traces"
    record = (*TRACEKIT, "record", "--active", "2", "--out", str(out), "--")
    ended = torchrun(PLAIN, tmp_path, "8", before=record)
    assert ended.returncode == 0, ended.stderr
    assert f"recorded 2 traces in {out}; next: tracekit analyze {out}" in ended.stderr
    run = tracekit.open(out, cache=False)
    assert run.ranks.select("rank", "rank_source", "status", "world_size").rows() == [
        (0, "sidecar", "read", 2),
        (1, "sidecar", "read", 2),
    ]
    assert run.steps.group_by("rank").len().sort("rank").collect().rows() == [(0, 2), (1, 2)]
    known = (
        run.collectives.filter(op="all_reduce")
        .sort("start_ns")
        .select("rank", "group_ranks", "seq", "dtype", "in_bytes")
        .collect()
    )
    size = 4 * (64 * 64 + 64)
    assert known.drop("seq").unique().sort("rank").rows() == [(rank, "[0, 1]", "Float", size) for rank in (0, 1)]
    assert known.filter(rank=0)["seq"].to_list() == known.filter(rank=1)["seq"].to_list()
    clock = run.sidecars[1, 0].clock
    assert clock is not None
    assert abs(clock.offset_ns) <= clock.error_ns + 100_000  # one machine, one clock


def test_a_script_with_too_few_steps_is_told_of(tmp_path: Path) -> None:
    record = (*TRACEKIT, "record", "--skip", "50", "--out", str(tmp_path / "traces"), "--")
    ended = torchrun(PLAIN, tmp_path, "2", before=record, ranks=1)
    assert ended.returncode == 0, ended.stderr
    assert "nothing was recorded" in ended.stderr


def test_a_command_that_fails_keeps_its_exit_code(tmp_path: Path) -> None:
    ended = torchrun(
        "raise SystemExit(7)", tmp_path, before=(*TRACEKIT, "record", "--", sys.executable, "-c", "exit(7)")
    )
    assert ended.returncode == 7


def test_a_rank_that_is_killed_costs_its_unfinished_step(tmp_path: Path) -> None:
    out = tmp_path / "traces"
    torchrun(KILLED, tmp_path, str(int(signal.SIGKILL)), str(out))
    run = tracekit.open(out, cache=False)
    assert run.ranks.select("rank", "status").rows() == [(0, "read"), (1, "truncated")]
    assert run.events.filter(pl.col("rank") == 0, kind="cpu_op").select(pl.len()).collect().item() > 100
    steps = complete_steps(run)
    assert steps[1] == 4
    assert steps[0] in {4, 5}  # whether it still got what rank 1 had sent


def test_a_rank_that_is_told_to_end_writes_its_trace_first(tmp_path: Path) -> None:
    out = tmp_path / "traces"
    torchrun(KILLED, tmp_path, str(int(signal.SIGTERM)), str(out))
    run = tracekit.open(out, cache=False)
    assert run.ranks.select("rank", "status").rows() == [(0, "read"), (1, "read")]
    assert complete_steps(run)[1] == 4


def complete_steps(run: tracekit.Run) -> dict[int, int]:
    return dict(run.steps.filter("complete").group_by("rank").len().sort("rank").collect().rows())
