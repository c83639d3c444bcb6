"""Clocks of two ranks are compared by ping-pong."""

from __future__ import annotations

import time

from tracekit.instrument.clock import _Server, ask

OFFSET_NS = 5_000_000


def test_an_offset_of_5_ms_is_recovered_within_100_us() -> None:
    server = _Server(lambda: time.time_ns() + OFFSET_NS)
    try:
        clock = ask("127.0.0.1", server.key(), time.time_ns)
    finally:
        server.close()
    assert clock is not None
    assert abs(clock.offset_ns - OFFSET_NS) < min(100_000, clock.error_ns + 1)


def test_who_does_not_know_the_token_gets_no_answer() -> None:
    server = _Server(time.time_ns)
    port, _, token = server.key().partition(b"|")
    try:
        assert ask("127.0.0.1", port + b"|" + bytes(reversed(token)), time.time_ns) is None
    finally:
        server.close()
