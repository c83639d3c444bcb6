"""Tables on disk as Parquet. `cache` finds traces already read by their content; `runs` are folders that people keep."""

from tracekit.store.runs import is_run, read_run, write_run

__all__ = ["is_run", "read_run", "write_run"]
