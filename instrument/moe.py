"""`routing`: how many tokens a mixture-of-experts layer sent to each expert."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracekit.instrument.spans import switch
from tracekit.model.records import Routing

_MOST = 10_000
"""Calls kept of one recording: 100 layers for 100 steps. What is beyond is counted, not kept."""


class Routed:
    """What `routing` was told since it was last taken."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Any]] = []
        self.dropped = 0

    def add(self, layer: str, tokens: Any) -> None:
        if len(self._kept) < _MOST:
            self._kept.append((layer, tokens))
        else:
            self.dropped += 1

    def take(self) -> list[Routing]:
        """The counts so far, with the number of the call per layer as the step. Tensors are read only now, after the loop."""
        calls: dict[str, int] = {}
        taken = []
        for layer, tokens in self._kept:
            calls[layer] = calls.get(layer, -1) + 1
            counts = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
            taken.append(Routing(layer=layer, call=calls[layer], tokens=tuple(int(count) for count in counts)))
        self._kept.clear()
        return taken


routed = Routed()


def routing(layer: str, tokens: Iterable[int] | Any) -> None:
    """Say that *layer* sent *tokens* (one count per expert: a tensor or a list) in this call.

    One line in the router's forward. A tensor on a device is not read before the recording ends, so this never waits for
    the device; it must not be changed in place afterwards. Costs nothing while nothing is recorded.
    """
    if switch.annotate is not None:
        routed.add(layer, tokens)
