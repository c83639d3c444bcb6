"""Tables as pandas DataFrames, for people and tools that want them. pandas is an extra, so it is imported when it is asked for."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import polars as pl

from tracekit.model.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


def need_pandas() -> None:
    """Raise `UsageError` when pandas, or the pyarrow that carries tables to it, is not installed."""
    for package in ("pandas", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(f"{package} is not installed", remedy="pip install 'tracekit-ml[hta]'")


def to_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """*frame* as a pandas DataFrame; categories stay categories."""
    need_pandas()
    return frame.to_pandas()
