"""What a run's traces hold, what they lack for better answers, and the setting that records it the next time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from tracekit.model.quantity import percent
from tracekit.model.run import RunTables
from tracekit.report.facts import Facts, gather
from tracekit.report.phrases import of_world, plural, ranks_text

_STEPS_WANTED: Final = 3
_LINKED_ENOUGH: Final = 0.99


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """One thing that the traces lack."""

    key: str
    what: str
    gain: str
    """What tracekit could say if it were there."""
    remedy: str
    """The exact setting that records it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What `tracekit doctor` has to say."""

    title: str
    facts: Facts
    holds: tuple[str, ...]
    lacks: tuple[Lack, ...]
    recipe: str
    """The `torch.profiler` call that records what is lacking; empty when no setting of it would."""


def diagnose(title: str, run: RunTables, shapes: bool | None = None) -> Diagnosis:
    """Look through *run*. Whether operators carry *shapes* only the files know: the caller looks (None: unknown)."""
    return diagnosis_of(title, gather(run, shapes))


def diagnosis_of(title: str, facts: Facts) -> Diagnosis:
    """What *facts* amount to."""
    lacks = tuple(lack for check in CHECKS if (lack := check(facts)))
    recipe = _recipe({lack.key for lack in lacks}, "CPU" if facts.on_cpus else "CPU CUDA")
    return Diagnosis(title=title, facts=facts, holds=_holds(facts), lacks=lacks, recipe=recipe)


def _holds(facts: Facts) -> tuple[str, ...]:
    """One short sentence for each thing that is there."""
    found = {"annotation": "from ProfilerStep", "inferred": "inferred from periodicity"}
    on_devices = f"{facts.device_events:,}" if facts.device_events else "none"
    lines = [
        of_world(len(facts.ranks), facts.world_size),
        f"{plural(facts.events, 'event')}, {on_devices} of them on devices",
    ]
    if facts.devices:
        lines.append("device: " + ", ".join(facts.devices))
    if facts.steps:
        lines.append(
            f"{plural(facts.steps, 'complete step')} per rank, {found.get(facts.step_source, facts.step_source)}"
        )
    if facts.device_events:
        lines.append(f"launches of {_share(facts.launched, facts.device_events)} of the device events")
    if facts.collectives:
        shares = [_share(part, facts.collectives) for part in (facts.grouped, facts.sized, facts.numbered)]
        told = "process group of {}, bytes of {}, sequence number of {}".format(*shares)
        lines.append(f"{plural(facts.collectives, 'communication operation')}: {told}")
    there = {
        "input shapes": facts.shapes,
        "Python stacks": facts.stacks,
        "memory": facts.memory,
        "occupancy": facts.occupied,
    }
    if any(there.values()):
        lines.append("recorded as well: " + ", ".join(what for what, present in there.items() if present))
    return tuple(lines)


def _share(part: int, whole: int) -> str:
    if part in {0, whole}:
        return "all" if part else "none"
    return percent(part / whole)


def _unread(facts: Facts) -> Lack | None:
    if not facts.unread:
        return None
    return Lack(
        key="unread",
        what=f"not everything could be read: {'; '.join(facts.unread)}",
        gain="figures for these ranks",
        remedy="copy the files again, or record again and let every rank finish writing before the job ends",
    )


def _another_run(facts: Facts) -> Lack | None:
    if not facts.set_aside:
        return None
    return Lack(
        key="another-run",
        what=f"not all of it is one run: {'; '.join(facts.set_aside)}",
        gain="figures of these recordings too, each run by itself",
        remedy="give tracekit the files of one run at a time, a folder for each",
    )


def _truncated(facts: Facts) -> Lack | None:
    if not facts.truncated:
        return None
    return Lack(
        key="truncated",
        what=f"the file of {ranks_text(facts.truncated)} ends early",
        gain="the last step, and an end of the window that can be trusted",
        remedy="let the profiler finish before the process exits: leave the `with` block, then call dist.barrier()",
    )


def _ranks(facts: Facts) -> Lack | None:
    missing = (facts.world_size or 0) - len(facts.ranks)
    if missing <= 0:
        return None
    return Lack(
        key="ranks",
        what=f"{missing:,} of {facts.world_size:,} ranks are missing",
        gain="who waits for whom; today every job-wide figure is of the ranks that are here",
        remedy="write a trace on every rank, with the rank in the file's name, and give tracekit the folder",
    )


def _rank_names(facts: Facts) -> Lack | None:
    if len(facts.ranks) == 1 or set(facts.rank_sources) <= {"distributedInfo", "process group", "sidecar"}:
        return None
    return Lack(
        key="rank-names",
        what=f"the traces do not say their rank; it was taken from: {', '.join(facts.rank_sources)}",
        gain="ranks that cannot be mistaken, the world size and the process groups",
        remedy="call torch.distributed.init_process_group() before the profiler starts; it writes distributedInfo then",
    )


def _device(facts: Facts) -> Lack | None:
    if facts.device_events or facts.on_cpus or not facts.events:
        return None
    return Lack(
        key="device",
        what="no device events: operators on the host stand for them",
        gain="device time, idle time and its causes (if the job ran on CPUs, nothing is lacking)",
        remedy="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] (CUDA also means ROCm), "
        "and a driver that lets CUPTI or roctracer attach",
    )


def _host(facts: Facts) -> Lack | None:
    if facts.operators or not facts.device_events:
        return None
    return Lack(
        key="host",
        what="no host operators",
        gain="why the device was idle, and which operator launched which kernel",
        remedy="activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    )


def _steps(facts: Facts) -> Lack | None:
    if not facts.events or (facts.steps >= _STEPS_WANTED and facts.step_source == "annotation"):
        return None
    if facts.step_source == "annotation":
        what = f"only {plural(facts.steps, 'complete step')} on the rank that has the fewest"
    else:
        what = "steps are not marked" + (
            ", they were inferred" if facts.step_source else ": figures are of the whole window"
        )
    return Lack(
        key="steps",
        what=what,
        gain="time per step, its spread, and steps that stand out",
        remedy="schedule=torch.profiler.schedule(wait=1, warmup=2, active=3), and prof.step() at the end of every step",
    )


def _launches(facts: Facts) -> Lack | None:
    if not facts.operators or not facts.device_events or facts.launched >= _LINKED_ENOUGH * facts.device_events:
        return None
    return Lack(
        key="launches",
        what=f"the launches of {plural(facts.device_events - facts.launched, 'device event')} "
        f"({percent(1 - facts.launched / facts.device_events)}) are not recorded",
        gain="idle by cause, queue depth, and kernels by operator for all of the device time",
        remedy="start recording between steps (schedule=... with warmup of at least 1), with ProfilerActivity.CPU on",
    )


def _groups(facts: Facts) -> Lack | None:
    if facts.grouped == facts.collectives:
        return None
    return Lack(
        key="groups",
        what=f"{plural(facts.collectives - facts.grouped, 'communication operation')} without process group or sizes",
        gain="communication by group (data, tensor, pipeline parallel) and its bandwidth",
        remedy="`tracekit record`: torch's profiler writes these for NCCL only, tracekit for gloo as well"
        if facts.backends == ("gloo",)
        else "torch >= 2.4 with ProfilerActivity.CPU on and init_process_group() done before the profiler starts",
    )


def _sequence(facts: Facts) -> Lack | None:
    if not facts.grouped or facts.numbered == facts.collectives:
        return None
    return Lack(
        key="sequence",
        what="communication operations without the sequence number of their group",
        gain="the same operation found on every rank beyond doubt, also when recordings start at different moments",
        remedy="a torch that writes `Seq` (2.12 or newer)",
    )


def _shapes(facts: Facts) -> Lack | None:
    if facts.shapes is not False or not facts.operators:
        return None
    return Lack(
        key="shapes",
        what="no input shapes",
        gain="achieved FLOP/s of matrix multiplications, and which sizes are slow",
        remedy="record_shapes=True",
    )


def _stacks(facts: Facts) -> Lack | None:
    if facts.stacks or not facts.operators:
        return None
    return Lack(
        key="stacks",
        what="no Python stacks",
        gain="kernels by module and by line of your code (it slows the host: do not use such a trace to time launches)",
        remedy="with_stack=True, in a second recording",
    )


def _memory(facts: Facts) -> Lack | None:
    if facts.memory or not facts.operators:
        return None
    return Lack(
        key="memory",
        what="no allocator events",
        gain="peak memory, and stalls that the allocator causes",
        remedy="profile_memory=True",
    )


def _occupancy(facts: Facts) -> Lack | None:
    if facts.occupied or not facts.kernels or facts.hip_calls:
        return None
    return Lack(
        key="occupancy",
        what="no kernel occupancy",
        gain="utilization weighted by how full the device is",
        remedy="the profiler writes `est. achieved occupancy %` by itself on CUDA: have converters and filters keep it",
    )


CHECKS: Final[tuple[Callable[[Facts], Lack | None], ...]] = (
    _unread,
    _another_run,
    _truncated,
    _ranks,
    _rank_names,
    _device,
    _host,
    _steps,
    _launches,
    _groups,
    _sequence,
    _shapes,
    _memory,
    _occupancy,
    _stacks,
)
"""Every check, those first whose lack costs most."""

_SETTINGS: Final = (
    (("shapes",), "record_shapes=True,"),
    (("memory",), "profile_memory=True,"),
)


_RECORDABLE: Final = {"ranks", "rank-names", "device", "host", "steps", "launches", "truncated", "shapes", "memory"}
"""Lacks that a setting of the profiler makes good."""


def _recipe(lacks: Collection[str], activities: str) -> str:
    """A `torch.profiler` call with what a timing run should record; stacks stay out, they slow the host."""
    if not _RECORDABLE & set(lacks):
        return ""
    extra = "".join(f"    {setting}\n" for keys, setting in _SETTINGS if set(keys) & set(lacks))
    activity = ", ".join(f"ProfilerActivity.{name}" for name in activities.split())
    return (
        "def save(prof):\n"
        "    prof.export_chrome_trace(f\"traces/rank{os.environ.get('RANK', 0)}.json.gz\")\n"
        "\n"
        "with torch.profiler.profile(\n"
        f"    activities=[{activity}],\n"
        "    schedule=torch.profiler.schedule(wait=1, warmup=2, active=3),\n"
        f"{extra}"
        "    on_trace_ready=save,\n"
        ") as prof:\n"
        "    for batch in loader:\n"
        "        train_step(batch)\n"
        "        prof.step()\n"
    )
