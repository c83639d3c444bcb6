"""Real recordings of one process: what `profile` writes, what the hooks add, and what happens when it is used wrongly."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

import tracekit
from tracekit.instrument import Profile, profile, routing, say, span

Step = Callable[[], None]


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    """Every warning is told, though an earlier test told it as well."""
    say._told.clear()
    caplog.set_level(logging.INFO, logger="tracekit")
    logging.getLogger("tracekit").propagate = True


def training(layers: int = 1) -> tuple[nn.Module, Optimizer, Step]:
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(layers)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


def steps_of(folder: Path) -> list[int]:
    return tracekit.open(folder, cache=False).steps.filter("complete").collect()["step"].to_list()


def names_of(folder: Path) -> list[str]:
    names = tracekit.open(folder, cache=False).events.filter(kind="annotation").select(pl.col("name").cast(pl.String))
    return names.unique().sort("name").collect()["name"].to_list()


def sidecar_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "rank0.tracekit.json").read_text())
    return found


def test_a_loop_is_recorded_after_its_warm_up(tmp_path: Path) -> None:
    _, _, step = training()
    with profile(tmp_path / "out", skip=1, warmup=2, active=3) as p:
        for _ in range(10):
            with span("all of it"):
                step()
            p.step()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "rank0.pt.trace.json.gz",
        "rank0.tracekit.json",
    ]
    assert len(steps_of(tmp_path / "out")) == 3
    assert "all of it" in names_of(tmp_path / "out")
    assert (sidecar_of(tmp_path / "out")["first_step"], sidecar_of(tmp_path / "out")["steps"]) == (3, 3)


def test_a_decorated_function_is_a_step_and_calls_itself_within_one(tmp_path: Path) -> None:
    _, _, step = training()

    recording = profile(tmp_path, warmup=1, active=2)

    @recording
    def train(again: bool) -> str:
        step()
        return train(again=False) if again else "done"

    assert [train(again=True) for _ in range(4)] == ["done"] * 4
    recording.stop()
    assert len(steps_of(tmp_path)) == 2


def test_a_decorated_coroutine_is_a_step(tmp_path: Path) -> None:
    _, _, step = training()

    recording = profile(tmp_path, warmup=0, active=1)

    @recording
    async def train() -> None:
        await asyncio.sleep(0)
        step()

    asyncio.run(train())
    recording.stop()
    assert len(steps_of(tmp_path)) == 1


def test_each_repetition_is_a_file_and_a_window(tmp_path: Path) -> None:
    _, _, step = training()
    with profile(tmp_path, warmup=1, active=1, repeat=2) as p:
        for _ in range(4):
            step()
            p.step()
    run = tracekit.open(tmp_path, cache=False)
    assert run.ranks.select("rank", "window", "status").rows() == [(0, 0, "read"), (0, 1, "read")]


def test_a_loop_that_ends_early_keeps_its_completed_steps(tmp_path: Path) -> None:
    _, _, step = training()
    with profile(tmp_path, warmup=1, active=5) as p:
        for _ in range(3):
            step()
            p.step()
    assert len(steps_of(tmp_path)) == 2
    assert sidecar_of(tmp_path)["complete"] is False


def test_an_error_in_the_loop_passes_and_what_was_recorded_is_kept(tmp_path: Path) -> None:
    _, _, step = training()
    with suppress(ZeroDivisionError), profile(tmp_path, warmup=1, active=5) as p:
        for number in range(4):
            _ = 1 // (2 - number)
            step()
            p.step()
    assert len(steps_of(tmp_path)) == 1


def test_the_hooks_name_what_torch_does_not(tmp_path: Path) -> None:
    model, optimizer, _ = training(layers=2)
    with profile(tmp_path, warmup=1, active=1, module_depth=1, flops=True, tokens_per_step=2, strategy={"dp": 1}) as p:
        for _ in range(2):
            checkpoint(model, torch.ones(2, 8, requires_grad=True), use_reentrant=False).sum().backward()
            checkpoint(model, torch.ones(2, 8, requires_grad=True), use_reentrant=True).sum().backward()
            routing("layer 0", [3, 1])
            optimizer.step()
            gc.collect()
            torch.save(model.state_dict(), tmp_path / "checkpoint.bin")
            p.step()
    names = names_of(tmp_path)
    assert {"tracekit.recompute", "tracekit.save", "tracekit.gc generation 2"} <= set(names)
    assert "tracekit.gc generation 0" not in names
    assert {f"tracekit.{way} {layer}" for way in ("forward", "backward") for layer in (0, 1)} <= set(names)
    sidecar = sidecar_of(tmp_path)
    # 256 a product: 2 forward, 4 backward and 2 again, less the last of them, which the new kind of checkpoint leaves out
    assert sidecar["model"] == {"parameters": 144, "parameter_bytes": 576, "flops_per_step": 3840, "tokens_per_step": 2}
    assert sidecar["strategy"] == {"recompute": True, "precision": "float32", "declared": {"dp": 1}}
    assert sidecar["routing"] == [{"layer": "layer 0", "call": call, "tokens": [3, 1]} for call in (0, 1)]


def test_hooks_leave_nothing_behind(tmp_path: Path) -> None:
    before = torch.save, list(gc.callbacks), checkpoint
    _, _, step = training()
    with profile(tmp_path, warmup=0, active=1) as p:
        step()
        p.step()
    assert (torch.save, list(gc.callbacks), checkpoint) == before


def test_off_means_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT", "0")
    with profile(tmp_path / "out") as p:
        p.step()
    assert not (tmp_path / "out").exists()


def test_a_rank_that_is_not_asked_for_writes_nothing(tmp_path: Path) -> None:
    with profile(tmp_path / "out", ranks=[3]) as p:
        p.step()
    assert not (tmp_path / "out").exists()


def test_the_launchers_settings_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEKIT_RECORD", json.dumps({"out": str(tmp_path / "theirs"), "warmup": 0, "active": 1}))
    _, _, step = training()
    with profile(tmp_path / "mine", active=7) as p:
        step()
        p.step()
    assert len(steps_of(tmp_path / "theirs")) == 1


def test_a_mistake_in_the_environment_is_told_and_the_scripts_own_settings_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEKIT_RECORD", "{")
    _, _, step = training()
    with profile(tmp_path, warmup=0, active=1) as p:
        step()
        p.step()
    assert "TRACEKIT_RECORD is no JSON" in caplog.text
    assert len(steps_of(tmp_path)) == 1


def test_a_second_recording_at_once_is_not_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, _, step = training()
    with profile(tmp_path / "one", warmup=0, active=1) as p, profile(tmp_path / "two") as q:
        step()
        q.step()
        p.step()
    assert "another recording is under way" in caplog.text
    assert len(steps_of(tmp_path / "one")) == 1
    assert not (tmp_path / "two").exists()


def test_step_outside_a_recording_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    recording = Profile(profile().settings)
    recording.step()
    recording.step()
    assert caplog.text.count("step() outside a recording") == 1


def test_an_output_folder_that_is_a_file_costs_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "out").write_text("")
    with profile(tmp_path / "out") as p:
        p.step()
    assert "the recording did not work and was left out" in caplog.text


def test_a_full_disk_costs_the_trace_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tracekit.instrument.torch_profiler.shutil.copyfileobj", full)
    _, _, step = training()
    with profile(tmp_path / "out", warmup=0, active=1) as p:
        step()
        p.step()
    assert "No space left on device" in caplog.text
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rank0.journal.json"]


class Trainer:
    def __call__(self) -> None: ...


def loader() -> Any:
    yield 1


@pytest.mark.parametrize(("wrong", "told"), [(Trainer, "not a class"), (loader, "is a generator"), (3, "not int")])
def test_decorating_the_wrong_thing_is_told(wrong: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        profile(wrong)
