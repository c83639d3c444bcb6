"""Records with `jax.profiler`: each rank's XPlane, with the steps marked, and the sidecar."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import jax

from tracekit.instrument import say, sidecar
from tracekit.instrument.facts import Facts
from tracekit.instrument.living import of_kinds
from tracekit.instrument.process import Process
from tracekit.instrument.settings import Settings
from tracekit.instrument.writer import Files, Writer
from tracekit.model.records import XPLANE_SUFFIX, Device, MeshDimension

_STEP = "train"
"""Name of the step annotations, which XProf groups steps by."""


class JaxProfiler:
    """A `tracekit.instrument.recorder.Profiler` of JAX. Raises ``OSError`` when the output folder cannot be written.

    JAX's profiler needs no warm-up of its own; the warm-up steps are skipped like those before them.
    """

    annotate: type[jax.profiler.TraceAnnotation] = jax.profiler.TraceAnnotation

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._writer = Writer(settings.out)
        self._step = 0
        self._cycle = 0
        self._folder: str | None = None
        self._marked: Any = None

    def start(self) -> None:
        self._begin_step()

    def step(self) -> None:
        self._end_step()
        self._step += 1
        if (
            self._folder is not None
            and self._step == self._settings.first_recorded(self._cycle) + self._settings.active
        ):
            self._end_cycle()
        self._begin_step()

    def stop(self) -> None:
        self._end_step()
        if self._folder is not None:
            self._end_cycle()

    def abandon(self) -> None:
        self._end_step()

    def wait(self) -> None:
        self._writer.wait()

    def _begin_step(self) -> None:
        if (
            self._folder is None
            and self._step == self._settings.first_recorded(self._cycle)
            and self._cycle < self._settings.repeat
        ):
            folder = tempfile.mkdtemp(prefix="tracekit-")
            jax.profiler.start_trace(folder)
            self._folder = folder
        if self._folder is not None:
            self._marked = jax.profiler.StepTraceAnnotation(_STEP, step_num=self._step)
            self._marked.__enter__()

    def _end_step(self) -> None:
        if self._marked is not None:
            self._marked.__exit__(None, None, None)
            self._marked = None

    def _end_cycle(self) -> None:
        folder, self._folder = self._folder, None
        _wait_for_devices()
        jax.profiler.stop_trace()
        files = Files(jax.process_index(), self._cycle, XPLANE_SUFFIX)
        facts = _facts()
        first = self._settings.first_recorded(self._cycle)
        facts.recorded(first, self._step - first, self._settings.active)
        who = Process(jax.process_index(), jax.process_count(), 0, "")
        record = say.attempt("the sidecar", sidecar.build, self._settings, who, facts, files)
        self._cycle += 1
        self._writer.write(partial(_export, Path(folder or "")), record, files)


def _wait_for_devices() -> None:
    """Dispatch is asynchronous: the recorded steps may still be running. What is dispatched after them runs after them."""
    for each in jax.local_devices():
        jax.device_put(0, each).block_until_ready()


def _export(folder: Path, path: Path) -> None:
    """Move the XPlane that JAX has written somewhere below *folder* to *path*."""
    try:
        (found,) = folder.rglob(f"*{XPLANE_SUFFIX}")
        shutil.move(found, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _facts() -> Facts:
    first = jax.local_devices()[0]
    facts = Facts(device=Device(kind=first.platform, name=first.device_kind, index=first.id), backend="xla")
    meshes = [mesh for mesh in of_kinds({"meshes": jax.sharding.Mesh})["meshes"] if not mesh.empty]
    if meshes:
        mesh = max(meshes, key=lambda each: (len(each.axis_names), each.size))
        facts.mesh = tuple(_dimensions(mesh, first))
    return facts


def _dimensions(mesh: jax.sharding.Mesh, device: Any) -> list[MeshDimension]:
    """The dimensions of *mesh*, and where the process's first device is in them. Members are device ids."""
    ids = mesh.device_ids
    (place,) = zip(*(ids == device.id).nonzero(), strict=True)
    dimensions = []
    for axis, name in enumerate(mesh.axis_names):
        line = ids[tuple(slice(None) if other == axis else at for other, at in enumerate(place))]
        dimensions.append(
            MeshDimension(
                name=str(name), size=len(line), coordinate=int(place[axis]), ranks=tuple(int(i) for i in line)
            )
        )
    return dimensions
