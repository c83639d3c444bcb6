"""Which rank every recording of a run is. Conflicts are told by file name and nothing is ever overwritten."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
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
_TOGETHER_NS = 60_000_000_000
"""Recordings less than this apart were made at the same time: ranks start late, clocks differ."""


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
    kept, aside = list(claims), []
    for rule in (_of_one_world, _of_one_folder, _recorded_together):
        kept, others = rule(kept)
        aside += others
    return kept, aside


def _of_one_world(claims: Sequence[Claim]) -> tuple[list[Claim], list[Identity]]:
    """Without those that tell another world size than most do."""
    sizes = Counter(claim.info.world_size for claim in claims if claim.info.world_size)
    if len(sizes) <= 1:
        return list(claims), []
    size = max(sizes, key=lambda s: (sizes[s], s))
    told = ", ".join(str(s) for s in sorted(sizes))
    return _split(
        claims,
        lambda claim: claim.info.world_size in {None, size},
        f"world sizes {told} are mixed here and most files say {size}; analyse it on its own",
    )


def _of_one_folder(claims: Sequence[Claim]) -> tuple[list[Claim], list[Identity]]:
    """Those of the folder that holds most, where folders hold the same ranks."""
    folders: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        folders[_folder(claim)].append(claim)
    ranks = [{claim.info.rank for claim in inside} - {None} for inside in folders.values()]
    if len(folders) <= 1 or len(set().union(*ranks)) == sum(len(r) for r in ranks):
        return list(claims), []
    chosen = max(folders, key=lambda f: (len(folders[f]), max(c.info.end_ns for c in folders[f])))
    return _split(
        claims,
        lambda claim: _folder(claim) == chosen,
        f"its folder has the same ranks as {chosen}, which is analysed; give one folder at a time",
    )


def _recorded_together(claims: Sequence[Claim]) -> tuple[list[Claim], list[Identity]]:
    """Without those recorded at another time, on other devices or without a word of whose they are.

    Ranks of one run record at the same time. Recordings of several times are cycles of one run only where nothing
    speaks against it, and times alone do not: the clocks of old traces count from a host's start.
    """
    nothing = [claim for claim in claims if _wrote_nothing(claim)]
    claims = [claim for claim in claims if not _wrote_nothing(claim)]
    kinds: dict[tuple[str | None, str], list[Claim]] = defaultdict(list)
    for claim in claims:
        kinds[claim.info.device_name, claim.info.view].append(claim)

    def weight(kind: tuple[str | None, str]) -> tuple[bool, int, int]:
        inside = kinds[kind]
        return any(not _silent(c) for c in inside), len(inside), max(c.info.end_ns for c in inside)

    chosen = max(kinds, key=weight, default=None)
    told = [claim for claim in claims if chosen == (claim.info.device_name, claim.info.view) and not _silent(claim)]
    anchors = told or kinds.get(chosen or (None, ""), [])

    def belongs(claim: Claim) -> bool:
        devices = {claim.info.device_name, anchors[0].info.device_name} - {None}
        like = claim.info.view == anchors[0].info.view and len(devices) <= 1
        unknown = _silent(claim) and bool(told)
        return (like and not unknown) or any(_concurrent(claim, anchor) for anchor in anchors)

    anchor = f"{anchors[0].source} ({anchors[0].info.device_name or 'no device named'})" if anchors else ""
    kept, aside = _split(
        claims,
        belongs,
        f"recorded at another time than {anchor}, and nothing says that they belong together; analyse it on its own",
    )
    return kept + nothing, aside


def _silent(claim: Claim) -> bool:
    """Whether neither the recording nor its name says which part of which run it is."""
    return claim.info.world_size is None and rank_in_name(claim.source) is None


def _wrote_nothing(claim: Claim) -> bool:
    """Whether it is a rank that was killed before it wrote: no time and no device of it speaks for or against a run."""
    return claim.info.status == "empty" and not _silent(claim)


def _concurrent(one: Claim, other: Claim) -> bool:
    apart = max(one.info.start_ns, other.info.start_ns) - min(one.info.end_ns, other.info.end_ns)
    return apart <= _TOGETHER_NS


def _split(
    claims: Sequence[Claim], belongs: Callable[[Claim], bool], reason: str
) -> tuple[list[Claim], list[Identity]]:
    verdicts = [(claim, belongs(claim)) for claim in claims]
    aside = [
        Identity(c, c.info.rank or 0, set_aside=f"another run: {reason}", rank_source=c.info.rank_source)
        for c, mine in verdicts
        if not mine
    ]
    return [claim for claim, mine in verdicts if mine], aside


def _folder(claim: Claim) -> str:
    return str(PurePosixPath(claim.source).parent)


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
    in_turn: dict[int, list[Info]] = {}
    for claim, name in zip(silent, names, strict=True):
        rank = name if name is not None else _next(claim, in_turn, taken)
        taken.add(rank)
        how = "file name" if name is not None else "order"
        note = f"{claim.source} does not say its rank; taken as rank {rank} by {how}"
        identities.append(Identity(claim, rank, rank_source=how, notes=(note,)))
    return identities


def _next(claim: Claim, in_turn: dict[int, list[Info]], taken: set[int]) -> int:
    """The rank of a recording that only its order tells: that of others made at other times, of which it is another cycle.

    *in_turn* holds the recordings of each such rank.
    """
    mine = claim.info

    def is_another_cycle(others: list[Info]) -> bool:
        return all(mine.end_ns <= other.start_ns or other.end_ns <= mine.start_ns for other in others)

    rank = next((rank for rank, others in in_turn.items() if is_another_cycle(others)), None)
    rank = _free(taken) if rank is None else rank
    in_turn.setdefault(rank, []).append(mine)
    return rank


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
