"""A file's events as arrays: what recordings, collectives and parts are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from tracekit.readers.health import Health
from tracekit.readers.kineto.columns import IS_DEVICE
from tracekit.readers.kineto.metadata import Metadata

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """A file's events as arrays, with the names they point to."""

    columns: dict[str, Array]
    names: list[str]
    metadata: Metadata
    health: Health

    def __getitem__(self, column: str) -> Array:
        return self.columns[column]

    @property
    def on_device(self) -> Array:
        return IS_DEVICE[self["kind"]]

    def take(self, rows: Array) -> Trace:
        return replace(self, columns={name: values[rows] for name, values in self.columns.items()})

    def codes_of(self, prefix: str) -> list[int]:
        return [code for code, name in enumerate(self.names) if name.startswith(prefix)]
