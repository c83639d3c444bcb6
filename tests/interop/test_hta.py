"""What HTA says of a run that was handed over is what it says of the files."""

from __future__ import annotations

import builtins
import importlib.util
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.builders import kernel, launch, run
from tests.conformance.test_hta import AMD, EIGHT_RANKS, NANOSECONDS, SYNC_RECORDS, hta, ours
from tracekit.interop.hta import to_hta
from tracekit.model.errors import UsageError

pytestmark = pytest.mark.filterwarnings(
    "ignore::pandas.errors.Pandas4Warning",
    "ignore:invalid value encountered in scalar divide:RuntimeWarning",  # HTA's overlap without communication
)

QUESTIONS: dict[str, tuple[str, ...]] = {
    "get_temporal_breakdown": ("rank",),
    "get_comm_comp_overlap": ("rank",),
    "get_idle_time_breakdown": ("rank", "stream", "idle_category"),
    "get_gpu_kernel_breakdown": ("rank", "kernel_type", "name"),
    "get_cuda_kernel_launch_stats": ("correlation",),
}


def ask(analysis: Any, question: str) -> Any:
    """HTA's table for *question*, of the first rank where it answers by rank, in one order."""
    answer = getattr(analysis, question)(visualize=False)
    if isinstance(answer, tuple):  # two tables: kernels are the second, idle times the first
        answer = answer[1] if question == "get_gpu_kernel_breakdown" else answer[0]
    elif isinstance(answer, dict | list):
        answer = answer[0]
    return answer.sort_values(list(QUESTIONS[question])).reset_index(drop=True)


@pytest.mark.parametrize("trace", [EIGHT_RANKS, NANOSECONDS, SYNC_RECORDS, AMD])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_answer_as_from_the_files(corpus: Path, trace: str, question: str) -> None:
    from pandas.testing import assert_frame_equal

    handed_over = ours(corpus / trace).to_hta()
    assert_frame_equal(ask(hta(corpus / trace, 0), question), ask(handed_over, question), check_dtype=False)


@pytest.mark.parametrize("trace", [EIGHT_RANKS, NANOSECONDS, SYNC_RECORDS, AMD])
def test_the_same_queues(corpus: Path, trace: str) -> None:
    from pandas.testing import assert_frame_equal

    theirs, mine = (
        a.get_queue_length_summary().reset_index() for a in (hta(corpus / trace, 0), ours(corpus / trace).to_hta())
    )
    assert_frame_equal(theirs, mine, check_dtype=False)


def test_without_rounding_fractions_are_kept() -> None:
    tables = run(kernel("k", 10_400, 11_900, correlation=1), launch(1, 1_000, 2_000))
    assert to_hta(tables).t.get_trace(0)["ts"].max() == 10
    assert to_hta(tables, rounded=False).t.get_trace(0)["ts"].max() == pytest.approx(9.4)


def test_the_first_event_of_a_trace_is_linked_too() -> None:
    """HTA takes a link to index 0 for a launch that is not in the trace."""
    tables = run(kernel("k", 10_000, 12_000, correlation=1), launch(1, 1_000, 2_000))
    assert len(to_hta(tables).get_queue_length_summary(ranks=[0])) == 1


def test_nothing_to_hand_over_is_said() -> None:
    with pytest.raises(UsageError, match="no rank was read"):
        to_hta(run())


def test_without_hta_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_hta(name: str, *rest: Any) -> Any:
        if name.startswith("hta"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_hta)
    with pytest.raises(UsageError, match="pip install 'tracekit-ml"):
        to_hta(run(kernel()))


def test_without_pandas_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    sample = tracekit.open(Path(__file__).parents[2] / "sample_traces" / "ddp", cache=False)
    with pytest.raises(UsageError, match="pandas is not installed; pip install 'tracekit-ml"):
        sample.to_pandas("steps")


def test_tables_as_pandas() -> None:
    sample = tracekit.open(Path(__file__).parents[2] / "sample_traces" / "ddp", cache=False)
    assert list(sample.to_pandas("steps").columns) == sample.steps.collect_schema().names()
    assert len(sample.analyze().to_pandas("breakdown")) == 2
