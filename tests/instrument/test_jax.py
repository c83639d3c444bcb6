"""JAX programs are recorded with the same decorator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys, jax, jax.numpy as jnp
from tracekit.instrument import profile, span
mesh = jax.make_mesh((2, 2), ("data", "model"))
product = jax.jit(lambda x: (x @ x).sum())
recording = profile(sys.argv[1], warmup=1, active=2)

@recording
def step():
    with span("forward"):
        product(jnp.ones((16, 16)))

for _ in range(5):
    step()
recording.stop()
assert "torch" not in sys.modules
"""


def test_a_jax_loop_leaves_an_xplane_with_its_steps_and_a_sidecar_with_its_mesh(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank0.tracekit.json", "rank0.xplane.pb"]
    plane = (tmp_path / "rank0.xplane.pb").read_bytes()
    assert b"train" in plane
    assert b"forward" in plane
    sidecar = json.loads((tmp_path / "rank0.tracekit.json").read_text())
    assert (sidecar["trace"], sidecar["first_step"], sidecar["steps"]) == ("rank0.xplane.pb", 1, 2)
    assert [(axis["name"], axis["size"], axis["ranks"]) for axis in sidecar["mesh"]] == [
        ("data", 2, [0, 2]),
        ("model", 2, [0, 1]),
    ]
