"""What `tracekit.instrument.routing` was told of mixture-of-experts layers."""

from __future__ import annotations

from collections.abc import Callable

from tracekit.instrument.facts import Facts
from tracekit.instrument.moe import routed
from tracekit.instrument.settings import Settings


def install(facts: Facts, _settings: Settings) -> Callable[[], None]:
    routed.take()

    def gather() -> None:
        facts.routing = routed.take()
        if routed.dropped:
            facts.dropped["calls of routing()"] = routed.dropped

    facts.at_end.append(gather)
    return lambda: None
