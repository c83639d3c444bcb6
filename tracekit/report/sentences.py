"""What every form of the report says in the same words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Final

from tracekit.model.finding import Finding
from tracekit.model.quantity import ns, percent
from tracekit.model.report import Report
from tracekit.report.digest import Bar, Digest
from tracekit.report.facts import devices_unrecorded, unused, world_size
from tracekit.report.phrases import of_world, plural, ranks_text
from tracekit.report.waiting import clock_notes, matching_note

_PAIR: Final = 2
_IDLE_WORDS: Final = {
    "host_bound": "until the host launched",
    "sync": "for calls that block the host",
    "data": "for the next batch",
    "dependency": "with work in the queue",
    "allocation": "for device memory",
    "other": "for work of unknown launch",
}
"""What each cause of ``idle_spans`` waits for."""


def head_facts(report: Report) -> list[str]:
    """What was analysed: how many of how many ranks, steps, devices, backend, strategy."""
    analysed = report.analysed
    facts = [of_world(analysed["rank"].n_unique(), world_size(report.ranks))]
    facts.append(plural(report.steps, "step") if report.steps else "no steps")
    for device, number in analysed["device_name"].drop_nulls().value_counts(sort=True).rows():
        facts.append(f"{device} x {number}" if number > 1 else device)
    facts += analysed["backend"].drop_nulls().unique().sort().to_list()
    facts += [report.strategy] if report.strategy else []
    if analysed["view"].is_in(["host"]).any():
        why = "GPU events were not recorded" if devices_unrecorded(analysed) else "CPU view"
        facts.append(f"{why}: operators stand for kernels")
    return facts


def step_text(report: Report, digested: Digest) -> tuple[str, str]:
    """How long a step is, and how it was measured; of the window, said so, when there are no steps."""
    if not report.steps or digested.spread_ns is None:
        return (
            f"window {ns(report.step_ns)}",
            "no steps found: figures are of the whole recording, first to last device event",
        )
    several, whose = ("ranks and steps", "median rank's mean") if len(digested.bars) > 1 else ("steps", "mean")
    spread = f"{whose}; {several} take {_spread(digested.spread_ns, ns)}" if digested.steps > 1 else "one step"
    if report.step_source == "inferred":
        spread += "; steps were inferred from periodicity, not marked"
    if digested.windowed:
        spread += f"; {ranks_text(digested.windowed)} without steps: whole window"
    return f"step {ns(report.step_ns)}", spread


def rank_name(bar: Bar, digested: Digest) -> str:
    """``rank 3``; with the recording's number when a rank has several."""
    several = sum(other.rank == bar.rank for other in digested.bars) > 1
    return f"rank {bar.rank} #{bar.window}" if several else f"rank {bar.rank}"


def verdict(digested: Digest, shown: int) -> str:
    """Which ranks differ, and how many bars of how many are shown."""
    if len(digested.bars) == _PAIR:
        relation = "differ by more than" if digested.differing else "are within"
        return f"the two ranks {relation} 10 % of a rank's time"
    if digested.differing:
        verb = "differs" if len(digested.differing) == 1 else "differ"
        text = f"{ranks_text(digested.differing)} {verb} from the median rank by more than 10 % of its time"
    else:
        text = "no rank differs from the median one by more than 10 % of its time"
    if shown < len(digested.bars):
        text += f"; {shown} of {len(digested.bars)} bars shown"
    return text


def communication_text(digested: Digest) -> str:
    """How much of the communication is hidden. Waiting for late ranks is inside its time, and said to be."""
    communicating = [bar for bar in digested.bars if bar.comm_ns > 0]
    if not communicating:
        return "no communication observed"
    times = _spread([bar.comm_ns for bar in communicating], ns)
    shares = _spread([bar.overlapped_comm_ns / bar.comm_ns for bar in communicating], percent)
    each = " a rank" if len(digested.bars) > 1 else ""
    return f"communication {times}{each}, waiting for other ranks included; {shares} of it runs under compute"


def _spread(values: Sequence[float], text: Callable[[float], str]) -> str:
    """The lowest and the highest of *values*, once when they read the same."""
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


def idle_text(report: Report, digested: Digest) -> str:
    """What the idle time of the typical rank waits for, the longest first; empty when there is none."""
    if not digested.idle or digested.typical is None:
        return ""
    on_host = (report.analysed.filter(rank=digested.typical.rank)["view"] == "host").any()
    words = {**_IDLE_WORDS, "other": "Python between operators"} if on_host else _IDLE_WORDS
    whose = f"rank {digested.typical.rank} idles" if len(digested.bars) > 1 else "idle"
    return f"{whose}: {' · '.join(f'{ns(time)} {words[cause]}' for cause, time in digested.idle)}"


def cost(finding: Finding) -> str:
    """A finding's cost as a span of time and its share of the step."""
    low, high = finding.cost_ns
    if high <= 0:
        return "not priced"
    span = f"{ns(low)} to {ns(high)}" if low > 0 else f"up to {ns(high)}"
    span = ns(high) if ns(low) == ns(high) else span
    return f"{span} ({percent(finding.share_ratio)})" if finding.share_ratio else span


def kernels_heading(report: Report) -> str:
    """What the list of kernels is a list of, and of how many ranks."""
    what = "Kernels" if (report.analysed["view"] == "device").any() else "Operators"
    analysed = report.analysed["rank"].n_unique()
    of = world_size(report.ranks)
    if of is not None and analysed < of:
        return f"{what}, {of_world(analysed, of)}"
    return f"{what}, all ranks" if analysed > 1 else what


def health_facts(report: Report) -> list[str]:
    """What was read, repaired, dropped and left out."""
    ranks = report.ranks
    facts = [f"{plural(int(ranks['events_read'].sum()), 'event')} read"]
    touched = int(ranks["device_ns_touched"].sum())
    repaired = f"{ranks['events_repaired'].sum():,} repaired"
    facts.append(f"{repaired} ({ns(touched)} of device time)" if touched else repaired)
    facts.append(f"{ranks['events_dropped'].sum():,} dropped")
    if unused := len(ranks) - len(report.analysed):
        facts.append(f"{plural(unused, 'recording')} not used")
    return facts


def notes(report: Report) -> list[str]:
    """What a person should know, the run's first; what several recordings share is said once, with their ranks."""
    ranks_by_note: dict[str, list[int]] = defaultdict(list)
    for row in report.ranks.select("rank", "reason", "notes").to_dicts():
        for note in row["notes"] or ():
            if note != row["reason"]:
                ranks_by_note[note].append(row["rank"])
    everyone = set(report.analysed["rank"])
    return [
        *report.notes,
        *unused(report.ranks),
        *clock_notes(report),
        *([note] if (note := matching_note(report)) else []),
        *(f"{_whose(ranks, everyone)}{note}" for note, ranks in ranks_by_note.items()),
    ]


def skipped_text(report: Report) -> list[str]:
    """Analyses that did not run, those with the same reason together."""
    names: dict[str, list[str]] = defaultdict(list)
    for skipped in report.skipped:
        names[skipped.reason].append(skipped.analysis)
    return [f"not analysed: {', '.join(analyses)} ({reason})" for reason, analyses in names.items()]


def _whose(ranks: Sequence[int], everyone: Collection[int]) -> str:
    if not ranks:
        return ""
    return "every rank: " if len(everyone) > 1 and set(ranks) >= set(everyone) else f"{ranks_text(ranks)}: "
