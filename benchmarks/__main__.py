"""The benchmarks, in pairs and as ratios: reading against HolisticTraceAnalysis, analysis against reading, the store.

    make bench                          all of it, about 15 minutes
    python -m benchmarks --mb 100 --pairs 1 --only read

Files are grown from a real trace into a temporary folder and removed afterwards.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.grow import grow
from benchmarks.measure import Case, megabytes, paired, ratio, seconds

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("TRACEKIT_CORPUS", ROOT.parent / "shared" / "corpus"))

HTA = "import sys; from hta.trace_analysis import TraceAnalysis; files = sys.argv[1:]; TraceAnalysis(trace_files=dict(enumerate(files)), trace_dir='')"
READ = "import sys, tracekit; tracekit.open(*sys.argv[1:], cache=False)"
STORE = "import sys, tracekit; tracekit.open(*sys.argv[1:])"
ANALYSE = """
import sys, time, tracekit
begun = time.perf_counter(); run = tracekit.open(*sys.argv[1:], cache=False)
read = time.perf_counter(); run.analyze()
print(read - begun, time.perf_counter() - read)
"""
REOPEN = """
import sys, time, tracekit, tracekit.api
begun = time.perf_counter(); run = tracekit.open(*sys.argv[1:])
print(time.perf_counter() - begun)
run.events.collect()
print(time.perf_counter() - begun)
"""

_ONE, _TWO = (1,), (0, 1)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where to work and how much to do."""

    folder: Path
    source: Path
    megabytes: int
    pairs: int

    def file(self, name: str, size: int, rank: int = 0) -> str:
        path = self.folder / name
        if not path.exists():
            grow(self.source, path, size * 1_000_000, rank)
        return str(path)


def read(bench: Bench) -> None:
    """One large file on one core, against HTA's loader."""
    file = bench.file("rank0.json", bench.megabytes)
    hta, ours = paired([Case("HTA", HTA, (file,), _ONE), Case("tracekit", READ, (file,), _ONE)], bench.pairs)
    say(
        f"read {bench.megabytes} MB on one core",
        f"{seconds(hta):.1f} s",
        f"{seconds(ours):.2f} s",
        f"{ratio(hta, ours):.1f} x faster (wanted: 15)",
    )
    say(
        "  peak memory",
        f"{megabytes(hta):.0f} MB",
        f"{megabytes(ours):.0f} MB",
        f"1/{megabytes(hta) / megabytes(ours):.1f} (wanted: 1/8)",
    )


def gzipped(bench: Bench) -> None:
    """The same file, gzipped and plain."""
    plain, packed = bench.file("rank0.json", bench.megabytes), bench.file("rank0.json.gz", bench.megabytes)
    cases = [Case("gzipped", READ, (packed,), _ONE), Case("plain", READ, (plain,), _ONE)]
    a, b = paired(cases, 2 * bench.pairs + 1)
    say(
        "read gzipped, against plain",
        f"{seconds(a):.2f} s",
        f"{seconds(b):.2f} s",
        f"{100 * (ratio(a, b) - 1):+.0f} % (wanted: within 10 %)",
    )


def ranks(bench: Bench) -> None:
    """Eight ranks on two cores, against HTA with its multiprocessing."""
    files = tuple(bench.file(f"rank{rank}-of-8.json", bench.megabytes // 4, rank) for rank in range(8))
    hta, ours = paired([Case("HTA", HTA, files, _TWO), Case("tracekit", READ, files, _TWO)], bench.pairs)
    say(
        f"read 8 ranks of {bench.megabytes // 4} MB on two cores",
        f"{seconds(hta):.1f} s",
        f"{seconds(ours):.2f} s",
        f"{ratio(hta, ours):.1f} x faster (wanted: 15)",
    )


def analysis(bench: Bench) -> None:
    """The full analysis beside the read that it follows."""
    (runs,) = paired([Case("analyse", ANALYSE, (bench.file("rank0.json", bench.megabytes),), _ONE)], bench.pairs)
    pairs = [tuple(map(float, one.output.split())) for one in runs]
    share = sorted(analysing / reading for reading, analysing in pairs)[len(pairs) // 2]
    say(
        "full analysis, against the read before it",
        f"{pairs[0][1]:.2f} s",
        f"{pairs[0][0]:.2f} s",
        f"{100 * share:.0f} % (wanted: below 50 %)",
    )


def store(bench: Bench) -> None:
    """A second opening, from the store."""
    file = bench.file("rank0.json", bench.megabytes)
    first, second = paired([Case("first", STORE, (file,), _ONE), Case("second", REOPEN, (file,), _ONE)], 1)
    opened, collected = map(float, second[0].output.split())
    say(
        "second opening, from the store",
        f"{seconds(first):.2f} s",
        f"{1000 * opened:.1f} ms",
        f"{seconds(first) / opened:.0f} x faster (wanted: 50)",
    )
    say(
        "  with every event read into memory",
        "",
        f"{1000 * collected:.0f} ms",
        f"{seconds(first) / collected:.0f} x faster",
    )


def memory(bench: Bench) -> None:
    """Peak memory by length of the file: what grows are the tables (about 100 bytes an event)."""
    for size in (bench.megabytes // 4, bench.megabytes // 2, bench.megabytes):
        (runs,) = paired([Case("read", READ, (bench.file(f"{size}.json", size),), _ONE)], 1)
        say(f"peak memory of reading {size} MB", "", f"{megabytes(runs):.0f} MB", "")


BENCHES: dict[str, Callable[[Bench], None]] = {b.__name__: b for b in (read, gzipped, ranks, analysis, store, memory)}


def say(what: str, theirs: str, ours: str, verdict: str) -> None:
    print(f"{what:44} {theirs:>10} {ours:>10}   {verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=400, help="size of the large file")
    parser.add_argument("--pairs", type=int, default=3, help="rounds of each pair")
    parser.add_argument("--only", choices=BENCHES, action="append", help="only this one; may be given again")
    default = CORPUS / "kineto" / "single" / "a100_nccl_metadata_rank0of2.json.gz"
    fallback = ROOT / "sample_traces" / "ddp" / "rank0.pt.trace.json.gz"
    parser.add_argument("--source", type=Path, default=default if default.exists() else fallback, help="trace to grow")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRACEKIT_CACHE"] = str(Path(folder) / "cache")
        say("", "HTA/other", "tracekit", "")
        for name in options.only or BENCHES:
            BENCHES[name](Bench(Path(folder), options.source, options.mb, options.pairs))


if __name__ == "__main__":
    main()
