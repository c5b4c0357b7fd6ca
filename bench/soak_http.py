"""Many requests over HTTP, with clients that hang up, die half way or ask for too little time: each is answered once.

    python -m bench.soak_http                  200,000 requests to one server: some ten minutes

``groundwire serve`` runs in a process of its own and scores by the metrics that need no model, so that the requests are
many; its memory, threads and open files are read from outside. Every answer must carry the id of its request and, where
it is a score, equal the score of the same request without load.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import httpx
import msgspec
import numpy as np
import typer

from tests.support.server import Server, start_server

from . import common
from .common import PerformanceTarget, check
from .dialogues import distinct

POINTS = 40
CLIENTS = 16
DISTINCT = 200
METRICS = ("overlap", "overlap_precision", "values")
SECONDS = 120.0
"""After which an answer counts as missing."""
IDLE_S = 1.0
"""A connection that was not used for so long is opened again: the server closes idle ones."""
QUIET = 0.2
"""Seconds after the last answer in which none may follow."""
COMPARED = ("status", "value", "metrics", "unsupported")


class Point(msgspec.Struct, frozen=True):
    """The server's process after a number of requests."""

    requests: int
    resident_mb: float
    threads: int
    files: int
    """Open file descriptors."""


class Soak(msgspec.Struct, frozen=True):
    """The results."""

    requests: int
    per_second: float
    fates: dict[str, int]
    """Requests by what became of them: a status of HTTP, or what the client did."""
    points: list[Point]
    slope_mb: float
    """Resident memory per 1,000 requests, least squares over the second half."""
    dropped: int
    """Requests that the server counted as given up by their clients."""


class Answer(NamedTuple):
    """A response of HTTP."""

    status: int
    request_id: str
    body: bytes
    is_last: bool
    """Whether the server closes the connection after it."""


class Client:
    """Sends one request after another over a connection that is kept alive, and over others that it breaks."""

    def __init__(self, port: int, seed: int, bodies: list[bytes], expected: list[Any]) -> None:
        self._port = port
        self._random = Random(seed)
        self._seed = seed
        self._bodies = bodies
        self._expected = expected
        self._sent = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0
        self.fates: Counter[str] = Counter()

    async def run(self, requests: int) -> None:
        """Send requests, and count what becomes of them; WrongAnswer if one is answered wrongly or not at all."""
        for _ in range(requests):
            fate = self._random.random()
            if fate < 0.04:
                await self._hang_up()
            elif fate < 0.07:
                await self._die_half_way()
            elif fate < 0.09:
                await self._ask(b'{"response": 3}', {422})
            elif fate < 0.14:
                await self._ask(self._choose(), {200, 504}, "Groundwire-Deadline-Ms: 1\r\n")
            else:
                await self._ask(self._choose(), {200, 429})

    def _choose(self) -> bytes:
        return self._random.choice(self._bodies)

    def _frame(self, body: bytes, header: str = "") -> tuple[str, bytes]:
        self._sent += 1
        request_id = f"soak-{self._seed}-{self._sent}"
        head = (
            f"POST /score HTTP/1.1\r\nHost: soak\r\nContent-Type: application/json\r\nX-Request-Id: {request_id}\r\n"
            f"{header}Content-Length: {len(body)}\r\n\r\n"
        )
        return request_id, head.encode() + body

    async def _ask(self, body: bytes, allowed: set[int], header: str = "") -> None:
        if self._streams is not None and time.monotonic() - self._used > IDLE_S:
            await self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        request_id, raw = self._frame(body, header)
        self._streams[1].write(raw)
        answer = await asyncio.wait_for(read_answer(self._streams[0]), SECONDS)
        self._used = time.monotonic()
        check(answer.request_id == request_id, f"{request_id} was answered as {answer.request_id}")
        check(answer.status in allowed, f"{request_id} was answered {answer.status}: {answer.body[:300]!r}")
        if answer.status == 200:
            expected = self._expected[self._bodies.index(body)]
            score = json.loads(answer.body)
            check(all(score[name] == expected[name] for name in COMPARED), f"{request_id} has another score")
        self.fates[str(answer.status)] += 1
        if answer.is_last:
            await self.close()

    async def _hang_up(self) -> None:
        """Close the connection at some time after a whole request, perhaps before its answer."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(self._frame(self._choose())[1])
        await asyncio.sleep(self._random.random() * 0.02)
        writer.close()
        self.fates["hung up"] += 1

    async def _die_half_way(self) -> None:
        """Send a part of a request, and nothing more."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        raw = self._frame(self._choose())[1]
        writer.write(raw[: self._random.randrange(1, len(raw))])
        await asyncio.sleep(self._random.random() * 0.05)
        if self._random.random() < 0.5:
            writer.transport.abort()
        else:
            writer.close()
        self.fates["died half way"] += 1

    async def close(self) -> None:
        """Close the connection; WrongAnswer if the server sent more than it was asked for."""
        if self._streams is not None:
            reader, writer = self._streams
            self._streams = None
            with contextlib.suppress(TimeoutError):
                more = await asyncio.wait_for(reader.read(1), QUIET)
                check(not more, "a request was answered twice")
            writer.close()


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """The next response of a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    body = await reader.readexactly(int(fields["content-length"]))
    return Answer(int(head.split(" ", 2)[1]), fields["x-request-id"], body, fields.get("connection") == "close")


def look_at(pid: int, requests: int) -> Point:
    """The state of a process (Linux)."""
    folder = Path("/proc", str(pid))
    pages = int((folder / "statm").read_text(encoding="ascii").split()[1])
    status = (folder / "status").read_text(encoding="utf-8")
    threads = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
    return Point(
        requests,
        pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        int(threads[1]) if threads else 0,
        sum(1 for _ in (folder / "fd").iterdir()),
    )


def read_gauge(server: Server, name: str, label: str = "") -> float:
    """A number of the server's ``/metrics``, summed over its labels, or over those series that have ``label``."""
    lines = httpx.get(f"{server.url}/metrics", trust_env=False).text.splitlines()
    series = [line for line in lines if re.match(rf"{name}(\{{| )", line)]
    check(bool(series), f"/metrics has no {name}")
    return sum(float(line.rsplit(" ", 1)[1]) for line in series if label in line)


def measure(server: Server, requests: int, looks: int = POINTS) -> Soak:
    """Run all clients, and look at the server ``looks`` times at even distances."""
    port = int(server.url.rpartition(":")[2])
    bodies, expected = [], []
    for dialogue in distinct(DISTINCT):
        body = {"response": dialogue.response, "knowledge": dialogue.knowledge, "metrics": METRICS}
        bodies.append(json.dumps(body).encode())
        answer = httpx.post(f"{server.url}/score", content=bodies[-1], trust_env=False)
        check(answer.status_code == 200, f"the server answered {answer.status_code}: {answer.text}")
        expected.append(answer.json())
    part = requests // looks // CLIENTS
    clients = [Client(port, seed, bodies, expected) for seed in range(CLIENTS)]
    points: list[Point] = []

    async def run_all() -> None:
        for done in range(1, looks + 1):
            await asyncio.gather(*(client.run(part) for client in clients))
            await asyncio.gather(*(client.close() for client in clients))
            points.append(look_at(server.process.pid, done * part * CLIENTS))
            server.forget_lines()

    spent, _ = common.timed(lambda: asyncio.run(run_all()))
    fates = sum((client.fates for client in clients), Counter[str]())
    sent = part * CLIENTS * looks
    check(sum(fates.values()) == sent, f"{sent} requests were sent and {sum(fates.values())} counted")
    for name in ("groundwire_queue_size", "groundwire_active_requests"):
        check(read_gauge(server, name) == 0, f"{name} is not 0 at the end")
    later = points[len(points) // 2 :]
    slope = np.polyfit([point.requests for point in later], [point.resident_mb for point in later], 1)[0] * 1000
    dropped = int(read_gauge(server, "groundwire_requests_total", 'status="499"'))
    return Soak(sent, sent / spent * 1000, dict(fates), points, float(slope), dropped)


def main(
    requests: Annotated[int, typer.Option(help="Requests of all clients together.", min=POINTS * CLIENTS)] = 200_000,
    tiny: Annotated[bool, typer.Option(help="Few requests, to try it; writes no file.")] = False,
    out: Annotated[Path | None, typer.Option(help="The JSON file; default: bench/results/soak_http.json.")] = None,
) -> None:
    """Send many requests over HTTP and look at the server's memory, threads and files."""
    if tiny:
        requests = 40 * CLIENTS
    with start_server("--metrics", ",".join(METRICS)) as server:
        server.wait_until_ready()
        soak = measure(server, requests, 4 if tiny else POINTS)
        code = server.stop()
    check(code == 0, f"the server ended with {code}")
    first, last = soak.points[len(soak.points) // 2], soak.points[-1]
    targets = (
        PerformanceTarget.at_most("resident memory, growth per 1,000 requests", soak.slope_mb, 0.05, "MB"),
        PerformanceTarget.at_most("threads at the end", last.threads - first.threads, 0, "more"),
        PerformanceTarget.at_most("open files at the end", last.files - first.files, 2, "more"),
    )
    rows = [
        [f"{point.requests:,}", f"{point.resident_mb:.1f}", str(point.threads), str(point.files)]
        for point in soak.points[:: max(1, len(soak.points) // 10)]
    ]
    title = f"{soak.per_second:.0f} requests/s, {soak.fates}, {soak.dropped} dropped"
    common.console().print(common.table(title, ("requests", "MB resident", "threads", "files"), rows))
    settings: dict[str, int | float | str | None] = {"requests": requests, "clients": CLIENTS}
    common.finish(
        "soak_http",
        settings,
        soak,
        () if tiny else targets,
        out or (None if tiny else common.RESULTS / "soak_http.json"),
    )


if __name__ == "__main__":
    typer.run(main)
