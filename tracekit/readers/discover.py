"""Which files a person means by the paths given: files, folders, globs."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracekit.model.errors import UnreadableError, UsageError
from tracekit.readers import sidecar
from tracekit.readers.sniff import sniff

_SUFFIXES = (".json", ".json.gz", ".trace", ".trace.gz")
_MAGIC_CHARACTERS = set("*?[")


@dataclass(frozen=True, slots=True)
class Found:
    """A file to read. *named* if the user gave it by name: then not being a trace is an error, not a shrug."""

    path: Path
    source: str
    """Path relative to what the user gave: what reports call the file."""
    named: bool


def discover(paths: Sequence[str | Path]) -> list[Found]:
    """Files under *paths* in natural order, each once. Raises `UsageError` or `UnreadableError` naming the path and a remedy."""
    if not paths:
        raise UsageError("no path given", remedy="give a trace file, a folder of traces, or a glob")
    found: dict[Path, Found] = {}
    for given in paths:
        for path, top, named in _expand(given):
            source = path.name if named else path.relative_to(top).as_posix()
            found.setdefault(path.resolve(), Found(path, source, named))
    files = sorted(found.values(), key=lambda f: _natural(str(f.path)))
    sources = [file.source for file in files]
    if len(set(sources)) < len(sources):  # same name in several places: say the whole of what was given
        files = [Found(file.path, file.path.as_posix(), file.named) for file in files]
    return files


def _expand(given: str | Path) -> list[tuple[Path, Path, bool]]:
    path = Path(given).expanduser()
    if path.is_dir():
        inside = [(file, path, False) for file in _files(path)]
        if not inside:
            raise UnreadableError(
                "no traces in this folder",
                where=str(given),
                remedy="traces are .json or .json.gz files; record some with torch.profiler",
            )
        return inside
    if path.exists():
        return [(sidecar.trace_of(path) or path, path.parent, True)]
    if _MAGIC_CHARACTERS & set(str(given)):
        matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
        expanded = [entry for match in matches for entry in _expand(match)]
        if expanded:
            return expanded
        raise UnreadableError("nothing matches", where=str(given), remedy="quote the pattern and check the folder")
    raise UnreadableError("no such file or folder", where=str(given), remedy="check the path")


def _files(folder: Path) -> list[Path]:
    """Regular, visible files below *folder* that are named like traces or look like JSON inside. Links to folders are not followed."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and sidecar.trace_of(path) is None
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and (path.name.endswith(_SUFFIXES) or _looks_like_trace(path))
    ]


def _looks_like_trace(path: Path) -> bool:
    try:
        return path.suffix in {"", ".gz", ".txt"} and path.stat().st_size > 0 and sniff(path).may_be_trace
    except OSError:
        return False


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort key by which rank 2 comes before rank 10."""
    parts: list[tuple[int, str]] = []
    digits = ""
    for character in text + "\0":
        if character.isdecimal():
            digits += character
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, character))
    return parts
