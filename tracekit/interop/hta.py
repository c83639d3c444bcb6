"""Hand a loaded run to HolisticTraceAnalysis (HTA) without parsing the traces again.

HTA's `Trace` is filled with what its own parser would have made of the files: events in file order, times in microseconds,
names and categories as symbols. From there on HTA's own functions do what they do after parsing: link launches, number
iterations, align ranks, leave out the last step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tracekit.model.errors import UsageError
from tracekit.model.pandas import need_pandas
from tracekit.model.run import RunTables

if TYPE_CHECKING:
    import pandas as pd
    from hta.trace_analysis import TraceAnalysis

_CATEGORY = {
    "cpu_op": "cpu_op",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "runtime": "cuda_runtime",
    "sync": "cuda_sync",
    "annotation": "user_annotation",
    "gpu_annotation": "gpu_user_annotation",
    "python": "python_function",
}
"""The category that HTA knows each kind by. Kind ``other`` (spans of the profiler itself) HTA drops as well."""
_NS_PER_US = 1000


def to_hta(run: RunTables, *, rounded: bool = True) -> TraceAnalysis:
    """*run* as HTA's ``TraceAnalysis``.

    *rounded* rounds starts up and ends down to whole microseconds, as HTA does with traces of nanosecond resolution; without it
    HTA gets fractions. Of a rank with several recordings the first is handed over. Raises `UsageError` when HTA is not
    installed or no rank was read.
    """
    need_pandas()
    try:
        from hta.common.trace import Trace
        from hta.trace_analysis import TraceAnalysis
    except ImportError:
        raise UsageError("HolisticTraceAnalysis is not installed", remedy="pip install 'tracekit-ml[hta]'") from None
    ranks = run.ranks.filter(pl.col("status").is_in(["read", "truncated"]), pl.col("window") == 0)["rank"].to_list()
    if not ranks:
        raise UsageError("no rank was read, so there is nothing to hand over", remedy="see `tracekit doctor`")
    trace = Trace(trace_files={}, trace_dir=".")
    frames = {rank: _events(run, rank, rounded=rounded) for rank in ranks}
    trace.symbol_table.add_symbols(
        sorted({symbol for frame in frames.values() for name in ("cat", "name") for symbol in frame[name].unique()})
    )
    for rank, frame in frames.items():
        trace.traces[rank] = _linked(frame, trace.symbol_table)
        trace.meta_data[rank] = {}
    trace.align_and_filter_trace()
    for rank, frame in trace.traces.items():
        trace.traces[rank] = frame.set_index("index", drop=False).rename_axis(None)
    trace.is_parsed = True
    analysis = TraceAnalysis.__new__(TraceAnalysis)  # its constructor would parse files
    analysis.t = trace
    return analysis


def _events(run: RunTables, rank: int, *, rounded: bool) -> pd.DataFrame:
    """The events of *rank* with the columns of HTA's parser, names and categories still as text."""
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    on_stream = (pl.col("device") >= 0) | (pl.col("kind") == "sync")  # HTA keeps the stream of synchronisation records
    if rounded:
        start_us, end_us = -(-start // _NS_PER_US), end // _NS_PER_US
    else:
        start_us, end_us = start / _NS_PER_US, end / _NS_PER_US
    frame = run["events"].filter(rank=rank, window=0).filter(pl.col("kind") != "other")
    columns = frame.select(
        cat=pl.col("kind").cast(pl.String).replace_strict(_CATEGORY),
        name=pl.col("name").cast(pl.String),
        pid="process",
        tid="lane",
        ts=start_us,
        dur=end_us - start_us,
        stream=pl.when(on_stream).then(pl.col("lane")).otherwise(-1),
        correlation=pl.col("correlation").fill_null(-1),
        bytes=pl.col("bytes").fill_null(-1),
        memory_bw_gbps=pl.when(pl.col("dur_ns") > 0).then(pl.col("bytes") / pl.col("dur_ns")).fill_null(0.0),
        external_id=pl.col("external_id").fill_null(-1),
    )
    numbered = columns.with_row_index("index", offset=1)  # a link to 0 says that the other end is not in the trace
    events = numbered.with_columns(pl.col("index").cast(pl.Int64)).collect().to_pandas()
    return events.set_index("index", drop=False).rename_axis(None)


def _linked(frame: pd.DataFrame, symbols: object) -> pd.DataFrame:
    """*frame* with symbols encoded and what HTA derives after parsing."""
    from hta.common.trace import add_iteration, transform_correlation_to_index

    index = symbols.sym_index  # type: ignore[attr-defined]
    for column in ("cat", "name"):
        frame[column] = frame[column].map(index).astype("int64")
    frame["end"] = frame["ts"] + frame["dur"]
    frame = transform_correlation_to_index(frame, symbols)
    add_iteration(frame, symbols)
    return frame
