"""The Python API: `open` traces, look at tables, `Run.analyze` them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit.engine.load import FileProgress, Options, load
from tracekit.model.errors import UsageError, none_of_them
from tracekit.model.run import RunTables
from tracekit.store.cache import Cache, default_folder

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from hta.trace_analysis import TraceAnalysis

    from tracekit.model.report import Report

_MOST_NAMED = 3

__all__ = ["FileProgress", "Run", "open"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run(RunTables):
    """A loaded run. Tables are polars LazyFrames; nothing is read before something asks."""

    title: str = ""
    """The paths it was opened from."""
    notes: tuple[str, ...] = ()
    """What a person should know of the whole run, a sentence each."""

    @property
    def events(self) -> pl.LazyFrame:
        """Every complete event: `tracekit.model.tables.EVENTS`."""
        return self["events"]

    @property
    def collectives(self) -> pl.LazyFrame:
        """Every communication operation: `tracekit.model.tables.COLLECTIVES`."""
        return self["collectives"]

    @property
    def steps(self) -> pl.LazyFrame:
        """Every training step of every rank: `tracekit.model.tables.STEPS`."""
        return self["steps"]

    @property
    def pipeline(self) -> pl.LazyFrame:
        """Every action of a pipeline schedule: `tracekit.model.tables.PIPELINE`."""
        return self["pipeline"]

    @property
    def memory(self) -> pl.LazyFrame:
        """Allocator events: `tracekit.model.tables.MEMORY`."""
        return self["memory"]

    def analyze(self, *, steps: Iterable[int] | None = None) -> Report:
        """Run every analysis that the traces allow; *steps*, numbers of them, restricts them to the events of those steps.

        Raises `tracekit.TracekitError` when *steps* are no whole numbers or the run has none of them.

        >>> run.analyze(steps=range(3, 6))  # doctest: +SKIP
        """
        from tracekit.analyses import ANALYSES
        from tracekit.engine.derived import of_steps
        from tracekit.engine.runner import analyse
        from tracekit.model.records import in_words
        from tracekit.report.notebook import ShownReport

        tables: RunTables = self if steps is None else of_steps(self, self._known_steps(steps))
        outcome = analyse(tables, ANALYSES)
        return ShownReport(
            title=self.title,
            ranks=self.ranks,
            tables=outcome.tables,
            findings=outcome.findings,
            skipped=outcome.skipped,
            step_ns=outcome.context.step_ns,
            steps=outcome.context.steps,
            step_source=max(tables["steps"].select("source").unique().collect()["source"], default=""),
            strategy=in_words(self.sidecars.values()),
            notes=self.notes,
        )

    def to_pandas(self, table: str) -> pd.DataFrame:
        """The table called *table* as a pandas DataFrame. Needs pandas and pyarrow (``tracekit-ml[hta]``)."""
        from tracekit.model.pandas import to_pandas

        return to_pandas(self[table].collect())

    def to_hta(self) -> TraceAnalysis:
        """Hand the run to HolisticTraceAnalysis without parsing it again. Needs ``tracekit-ml[hta]``."""
        from tracekit.interop.hta import to_hta

        return to_hta(self)

    def _known_steps(self, asked: Iterable[int]) -> list[int]:
        """The numbers *asked* for, sorted, if the run has one of them."""
        try:
            numbers = sorted({index(number) for number in asked})
        except TypeError:
            raise UsageError(
                "steps are numbers of steps", where=f"steps={asked!r}", remedy="for example range(3, 6) or [3]"
            ) from None
        there = self.steps.select("step").unique().collect()["step"].sort().to_list()
        if not set(numbers) & set(there):
            raise none_of_them("steps", numbers, there)
        return numbers

    def __repr__(self) -> str:
        return f"<tracekit run {self.title!r}: {self._summary()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the summary and the ranks table (polars escapes what it shows)."""
        columns = ("rank", "window", "source", "status", "complete_events", "device_events", "device_name", "reason")
        return f"<p>{self._summary()}</p>{self.ranks.select(columns)._repr_html_()}"

    def _summary(self) -> str:
        import polars as pl

        read = self.ranks.filter(pl.col("status").is_in(["read", "truncated"]))
        sizes = [size for size in read["world_size"].to_list() if size]
        of = f" of {max(sizes)}" if sizes else ""
        return f"{read['rank'].n_unique()}{of} ranks, {sum(read['complete_events'].to_list()):,} events"


def _title(paths: Sequence[str]) -> str:
    """*paths* as they were given; of many the first, and how many more."""
    more = len(paths) - _MOST_NAMED
    return " ".join(paths) if more <= 0 else f"{paths[0]} and {len(paths) - 1} more"


def open(
    *paths: str | Path,
    cache: bool | Path = True,
    workers: int | None = None,
    ranks: Iterable[int] | None = None,
    progress: Callable[[FileProgress], None] | None = None,
) -> Run:
    """Load traces: files, folders of them, or glob patterns.

    *cache* keeps what was read in the platform's cache folder (or the folder given) and finds it again by content;
    ``False`` keeps nothing. *workers* is the number of reading processes, *ranks* the ranks to keep, *progress* is called
    as files are read, from several threads.

    Raises `tracekit.TracekitError` when there is nothing to load; a file among several that cannot be read is a row of
    ``run.ranks`` that says why.

    >>> run = tracekit.open("traces/")  # doctest: +SKIP
    >>> run.analyze().findings  # doctest: +SKIP
    """
    folder = default_folder() if cache is True else cache
    options = Options(
        cache=Cache(Path(folder)) if folder else None,
        workers=workers,
        ranks=None if ranks is None else frozenset(ranks),
        progress=progress,
    )
    loaded = load(paths, options)
    return Run(
        ranks=loaded.tables.ranks,
        tables=loaded.tables.tables,
        sidecars=loaded.tables.sidecars,
        title=_title([str(path) for path in paths]),
        notes=loaded.notes,
    )
