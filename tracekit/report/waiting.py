"""Waiting and transfer in words and as JSON: who waits for whom, and how far the matching can be trusted."""

from __future__ import annotations

from typing import Any

import polars as pl

from tracekit.model.layout import ParallelLayout
from tracekit.model.quantity import ns, percent
from tracekit.model.report import Report
from tracekit.report.phrases import plural

_MOST_NAMED = 3
_MOSTLY = 0.5
"""Share of the exposed communication from which on waiting is said to be its cost."""
_MATTERS = 0.05
"""Share of the step from which on it makes the headline."""


def headline(report: Report) -> str:
    """That waiting, not the network, is the cost, and for whom; empty where it is not."""
    worst = _worst(report)
    if worst is None or worst["exposed_wait_ns"] < _MOSTLY * worst["exposed_comm_ns"]:
        return ""
    if worst["exposed_wait_ns"] < _MATTERS * worst["step_ns"]:
        return ""
    share = percent(worst["exposed_wait_ns"] / worst["step_ns"])
    return (
        f"Waiting, not the network, is the cost of communication: rank {worst['rank']} waits for others for"
        f" {ns(worst['exposed_wait_ns'])} ({share} of its time) and transfers for {ns(worst['exposed_rest_ns'])}"
        f"{_who_came_last(report)}"
    )


def waiting_text(report: Report) -> str:
    """How much of the exposed communication is waiting, where that is no headline; empty where nothing was matched."""
    worst = _worst(report)
    if worst is None or headline(report):
        return ""
    if not worst["exposed_wait_ns"]:
        return "no rank waits for another in exposed communication: all of it is transfer"
    return (
        f"of rank {worst['rank']}'s exposed communication {ns(worst['exposed_wait_ns'])} is waiting for other ranks,"
        f" {ns(worst['exposed_rest_ns'])} transfer{_who_came_last(report)}"
    )


def _worst(report: Report) -> dict[str, Any] | None:
    """The row of ``waits`` of the rank that waits longest; None where nothing is exposed or could be matched."""
    waits = report.tables.get("waits")
    if waits is None:
        return None
    told = waits.filter(pl.col("matched_ratio") > 0, pl.col("exposed_comm_ns") > 0)
    ordered = told.sort("exposed_wait_ns", "exposed_comm_ns", "rank", descending=[True, True, False])
    return None if ordered.is_empty() else ordered.row(0, named=True)


def _who_came_last(report: Report) -> str:
    stragglers, matches = report.tables.get("stragglers"), report.tables.get("matches")
    if stragglers is None or matches is None:
        return ""
    last = stragglers.filter(pl.col("times_last") > 0).sort("times_last", "rank", descending=[True, False])
    named = [f"rank {rank} to {times:,}" for rank, times in last.select("rank", "times_last").head(_MOST_NAMED).rows()]
    if not named:
        return ""
    return f". Last to come: {', '.join(named)} of {plural(matches.height, 'matched collective')}"


def matching_note(report: Report) -> str:
    """What could not be matched; empty when all was, or when there was nothing to match."""
    found = report.tables.get("communication")
    if found is None or found.is_empty() or found["rank"].n_unique() < 2:
        return ""
    total, matched = int(found["count"].sum()), int(found["matched"].sum())
    if matched == total:
        return ""
    return (
        f"{total - matched:,} of {plural(total, 'communication operation')} could not be matched across ranks:"
        " whether they are waiting or transfer is not known"
    )


def clock_notes(report: Report) -> list[str]:
    """Which ranks' clocks were put right, by how much and how surely."""
    moved = report.ranks.filter(pl.col("clock_offset_ns") != 0).sort("rank")
    return [
        f"clock of rank {rank} put right by {ns(abs(offset))} {'forward' if offset > 0 else 'back'}"
        + ("" if error is None else f", to within {ns(error)}")
        for rank, offset, error in moved.select("rank", "clock_offset_ns", "clock_error_ns").rows()
    ]


def collectives_json(report: Report) -> list[dict[str, Any]]:
    """One entry for each matched collective; waiting by rank."""
    found = report.tables.get("matches")
    if found is None:
        return []
    return [
        row | {"wait_ns": dict(zip(map(str, row["group_ranks"]), row["wait_ns"], strict=True))}
        for row in found.to_dicts()
    ]


def stragglers_json(report: Report) -> list[dict[str, Any]]:
    """The ranks that others wait for, dearest first."""
    found = report.tables.get("stragglers")
    if found is None:
        return []
    return [
        {
            "rank": row["rank"],
            "cost_ns": [row["least_ns"], row["cost_ns"]],
            "times_last": row["times_last"],
            "collectives": row["collectives"],
            "cause": row["cause"],
            "evidence": {
                name: row[name]
                for name in ("excess_ns", "cause_ratio", "waiting_rank", "waiting_ns", "steps_worst", "steps")
            },
        }
        for row in found.to_dicts()
    ]


def layout_json(report: Report) -> dict[str, Any] | None:
    """Parallel dimensions with their groups, how each was decided, and every rank's coordinates; null without groups."""
    found = report.tables.get("groups")
    if found is None:
        return None
    layout = ParallelLayout.of((row[0], tuple(row[1])) for row in found.select("dimension", "ranks").rows())
    ranks = sorted(report.analysed["rank"].unique())
    return {
        "sizes": layout.sizes,
        "groups": {name: [list(group) for group in groups] for name, groups in layout.groups.items()},
        "coordinates": {str(rank): layout.coordinates(rank) for rank in ranks},
        "decisions": [
            {name: row[name] for name in ("ranks", "op", "dimension", "decided_by", "reason")}
            for row in found.to_dicts()
        ],
    }
