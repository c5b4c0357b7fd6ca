"""How long ``/healthz`` takes while a server has the largest requests in flight, and while clients mean harm.

    python -m bench liveness
    python -m bench liveness --workers 0       computes in the server's process

A server of its own is asked over loopback, by one client after another pause of 10 ms: idle, with six of the largest
requests that it allows in flight, and with eight hostile connections of each kind. ``/healthz`` shares its event loop
with all of them. A busy machine delays all: compare with the idle times.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tests.support.server import start_server

from .folding import SHAPES
from .support import common
from .support.common import PerformanceTarget

REQUESTS = 6
CONNECTIONS = 8
PAUSE_SECONDS = 0.01
MAX_P99_MS = 200.0
DEADLINE_MS = 10_000
OVERTIME_MS = 500.0
"""Milliseconds after its deadline in which a request ends."""
RESPONSE_CHARS, KNOWLEDGE_CHARS = 20_000, 50_000
"""The limits of a server with its defaults."""
LARGEST = ("no", "digits", "json", "words", "sentences")
UPGRADE = (
    b"GET /stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
CHUNKED = b"POST /score HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
MEMBERS = json.dumps({"response": "a", "knowledge": ["a"] * 49_000}).encode()
HOSTILE = {
    "pings": (UPGRADE, b"\x89\x80\0\0\0\0" * 4_000),
    "continuations": (UPGRADE + b"\x01\x80\0\0\0\0", b"\0\x80\0\0\0\0" * 4_000),
    "chunks of a byte": (CHUNKED, b"1\r\n \r\n" * 2_000),
    "members": (
        b"",
        b"POST /score HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (len(MEMBERS), MEMBERS),
    ),
}
"""What a connection sends first, and what it sends then without end."""


class Liveness(msgspec.Struct, frozen=True):
    """``/healthz`` under one load, in milliseconds."""

    load: str
    calls: int
    p50_ms: float
    p99_ms: float
    max_ms: float


def measure(load: str, port: int, until: Callable[[], bool]) -> Liveness:
    """Ask for ``/healthz`` until a function says that it is enough."""
    spent = []
    while not until():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
        with contextlib.closing(connection):
            ms, _ = common.timed(partial(_ask_health, connection))
        spent.append(ms)
        time.sleep(PAUSE_SECONDS)
    spent.sort()
    count = len(spent)
    return Liveness(load, count, spent[count // 2], spent[count * 99 // 100], spent[-1])


def _ask_health(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", "/healthz")
    common.check(connection.getresponse().status == 200, "the server does not live")


def ask_largest(port: int, shape: str, number: int) -> tuple[int, float]:
    """The status and the milliseconds of one of the largest requests."""
    response = f"{number} " + SHAPES[shape] * RESPONSE_CHARS
    knowledge = f"{number} " + SHAPES["sentences"] * KNOWLEDGE_CHARS
    body = json.dumps({"response": response[:RESPONSE_CHARS], "knowledge": knowledge[:KNOWLEDGE_CHARS]})
    headers = {"Content-Type": "application/json", "Groundwire-Deadline-Ms": str(DEADLINE_MS)}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120.0)
    with contextlib.closing(connection):
        started = time.monotonic()
        connection.request("POST", "/score", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, (time.monotonic() - started) * 1000


@contextlib.contextmanager
def attack(port: int, first: bytes, further: bytes) -> Iterator[None]:
    """Connections that send without end, and begin again when they are closed."""
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0) as connection:
                connection.sendall(first)
                while not stop.is_set():
                    with contextlib.suppress(TimeoutError):
                        connection.sendall(further)

    threads = [threading.Thread(target=send) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _have_ended(asked: Sequence[Future[Any]]) -> bool:
    return all(future.done() for future in asked)


def end_after(seconds: float) -> Callable[[], bool]:
    """A function that is true after a time."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def main(
    workers: Annotated[int, typer.Option(help="Processes that compute beside the server's; 0: none.", min=0)] = 1,
    seconds: Annotated[float, typer.Option(help="Of each load of connections.", min=0.1)] = 8.0,
    out: Annotated[Path | None, typer.Option(help="The JSON file.")] = None,
) -> None:
    """Measure liveness under each load, and when the largest requests end."""
    limits = {"GROUNDWIRE_MAX_WAITING_TOKENS": "100000000"}
    with start_server("--workers", str(workers), threads=None, **limits) as server:
        server.wait_until_ready()
        port = int(server.url.rpartition(":")[2])
        measured = [measure("idle", port, end_after(seconds))]
        overtime = list[float]()
        for shape in LARGEST:
            with ThreadPoolExecutor(REQUESTS) as pool:
                asked = [pool.submit(ask_largest, port, shape, number) for number in range(REQUESTS)]
                load = f"{REQUESTS} × {RESPONSE_CHARS} characters: {shape}"
                measured.append(measure(load, port, partial(_have_ended, asked)))
                answers = [future.result() for future in asked]
            common.check({status for status, _ in answers} <= {200, 504}, f"the server answered {answers}")
            overtime += [ms - DEADLINE_MS for _, ms in answers]
        for name, (first, further) in HOSTILE.items():
            with attack(port, first, further):
                measured.append(measure(f"{CONNECTIONS} connections: {name}", port, end_after(seconds)))
    rows = [
        [each.load, str(each.calls), f"{each.p50_ms:.1f}", f"{each.p99_ms:.1f}", f"{each.max_ms:.1f}"]
        for each in measured
    ]
    common.console().print(common.table("/healthz, ms", ("load", "calls", "p50", "p99", "max"), rows))
    targets = (
        PerformanceTarget.at_most("p99 under any load", max(each.p99_ms for each in measured), MAX_P99_MS, "ms"),
        PerformanceTarget.at_most("end of a request after its deadline", max(overtime), OVERTIME_MS, "ms"),
    )
    out = out or common.RESULTS / f"liveness{'' if workers else '_alone'}.json"
    common.finish("liveness", {"workers": workers, "seconds": seconds}, measured, targets, out)


if __name__ == "__main__":
    typer.run(main)
