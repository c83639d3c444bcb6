"""What fits on a screen: bars whose parts add up, the typical rank, the ranks that differ."""

from __future__ import annotations

from tests.report.build import Rows, breakdown_row, make_report
from tracekit.report.digest import digest


def test_a_bar_is_the_mean_step_and_its_parts_add_up() -> None:
    steps = [
        breakdown_row(0, step=1, compute=40, exposed=10, idle=50),
        breakdown_row(0, step=2, compute=60, exposed=10, copies=5, idle=25),
    ]
    digested = digest(make_report([breakdown_row(0, compute=100, exposed=20, copies=5, idle=500)], steps=steps))
    (bar,) = digested.bars
    assert list(bar.parts) == [50, 10, 2.5, 37.5]
    assert bar.total_ns == 100
    assert (bar.steps, digested.steps, digested.spread_ns, digested.windowed) == (2, 2, (100, 100), ())


def test_a_rank_without_steps_shows_its_window_and_is_named() -> None:
    steps = [breakdown_row(0, step=1, compute=40, exposed=10)]
    digested = digest(
        make_report([breakdown_row(0, compute=40, exposed=10), breakdown_row(1, compute=80, exposed=20)], steps=steps)
    )
    assert [bar.total_ns for bar in digested.bars] == [50, 100]
    assert digested.windowed == (1,)


def test_without_steps_everything_is_of_the_window() -> None:
    digested = digest(make_report([breakdown_row(0, compute=40, exposed=10)]))
    assert (digested.steps, digested.spread_ns, digested.windowed) == (0, None, (0,))


def test_nothing_measured() -> None:
    digested = digest(make_report([], ranks=[{"rank": 0, "status": "empty"}]))
    assert (digested.bars, digested.typical, digested.scale_ns, digested.shown(8)) == ((), None, 0.0, [])


def test_the_rank_that_differs_is_named_with_its_part() -> None:
    rows = [breakdown_row(rank, compute=50, exposed=10, idle=40) for rank in range(3)]
    digested = digest(make_report([*rows, breakdown_row(3, compute=50, exposed=10, idle=60)]))
    assert digested.differing == (3,)
    assert (digested.differences[3].part, digested.differences[3].ns) == ("idle", 20)
    assert digested.typical is not None
    assert digested.typical.rank == 0


def test_a_tenth_is_not_a_difference() -> None:
    rows = [breakdown_row(rank, compute=50, exposed=10, idle=40) for rank in range(3)]
    assert digest(make_report([*rows, breakdown_row(3, compute=50, exposed=10, idle=50)])).differing == ()


def test_of_many_ranks_the_typical_and_the_most_different_are_shown() -> None:
    rows = [
        breakdown_row(rank, compute=50, exposed=10, idle=40 + (30 if rank in {17, 40} else 0)) for rank in range(64)
    ]
    shown = [bar.rank for bar, _ in digest(make_report(rows)).shown(3)]
    assert shown == [0, 17, 40]


def test_windows_of_one_rank_are_bars_of_their_own() -> None:
    rows = [breakdown_row(0, compute=50, exposed=10), breakdown_row(0, compute=50, exposed=20, window=1)]
    ranks: Rows = [{"rank": 0}, {"rank": 0, "window": 1, "source": "again.json"}]
    assert [(bar.rank, bar.window) for bar in digest(make_report(rows, ranks=ranks)).bars] == [(0, 0), (0, 1)]
