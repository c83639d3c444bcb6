"""Training scripts that tests start as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLAIN = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
"""Knows nothing of tracekit."""

KILLED = """
import os, sys, torch, torch.distributed as dist
from tracekit.instrument import profile
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profile(sys.argv[2], warmup=1, active=10) as p:
    for step in range(11):
        model(torch.randn(8, 64)).sum().backward()
        if step == 5 and dist.get_rank() == 1:
            os.kill(os.getpid(), int(sys.argv[1]))
        optimizer.step()
        optimizer.zero_grad()
        p.step()
"""
"""Rank 1 is killed in its fifth recorded step."""


def torchrun(
    script: str, folder: Path, *arguments: str, ranks: int = 2, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Start *script* on *ranks* processes, *before* in front of the command."""
    path = folder / "train.py"
    path.write_text(script)
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    return subprocess.run(
        [*before, *launch, str(path), *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
