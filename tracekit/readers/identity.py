"""Which rank every recording of a run is. Conflicts are told by file name and nothing is ever overwritten."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath

from tracekit.readers.recording import Info

_NAME_PATTERNS = (
    re.compile(r"rank[-_. ]?(\d+)", re.IGNORECASE),
    re.compile(r"worker[-_. ]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:gpu|device|proc|pe)[-_. ]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])r(\d+)(?=[-_.])", re.IGNORECASE),
)
_NUMBER = re.compile(r"\d+")
_MOST_RANK = 1 << 24


@dataclass(frozen=True, slots=True)
class Claim:
    """A recording and what it claims to be."""

    source: str
    info: Info


@dataclass(frozen=True, slots=True)
class Identity:
    """What a recording was taken for."""

    claim: Claim
    rank: int
    window: int = 0
    rank_source: str = "order"
    set_aside: str = ""
    """Why the recording is left out of the figures: it belongs to another run."""
    notes: tuple[str, ...] = field(default=())


def identify(claims: Sequence[Claim]) -> list[Identity]:
    """Give every claim a rank and window, in order of rank. (rank, window) is unique among those not set aside."""
    kept, aside = _one_run(claims)
    by_rank: dict[int, list[Identity]] = defaultdict(list)
    for identity in _claimed(kept):
        by_rank[identity.rank].append(identity)
    settled: list[Identity] = []
    taken = set(by_rank)
    for rank in sorted(by_rank):
        settled += _settle(by_rank[rank], taken)
    settled.sort(key=lambda identity: (identity.rank, identity.window))
    return settled + aside


def rank_in_name(source: str) -> int | None:
    """The rank that a file, or a folder it is in, is named after: ``rank3.json``, ``rank_3/trace.json``, ...; else None."""
    for part in reversed(PurePosixPath(source).parts):
        for pattern in _NAME_PATTERNS:
            if (match := pattern.search(part)) and int(match[1]) < _MOST_RANK:
                return int(match[1])
    return None


def _one_run(claims: Sequence[Claim]) -> tuple[list[Claim], list[Identity]]:
    """The claims of the run that most recordings belong to, and the others set aside with the reason."""
    sizes = Counter(claim.info.world_size for claim in claims if claim.info.world_size)
    if len(sizes) > 1:
        size = max(sizes, key=lambda s: (sizes[s], s))
        mine = [claim for claim in claims if claim.info.world_size in {None, size}]
        told = ", ".join(str(s) for s in sorted(sizes))
        reason = f"another run: world sizes {told} are mixed here and most files say {size}; analyse it on its own"
        return _one_folder(mine, [c for c in claims if c not in mine], reason)
    return _one_folder(list(claims), [], "")


def _one_folder(claims: list[Claim], others: list[Claim], reason: str) -> tuple[list[Claim], list[Identity]]:
    aside = [_aside(claim, reason) for claim in others]
    folders: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        folders[str(PurePosixPath(claim.source).parent)].append(claim)
    ranks = [{claim.info.rank for claim in inside} - {None} for inside in folders.values()]
    clash = len(folders) > 1 and len(set().union(*ranks)) < sum(len(r) for r in ranks)
    if not clash:
        return claims, aside
    chosen = max(folders, key=lambda f: (len(folders[f]), max(c.info.end_ns for c in folders[f])))
    for folder, inside in folders.items():
        if folder != chosen:
            why = f"another run: folder {folder} has the same ranks as {chosen}, which is analysed; give one folder at a time"
            aside += [_aside(claim, why) for claim in inside]
    return folders[chosen], aside


def _aside(claim: Claim, reason: str) -> Identity:
    return Identity(claim, claim.info.rank or 0, set_aside=reason, rank_source=claim.info.rank_source)


def _claimed(claims: Sequence[Claim]) -> list[Identity]:
    """Each claim by its own word; those without one by their file names, else by order."""
    told = [claim for claim in claims if claim.info.rank is not None]
    silent = [claim for claim in claims if claim.info.rank is None]
    identities = [Identity(c, c.info.rank or 0, rank_source=c.info.rank_source) for c in told]
    taken = {identity.rank for identity in identities}
    if len(claims) == 1 and silent:
        named = rank_in_name(silent[0].source)
        return [Identity(silent[0], named or 0, rank_source="only file" if named is None else "file name")]
    names = [rank_in_name(claim.source) for claim in silent]
    if any(name is None for name in names):
        names = _distinct_numbers([claim.source for claim in silent])
    for claim, name in zip(silent, names, strict=True):
        rank = name if name is not None else _free(taken)
        taken.add(rank)
        how = "file name" if name is not None else "order"
        note = f"{claim.source} does not say its rank; taken as rank {rank} by {how}"
        identities.append(Identity(claim, rank, rank_source=how, notes=(note,)))
    return identities


def _distinct_numbers(sources: Sequence[str]) -> list[int | None]:
    """The number by which names of one shape differ, if there is exactly one place and it gives 0..n-1 or so."""
    numbers = [_NUMBER.findall(PurePosixPath(source).name) for source in sources]
    if len(sources) > 1 and len({len(found) for found in numbers}) == 1:
        for column in zip(*numbers, strict=True):
            values = [int(text) for text in column]
            if len(set(values)) == len(values) and max(values) < 2 * len(values):
                return list(values)
    return [None] * len(sources)


def _settle(rivals: list[Identity], taken: set[int]) -> list[Identity]:
    """Recordings that claim one rank: separate windows if their times are, else told apart by name, else by order."""
    if len(rivals) == 1:
        return rivals
    rivals = sorted(rivals, key=lambda rival: rival.claim.info.start_ns)
    names = " and ".join(rival.claim.source for rival in rivals[:4])
    infos = [rival.claim.info for rival in rivals]
    empty = [info.start_ns == info.end_ns for info in infos]
    apart = all(a.end_ns <= b.start_ns for a, b in pairwise(infos))
    if apart or any(empty):
        note = f"{names} are separate recordings of rank {rivals[0].rank}; each is a window of its own"
        return [replace(rival, window=window, notes=(*rival.notes, note)) for window, rival in enumerate(rivals)]
    settled: list[Identity] = []
    for rival in sorted(rivals, key=lambda rival: rank_in_name(rival.claim.source) != rival.rank):
        if not settled:
            settled.append(rival)
            continue
        named = rank_in_name(rival.claim.source)
        rank, how = (named, "file name") if named is not None and named not in taken else (_free(taken), "order")
        taken.add(rank)
        note = (
            f"{names} all claim rank {rival.rank} at the same time; {rival.claim.source} taken as rank {rank} by {how}"
        )
        settled.append(replace(rival, rank=rank, rank_source=how, notes=(*rival.notes, note)))
    return settled


def _free(taken: set[int]) -> int:
    rank = 0
    while rank in taken:
        rank += 1
    return rank
