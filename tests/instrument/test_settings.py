"""What to record is checked when it is said, and travels to other processes as JSON."""

from __future__ import annotations

import pytest

from tracekit.instrument.settings import SettingsError, from_environment, make, with_ranks


@pytest.mark.parametrize(
    ("ranks", "recorded"),
    [
        ("all", [0, 1, 2, 3, 4]),
        ("every:2", [0, 2, 4]),
        ([1, 3], [1, 3]),
        (range(2), [0, 1]),
        ("every:1", [0, 1, 2, 3, 4]),
    ],
)
def test_which_ranks_are_recorded(ranks: object, recorded: list[int]) -> None:
    settings = make({"ranks": ranks})
    assert [rank for rank in range(5) if settings.records(rank)] == recorded


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"activ": 3}, "unknown setting 'activ'"),
        ({"active": 0}, "active=0"),
        ({"warmup": -1}, "warmup=-1"),
        ({"skip": 1.5}, "skip=1.5"),
        ({"ranks": "some"}, "ranks='some'"),
        ({"ranks": "every:0"}, "ranks='every:0'"),
    ],
)
def test_a_setting_that_cannot_be_is_named(given: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        make(given)


def test_settings_travel_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make({"out": "there", "active": 5, "ranks": [0, 3], "strategy": {"tp": 2}})
    monkeypatch.setenv("TRACEKIT_RECORD", settings.to_json())
    assert from_environment() == settings


def test_ranks_on_a_command_line() -> None:
    assert with_ranks({"ranks": "0,2-4"}) == {"ranks": [0, 2, 3, 4]}
    assert with_ranks({"ranks": "every:8"}) == {"ranks": "every:8"}
