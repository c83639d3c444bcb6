"""Clock corrections without the recorder: collectives end everywhere at once."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import polars as pl

import tracekit
from tests.conftest import ROOT
from tracekit.engine.clocks import UNCORRECTED, Correction, corrections, from_collectives
from tracekit.model.records import Clock

MS = 1_000_000


def ends(*at_ns: int, op: str = "all_reduce", seq: bool = False) -> pl.LazyFrame:
    """Collectives of 1 ms that end at *at_ns*."""
    return pl.LazyFrame(
        {
            "group": ["0"] * len(at_ns),
            "group_ranks": [None] * len(at_ns),
            "op": [op] * len(at_ns),
            "seq": list(range(len(at_ns))) if seq else [None] * len(at_ns),
            "start_ns": [at - MS for at in at_ns],
            "dur_ns": [MS] * len(at_ns),
        },
        schema_overrides={"group_ranks": pl.String, "seq": pl.Int64},
    )


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
    assert found == [UNCORRECTED, Correction(5 * MS + 10_000, 20_000)]


def test_an_offset_within_its_error_is_none() -> None:
    clock = Clock(offset_ns=1_500, error_ns=20_000, at_ns=0)
    assert corrections({0: clock}, [0], [ends()]) == [Correction(0, 20_000)]


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
