"""Counts the floating-point operations of one step."""

from __future__ import annotations

from typing import Any


class FlopCount:
    """Counts between `start` and `stop`, once. Counting slows the step, which is why it is a warm-up step."""

    def __init__(self, wanted: bool) -> None:
        self.count = 0
        self._wanted = wanted
        self._counter: Any = None

    def start(self) -> None:
        if self._wanted:
            from torch.utils.flop_counter import FlopCounterMode

            self._counter = FlopCounterMode(display=False)
            self._counter.__enter__()

    def stop(self) -> None:
        if self._counter is not None:
            self._counter.__exit__(None, None, None)
            self.count = int(self._counter.get_total_flops())
            self._counter, self._wanted = None, False
