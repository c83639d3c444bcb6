"""What a rank was doing at each moment: one label for every moment of its steps, so that ranks can be compared."""

from __future__ import annotations

import polars as pl

from tracekit.engine.host import named
from tracekit.engine.intervals import sweep
from tracekit.model.run import RunTables
from tracekit.model.table import TIMELINE

_BUSY = ("compute", "communication", "memory")
_COLLECTOR = "gc"
_IDLE = ("sync", "data", "allocation", "host_bound", "dependency", "other")
ACTIVITIES = (*_BUSY, _COLLECTOR, *_IDLE)
"""What a moment is spent on. Busy ones first; idle ones by their cause (``idle_spans``), of which garbage collection is taken out."""

_COLLECTION = r"^tracekit\.gc |<built-in function collect>|^gc\.py"


def activity(run: RunTables) -> pl.LazyFrame:
    """Disjoint segments [*TIMELINE, start_ns, end_ns, activity], sorted: the first of `ACTIVITIES` that holds in each.

    Needs ``segments`` and ``idle_spans``. Moments outside window and steps have none.
    """
    ends = (*TIMELINE, "start_ns", "end_ns")
    busy = [run["segments"].filter(name).select(*ends, label=pl.lit(name)) for name in _BUSY]
    causes = run["idle_spans"].select(*ends, label=pl.col("cause").cast(pl.String))
    calls = run["events"].filter(pl.col("kind").is_in(["annotation", "python"]))
    pauses = named(calls, pl.col("name").str.contains(_COLLECTION)).select(
        *TIMELINE, "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), label=pl.lit(_COLLECTOR)
    )
    swept = sweep(pl.concat([*busy, causes, pauses]), "label", ACTIVITIES, TIMELINE)
    first = pl.coalesce(pl.when(name).then(pl.lit(name)) for name in ACTIVITIES)
    return swept.select(*ends, activity=first).drop_nulls("activity")
