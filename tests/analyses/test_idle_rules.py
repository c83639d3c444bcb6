"""When idle time is a finding, and what is said of it. Times are microseconds here."""

from __future__ import annotations

import pytest

from tests.analyses.test_idle_spans import FETCH, FIRST, US, busy, runtime, us
from tests.builders import Row, annotation, compute, context, kernel, op
from tracekit.analyses.idle_spans import ANALYSIS
from tracekit.model.finding import Confidence, Finding, Severity


def found(*rows: Row, step: int, steps: int = 1, ranks: tuple[int, ...] = (0,)) -> dict[str, Finding]:
    table = compute(ANALYSIS, *map(us, rows))
    return {finding.code: finding for finding in ANALYSIS.find(table, context(steps, step * US, ranks))}


LATE = [*FIRST, *busy(200, 250, launched=(185, 190), external_id=7), op("aten::mm", 180, 195, external_id=7)]


def test_host_bound_from_a_tenth_of_the_step_on() -> None:
    finding = found(*LATE, step=1_000)["TK-HOST-BOUND"]

    assert finding.title == "The device waits for the host to launch work: 10.0 % of the step (100 µs)"
    assert finding.cause == "Largest part: cudaLaunchKernel in aten::mm, 100 % in 1 gap."
    assert finding.cost_ns == (98 * US, 100 * US)  # a replayed graph pauses, too
    assert (finding.severity, finding.ranks) == (Severity.MEDIUM, ())
    assert {quantity.label: quantity.value for quantity in finding.evidence}["longest span"] == 100 * US


def test_less_than_a_tenth_is_not_host_bound() -> None:
    assert found(*LATE, step=1_001) == {}


def test_costs_are_per_step_and_name_the_ranks_that_bear_them() -> None:
    other = [*busy(0, 100, launched=(-10, -5), rank=1), *busy(110, 250, launched=(10, 15), rank=1)]

    finding = found(*LATE, *other, step=400, steps=2, ranks=(0, 1))["TK-HOST-BOUND"]

    assert (
        finding.title
        == "The device waits for the host to launch work: 12.5 % of the step (50.0 µs) on rank 0, 0 % on the other rank"
    )
    assert (finding.cost_ns, finding.ranks) == ((49 * US, 50 * US), (0,))


def drained(call: str) -> list[Row]:
    """A gap of 40 µs: 5 in the call, 25 after it, 10 for the launch."""
    calls = [runtime(call, 20, 105, external_id=9), op("aten::item", 10, 106, external_id=9)]
    return [*FIRST, *calls, *busy(140, 200, launched=(130, 135))]


@pytest.mark.parametrize(("code", "call"), [("TK-SYNC", "cudaStreamSynchronize"), ("TK-ALLOC", "cudaFree")])
def test_blocking_calls_from_a_hundredth_of_the_step_on(code: str, call: str) -> None:
    finding = found(*drained(call), step=3_000)[code]

    assert finding.cause == f"Largest part: {call} in aten::item, 100 % in 1 gap."
    assert finding.cost_ns == (5 * US, 30 * US)
    assert finding.title.endswith(": 1.00 % of the step (30.0 µs)")
    assert found(*drained(call), step=3_001) == {}


FETCHING = [*FIRST, annotation(FETCH, 50, 150), *busy(160, 260, launched=(150, 155))]


@pytest.mark.parametrize(("step", "severity"), [(1_000, Severity.MEDIUM), (251, Severity.MEDIUM), (250, Severity.HIGH)])
def test_data_stall_from_a_twentieth_of_the_step_on_and_severe_from_a_fifth(step: int, severity: Severity) -> None:
    finding = found(*FETCHING, step=step)["TK-DATA-STALL"]

    assert (finding.cost_ns, finding.severity) == ((50 * US, 50 * US), severity)


def test_fetching_beside_the_step_hides_no_more_than_the_step_is_long() -> None:
    rows = [*busy(0, 10, launched=(-10, -5)), annotation(FETCH, 0, 100), *busy(100, 110, launched=(100, 105))]

    assert found(*rows, step=110)["TK-DATA-STALL"].cost_ns == (20 * US, 90 * US)


def test_short_fetch_is_no_data_stall() -> None:
    assert found(*FETCHING, step=1_001) == {}


def test_idle_time_of_no_known_cause_from_a_quarter_of_the_step_on() -> None:
    rows = [*FIRST, *busy(130, 200, launched=(10, 15)), kernel("void at::native::f<4>(int)", 270, 300)]
    finding = found(*rows, step=400)["TK-IDLE-UNEXPLAINED"]

    assert finding.title == "Nothing runs, and the trace does not say why: 25.0 % of the step (100 µs)"
    assert finding.cause == "Longest: 70.0 µs before f<4>; nothing tells what the host did."
    assert (finding.cost_ns, finding.confidence) == ((0, 100 * US), Confidence.LOW)
    assert found(*rows, step=401) == {}


def test_longest_wait_of_queued_work_is_said_to_be_one() -> None:
    finding = found(*FIRST, *busy(190, 200, launched=(10, 15)), step=200)["TK-IDLE-UNEXPLAINED"]

    assert finding.cause == "Longest: 90.0 µs before k; work was in the queue by then."


def test_run_without_steps_or_window_has_no_findings() -> None:
    assert found(*LATE, step=0) == {}
