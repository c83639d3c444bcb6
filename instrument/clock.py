"""How this rank's clock stands to rank 0's: ping-pong over a socket of rank 0, whose address the process group's store holds.

No collective is needed, so ranks need not measure at the same moment and none waits for another for longer than `_PATIENCE_S`.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tracekit.instrument.process import distributed
from tracekit.model.records import Clock

_KEY = "tracekit/clock"
_ROUND_TRIPS = 40
_PATIENCE_S = 2.0
_ANSWER_S = 0.1
_TOKEN_BYTES = 16
_REPLY = struct.Struct("!q")

Now = Callable[[], int]


class ClockWatch:
    """Measures at `start` and again at `measure`; rank 0 answers the others from `start` to `stop`."""

    def __init__(self, now: Now = time.time_ns) -> None:
        self._now = now
        self._server: _Server | None = None
        self._first: Clock | None = None

    def start(self) -> None:
        """Begin. Without a process group there is nothing to measure."""
        dist = distributed()
        if dist is None or dist.get_world_size() == 1:
            return
        if dist.get_rank() == 0:
            self._server = _Server(self._now)
            _store(dist).set(_KEY, self._server.key())
        else:
            self._first = self._ask(dist)

    def measure(self) -> Clock | None:
        """The offset now, with the drift since `start`; None on a single process."""
        dist = distributed()
        if dist is None or dist.get_world_size() == 1:
            return None
        if dist.get_rank() == 0:
            return Clock(offset_ns=0, error_ns=0, at_ns=self._now())
        first = self._first
        last = self._ask(dist) if first is not None else None  # what was not answered then is not waited for again
        if last is None or first is None:
            return first
        best = min(first, last, key=lambda clock: clock.error_ns)
        seconds = (last.at_ns - first.at_ns) / 1e9
        moved = last.offset_ns - first.offset_ns
        # A drift smaller than what the two errors could pretend is none.
        known = seconds > 1 and abs(moved) > last.error_ns + first.error_ns
        return Clock(
            offset_ns=best.offset_ns,
            error_ns=best.error_ns,
            at_ns=best.at_ns,
            drift_ppb=moved / seconds if known else 0.0,
            round_trips=first.round_trips + last.round_trips,
        )

    def stop(self) -> None:
        """Rank 0 stops answering."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _ask(self, dist: Any) -> Clock | None:
        with suppress(OSError, RuntimeError):
            store = _store(dist)
            store.wait([_KEY], _timedelta(_PATIENCE_S))
            return ask(_host(store), store.get(_KEY), self._now)
        return None


def ask(host: str, key: bytes, now: Now) -> Clock | None:
    """Ping the server on *host* and keep the quickest answer: its error is half the round trip. None without an answer.

    *key* is what the server published: its port and the token that it answers to.
    """
    port, token = key.split(b"|")
    best: tuple[int, int, int] | None = None
    answered = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(_ANSWER_S)
        link.connect((host, int(port)))
        for number in range(_ROUND_TRIPS):
            ping = token + number.to_bytes(4, "big")
            sent = now()
            link.send(ping)
            try:
                reply = link.recv(64)
            except OSError:
                if number > 3 and not answered:
                    return None
                continue
            received = now()
            if reply[: len(ping)] != ping:
                continue
            answered += 1
            theirs = _REPLY.unpack(reply[len(ping) :])[0]
            trip = received - sent
            if best is None or trip < best[0]:
                best = (trip, theirs - (sent + received) // 2, received)
    return Clock(offset_ns=best[1], error_ns=best[0] // 2 + 1, at_ns=best[2], round_trips=answered) if best else None


class _Server:
    """Answers pings that carry the token with this process's time."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._token = secrets.token_bytes(_TOKEN_BYTES).hex().encode()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("", 0))
        self._socket.settimeout(0.2)
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="tracekit-clock", daemon=True)
        self._thread.start()

    def key(self) -> bytes:
        return b"%d|%b" % (self._socket.getsockname()[1], self._token)

    def _serve(self) -> None:
        while not self._closing:
            try:
                ping, sender = self._socket.recvfrom(64)
            except OSError:
                continue
            if ping.startswith(self._token):
                self._socket.sendto(ping + _REPLY.pack(self._now()), sender)

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self._socket.close()


def _store(dist: Any) -> Any:
    return dist.distributed_c10d._get_default_store()


def _host(store: Any) -> str:
    """Where rank 0 is: where its store is, or what the launcher said."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None) or os.environ.get("MASTER_ADDR")
    if not host:
        raise OSError("nobody says where rank 0 is")
    return str(host)


def _timedelta(seconds: float) -> Any:
    from datetime import timedelta

    return timedelta(seconds=seconds)
