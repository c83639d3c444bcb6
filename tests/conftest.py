"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("TRACEKIT_CORPUS", ROOT.parent / "shared" / "corpus"))

settings.register_profile("tracekit", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tracekit")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests neither see nor fill the cache of the person who runs them."""
    monkeypatch.setenv("TRACEKIT_CACHE", str(tmp_path_factory.getbasetemp() / "tracekit-cache"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real traces. Without it the tests that need it are skipped, and the summary says so."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real traces is not here: set TRACEKIT_CORPUS")
    return CORPUS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not CORPUS.is_dir():
        terminalreporter.section("THE CORPUS OF REAL TRACES IS MISSING", red=True)
        terminalreporter.line(
            "Set TRACEKIT_CORPUS to its folder. Without it the readers are not proven: this run does not count."
        )
