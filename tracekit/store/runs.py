"""A whole run's tables as a folder that people keep: what ``tracekit convert`` writes and every command opens again.

ranks.parquet
events/rank-0.parquet, events/rank-1.parquet, ...      (rank-0-window-1.parquet for a rank's second recording)
collectives/..., steps/..., pipeline/..., memory/...
sidecars.json                                          what the recorder wrote beside the traces, if it did
tracekit.json                                          written last: without it the folder is not whole
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl

from tracekit.model.errors import UnreadableError, UsageError, none_of_them
from tracekit.model.records import Sidecar
from tracekit.model.run import RunTables
from tracekit.model.tables import RECORDED
from tracekit.store.index import FORMAT_VERSION, RUN_MARK

_RANKS = "ranks.parquet"
_SIDECARS = "sidecars.json"


class _Kept(msgspec.Struct, frozen=True):
    """An entry of ``sidecars.json``."""

    rank: int
    window: int
    sidecar: Sidecar


class _Mark(msgspec.Struct, frozen=True):
    """Contents of ``tracekit.json``."""

    format: int


def write_run(run: RunTables, folder: Path) -> list[Path]:
    """Write *run* into *folder*, made if it is missing, and return the files. Raises `UsageError` if it is not empty."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UsageError("the folder is not empty", where=str(folder), remedy="give a new folder")
    run.ranks.write_parquet(folder / _RANKS)
    files = [folder / _RANKS]
    for table in RECORDED:
        (folder / table.name).mkdir()
        for rank, window in (
            run.ranks.filter(pl.col("status").is_in(["read", "truncated"])).select("rank", "window").rows()
        ):
            suffix = f"-window-{window}" if window else ""
            files.append(folder / table.name / f"rank-{rank}{suffix}.parquet")
            run[table.name].filter(rank=rank, window=window).sink_parquet(files[-1])
    if run.sidecars:
        files.append(folder / _SIDECARS)
        files[-1].write_bytes(msgspec.json.encode([_Kept(*key, each) for key, each in run.sidecars.items()]))
    files.append(folder / RUN_MARK)
    files[-1].write_bytes(msgspec.json.encode(_Mark(FORMAT_VERSION)))
    return files


def read_run(folder: Path, ranks: frozenset[int] | None = None) -> RunTables:
    """Open what `write_run` wrote, or of it the *ranks* asked for. Raises `UnreadableError` for a folder of another version."""
    try:
        mark = msgspec.json.decode((folder / RUN_MARK).read_bytes(), type=_Mark)
    except (OSError, msgspec.DecodeError) as error:
        raise UnreadableError(
            f"its {RUN_MARK} cannot be read ({error})", where=str(folder), remedy="convert again"
        ) from None
    if mark.format != FORMAT_VERSION:
        raise UnreadableError(
            f"written in format {mark.format}, this version reads {FORMAT_VERSION}",
            where=str(folder),
            remedy="convert again",
        )
    tables = {}
    for table in RECORDED:
        files = sorted((folder / table.name).glob("*.parquet"))
        tables[table.name] = pl.concat([pl.scan_parquet(file) for file in files]) if files else table.empty().lazy()
    kept = pl.lit(True) if ranks is None else pl.col("rank").is_in(sorted(ranks))
    every_rank = pl.read_parquet(folder / _RANKS)
    if ranks is not None and not every_rank["rank"].is_in(sorted(ranks)).any():
        raise none_of_them("ranks", ranks, set(every_rank["rank"]))
    return RunTables(
        ranks=every_rank.filter(kept),
        tables={name: table.filter(kept) for name, table in tables.items()},
        sidecars=_sidecars(folder, ranks),
    )


def _sidecars(folder: Path, ranks: frozenset[int] | None) -> dict[tuple[int, int], Sidecar]:
    try:
        kept = msgspec.json.decode((folder / _SIDECARS).read_bytes(), type=list[_Kept])
    except FileNotFoundError:
        return {}
    return {(each.rank, each.window): each.sidecar for each in kept if ranks is None or each.rank in ranks}
