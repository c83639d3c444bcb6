"""Record the sample traces anew: ``make samples``, or ``python sample_traces/record.py NAME...`` for some.

Each sample is a real run of a script in ``examples/``. Of each trace the host name, the
temporary path that torch writes into it and all metadata but a few keys are taken out before it is kept.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
KEPT = ("schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents")
MOST_BYTES = 500_000


def record(name: str, command: list[str]) -> None:
    """Run *command*, which takes ``--out``, and keep its traces in the folder *name*."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, *command, "--out", scratch], check=True, cwd=HERE.parent)
        traces = sorted(Path(scratch).glob("*.json.gz"))
        target = HERE / name
        target.mkdir(exist_ok=True)
        for old in target.iterdir():
            old.unlink()
        for sidecar in Path(scratch).glob("*.tracekit.json"):
            shutil.copy(sidecar, target)
        for trace in traces:
            document = json.loads(gzip.decompress(trace.read_bytes()))
            text = json.dumps({key: document[key] for key in KEPT if key in document}, separators=(",", ":"))
            (target / trace.name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    size = sum(trace.stat().st_size for trace in target.iterdir())
    print(f"{name}: {size // 1000} kB in {len(traces)} files")
    if size > MOST_BYTES:
        raise SystemExit(f"{name} is larger than {MOST_BYTES // 1000} kB: record fewer steps")


def main() -> None:
    samples = tomllib.loads((HERE / "manifest.toml").read_text())
    for name in sys.argv[1:] or samples:
        record(name, samples[name]["command"])


if __name__ == "__main__":
    main()
