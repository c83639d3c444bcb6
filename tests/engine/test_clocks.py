"""Clock corrections without the recorder: collectives end everywhere at once."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import polars as pl

import tracekit
from tests.builders import collective, run
from tests.conftest import ROOT
from tracekit.engine.clocks import UNCORRECTED, Correction, corrections, from_collectives
from tracekit.model.records import Clock

MS = 1_000_000


def ends(*at_ns: int, op: str = "all_reduce", seq: bool = False, group: str = "0") -> pl.LazyFrame:
    """Collectives of 1 ms that end at *at_ns*, one a step."""
    rows = [collective(op, at - MS, at, group=group, step=i, seq=i if seq else None) for i, at in enumerate(at_ns)]
    return run(*rows)["collectives"]


TIMES = [10 * MS, 20 * MS, 31 * MS, 40 * MS, 55 * MS, 60 * MS]


def test_a_rank_that_is_5_ms_behind_is_put_right() -> None:
    jitter = [3_000, -20_000, 0, 15_000, -6_000, 9_000]
    late = [at - 5 * MS + off for at, off in zip(TIMES, jitter, strict=True)]
    first, second = from_collectives([ends(*TIMES), ends(*late)])
    assert first == UNCORRECTED
    assert abs(second.offset_ns - 5 * MS) < 100_000


def test_sequence_numbers_match_what_order_would_not() -> None:
    behind = ends(*(at - 5 * MS for at in TIMES), seq=True).slice(1)
    assert from_collectives([ends(*TIMES, seq=True), behind])[1].offset_ns == 5 * MS


def test_a_scatter_as_large_as_the_offset_corrects_nothing() -> None:
    scattered = [at + off for at, off in zip(TIMES, [-3 * MS, 2 * MS, MS, -2 * MS, 3 * MS, 0], strict=True)]
    assert from_collectives([ends(*TIMES), ends(*scattered)])[1] == UNCORRECTED


def test_broadcasts_do_not_end_together() -> None:
    late = [at - 5 * MS for at in TIMES]
    assert from_collectives([ends(*TIMES, op="broadcast"), ends(*late, op="broadcast")])[1] == UNCORRECTED


def test_the_recorders_clock_comes_first_and_drifts() -> None:
    clock = Clock(offset_ns=5 * MS, error_ns=20_000, at_ns=0, drift_ppb=1000.0)
    late = [at - 7 * MS for at in TIMES]
    found = corrections({1: clock}, [0, 10_000_000_000], [ends(*TIMES), ends(*late)])
    assert found == [UNCORRECTED, Correction(5 * MS + 10_000, 20_000, 1000.0, 10_000_000_000)]
    assert found[1].at(20_000_000_000) == 5 * MS + 20_000


def test_an_offset_within_its_error_is_none() -> None:
    clock = Clock(offset_ns=1_500, error_ns=20_000, at_ns=0)
    assert corrections({0: clock}, [0], [ends()]) == [Correction(0, 20_000)]


def test_of_a_window_without_steps_order_tells_nothing() -> None:
    late = ends(*(at - 5 * MS for at in TIMES)).with_columns(step=pl.lit(None, pl.Int32))
    assert from_collectives([ends(*TIMES).with_columns(step=pl.lit(None, pl.Int32)), late])[1] == UNCORRECTED


def test_a_drift_is_followed() -> None:
    """40 collectives, 0.1 s apart; the second rank's clock starts 3 ms behind and loses 200 µs a second."""
    times = [100 * MS * i for i in range(1, 41)]
    jitter = [(-1) ** i * 1000 * (i % 7) for i in range(40)]
    late = [at - 3 * MS - at // 5_000 + off for at, off in zip(times, jitter, strict=True)]
    line = from_collectives([ends(*times), ends(*late)])[1]
    assert abs(line.drift_ppb - 200_000) < 5_000
    for at, there in zip(times, late, strict=True):
        assert abs(there + line.at(there) - at) < 20_000


def test_ranks_that_share_no_group_are_compared_through_one_that_does() -> None:
    behind = [at - 5 * MS for at in TIMES]
    both = pl.concat([ends(*behind, group="tp"), ends(*behind, group="dp")])
    found = from_collectives([ends(*TIMES, group="tp"), both, ends(*(at + 2 * MS for at in TIMES), group="dp")])
    assert [line.offset_ns for line in found] == [0, 5 * MS, -2 * MS]


def test_an_offset_of_5_ms_in_a_real_run_is_recovered_within_100_us(tmp_path: Path) -> None:
    """Rank 1 of a recorded run with its clock put back. Its two ranks had a core each; where ranks share cores the ends scatter."""
    for trace in (ROOT / "sample_traces" / "ddp").iterdir():
        text = gzip.decompress(trace.read_bytes()).decode()
        if "rank1" in trace.name:
            text = re.sub(
                r'(?<="baseTimeNanoseconds":)\d+', lambda base: str(int(base[0]) - 5 * MS), text.replace('": ', '":')
            )
        (tmp_path / trace.name).write_bytes(gzip.compress(text.encode(), 1))
    ranks = tracekit.open(tmp_path, cache=False).ranks
    assert ranks["clock_offset_ns"][0] == 0
    assert abs(ranks["clock_offset_ns"][1] - 5 * MS) < 100_000
