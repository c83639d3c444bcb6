"""Analyses, one question a file. Adding one: a file, its import and a line here, a test file, a page per finding code."""

# No `from __future__ import annotations` here: it would hide the module of that name.
from tracekit.analyses import (
    annotations,
    blame,
    breakdown,
    communication,
    copies,
    groups,
    idle,
    idle_spans,
    kernel_classes,
    kernels,
    launch_stats,
    matches,
    mean_step,
    operators,
    overlap,
    queues,
    step_breakdown,
    stragglers,
    waits,
)
from tracekit.model.analysis import Analysis

ANALYSES: tuple[Analysis, ...] = (
    breakdown.ANALYSIS,
    step_breakdown.ANALYSIS,
    mean_step.ANALYSIS,
    overlap.ANALYSIS,
    kernels.ANALYSIS,
    kernel_classes.ANALYSIS,
    idle_spans.ANALYSIS,
    idle.ANALYSIS,
    launch_stats.ANALYSIS,
    queues.ANALYSIS,
    copies.ANALYSIS,
    operators.ANALYSIS,
    annotations.ANALYSIS,
    groups.ANALYSIS,
    waits.ANALYSIS,
    blame.ANALYSIS,
    stragglers.ANALYSIS,
    matches.ANALYSIS,
    communication.ANALYSIS,
)
"""Every analysis, in the order of reports."""
