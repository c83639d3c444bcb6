"""How the matching of collectives grows with ranks: seconds, and nanoseconds for each operation and each doubling of their number.

    python -m benchmarks.matching [--operations 2000]

Jobs are made up: every rank all-reduces in a tensor group of four and in a data-parallel group across them. With and without sequence
numbers; n log n shows as a last column that stays where it is.
"""

from __future__ import annotations

import argparse
import time
from math import log2

import numpy as np
import polars as pl

from tracekit.engine.matching import matched
from tracekit.model.run import RunTables
from tracekit.model.tables import COLLECTIVES, RANKS

NODE = 4


def job(ranks: int, operations: int, *, numbered: bool) -> RunTables:
    """A job of so many *ranks*, each with so many *operations* in ten steps."""
    rng = np.random.default_rng(0)
    number = np.arange(operations)
    frames = []
    for rank in range(ranks):
        tensor = number % 2 == 0
        node, place = divmod(rank, NODE)
        start = number * 100_000 + rng.integers(0, 20_000, operations)
        frames.append(
            pl.DataFrame(
                {
                    "rank": np.full(operations, rank),
                    "window": np.zeros(operations, dtype=np.int16),
                    "device": np.zeros(operations, dtype=np.int32),
                    "lane": np.full(operations, 20),
                    "group": np.where(tensor, f"tp{node}", f"dp{place}"),
                    "op": np.full(operations, "all_reduce"),
                    "op_source": np.full(operations, "metadata"),
                    "seq": number // 2 if numbered else None,
                    "start_ns": start,
                    "dur_ns": number * 100_000 + 50_000 - start,
                    "step": number * 10 // operations,
                }
            )
        )
    table = pl.concat(frames)
    missing = [
        pl.lit(None, dtype).alias(name) for name, dtype in COLLECTIVES.schema.items() if name not in table.columns
    ]
    collectives = COLLECTIVES.conform(table.with_columns(missing).lazy()).collect()
    places = [{"rank": rank, "window": 0, "status": "read", "view": "device"} for rank in range(ranks)]
    return RunTables(ranks=pl.DataFrame(places, schema=RANKS.schema), tables={"collectives": collectives.lazy()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=2000, help="operations of a rank")
    options = parser.parse_args()
    print(f"{'ranks':>6} {'operations':>11} {'by':>9} {'seconds':>8} {'ns/(n log2 n)':>14}")
    for ranks in (8, 64, 512):
        for way in ("sequence", "order"):
            run = job(ranks, options.operations, numbered=way == "sequence")
            begun = time.perf_counter()
            found = matched(run).collect()
            took, n = time.perf_counter() - begun, ranks * options.operations
            if (found["match_quality"] != way).any():
                raise SystemExit("not everything was matched")
            print(f"{ranks:6} {n:11,} {way:>9} {took:8.2f} {1e9 * took / (n * log2(n)):14.1f}", flush=True)


if __name__ == "__main__":
    main()
