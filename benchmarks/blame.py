"""How often the right rank and the right cause are named, in real gloo runs with one late rank, and how often somebody is in clean ones.

    python -m benchmarks.blame [--runs 20] [--ranks 2]

Each run trains a small transformer with DDP (`examples/ddp.py`); the late rank changes from run to run. More ranks than cores make
everybody late in turn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import tracekit

ROOT = Path(__file__).parent.parent
CAUSES = {"compute": {"compute"}, "host": {"other", "host_bound"}, "data": {"data"}, "gc": {"gc"}}
"""What is injected, and what it is called in the report."""


def train(folder: Path, ranks: int, steps: int, *late: str) -> None:
    """Record a run into *folder*. Raises ``CalledProcessError`` when it fails."""
    command = [sys.executable, str(ROOT / "examples" / "ddp.py"), "--out", str(folder), "--layers", "1"]
    sizes = ["--ranks", str(ranks), "--steps", str(steps)]
    subprocess.run([*command, *sizes, *late], check=True, capture_output=True, timeout=120)


def named(folder: Path) -> list[tuple[int, str]]:
    """The ranks that a report of *folder* calls stragglers, with their causes."""
    report = tracekit.open(folder, cache=False).analyze()
    ranks = [rank for finding in report.findings if finding.code == "TK-STRAGGLER" for rank in finding.ranks]
    causes = dict(report.tables["stragglers"].select("rank", "cause").rows()) if ranks else {}
    return [(rank, causes[rank]) for rank in ranks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="runs of each kind")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5, help="recorded steps of a run")
    parser.add_argument("--late-ms", type=float, default=20.0)
    options = parser.parse_args()
    for cause in (None, *CAUSES):
        right = rank_right = 0
        for number in range(options.runs):
            late = number % options.ranks
            how = ["--late-rank", str(late), "--late-ms", str(options.late_ms), "--late-by", cause] if cause else []
            with tempfile.TemporaryDirectory() as folder:
                train(Path(folder), options.ranks, options.steps, *how)
                found = named(Path(folder))
            if cause is None:
                right += not found
                continue
            rank_right += [rank for rank, _ in found] == [late]
            right += len(found) == 1 and found[0][0] == late and found[0][1] in CAUSES[cause]
        if cause is None:
            print(f"clean: nobody named in {right} of {options.runs} runs", flush=True)
        else:
            print(
                f"{cause}: right rank in {rank_right}, right rank and cause in {right} of {options.runs} runs",
                flush=True,
            )


if __name__ == "__main__":
    main()
