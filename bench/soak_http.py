"""Many requests over HTTP with faults: each is answered once, or by an error with a code, and nothing grows.

    python -m bench.soak_http                          1,000,000 requests to one server with two worker processes
    python -m bench.soak_http --minutes 20             as many of them as 20 minutes allow
    python -m bench.soak_http --workers 1 --metrics overlap,values

Clients hang up, die half way, send wrong requests, ask for too little time, some now and then and all together in a
storm twice a minute, and come as tenants with new names; a worker process is killed every minute. The memory, threads
and open files of ``groundwire serve`` are read from outside. Every answer must carry the id of its request and, where
it is a score, equal the score of the same request without load.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
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

from .support import common
from .support.common import PerformanceTarget, check
from .support.dialogues import distinct

POINTS = 200
CLIENTS = 16
DISTINCT = 200
SECONDS = 120.0
"""After which an answer counts as missing."""
REPLACED_S = 900.0
"""After which a killed worker process counts as not replaced; on a quiet machine it takes three seconds."""
IDLE_S = 1.0
"""A connection that was not used for so long is opened again: the server closes idle ones."""
QUIET = 0.2
"""Seconds after the last answer in which none may follow."""
STORM_EVERY_S, STORM_S = 30.0, 1.0
"""In the first second of every half minute all requests have a deadline of at most a millisecond."""
COMPARED = ("status", "value", "metrics", "unsupported")
TOKEN = "soak"
GATEWAY = {"Authorization": f"Bearer {TOKEN}"}
"""The token of a gateway, which names the tenant of each request."""
WRONG = (
    (b'{"response": 3}', 422),
    (b'{"response": "Honey is blue.", "knowledge": "Honey.", "metrics": ["none"]}', 422),
    (b'{"response": "Honey is blue.", "knowledge": "Honey.", "options": {"q2": {"spans": [[5, 2]]}}}', 422),
    (b'{"response": "Honey is blue.", "response": "Honey is golden."}', 400),
    (b'{"response": "Honey', 400),
)
"""Bodies that are refused, each with its status."""
ERRORS = {429, 500, 503, 504}
"""What a right request may be answered instead of 200, with a code; the results count them."""


class Point(msgspec.Struct, frozen=True):
    """The server's process after a number of requests."""

    requests: int
    resident_mb: float
    threads: int
    files: int
    """Open file descriptors."""
    series: int = 0
    """Series of ``/metrics``."""
    workers_mb: float = 0.0
    """Resident memory of the worker processes together."""


class Soak(msgspec.Struct, frozen=True):
    """The results."""

    requests: int
    per_second: float
    fates: dict[str, int]
    """Requests by what became of them: a status of HTTP, what the client did, or ``unexpected`` and a status."""
    points: list[Point]
    slope_mb: float
    """Resident memory per 1,000 requests, least squares over the second half."""
    dropped: int
    """Requests that the server counted as given up by their clients."""
    kills: int = 0
    """Worker processes that were killed, and replaced."""
    minutes: float = 0.0
    reopened: int = 0
    """Requests that were sent again, because the server had closed a connection that was idle."""


class Answer(NamedTuple):
    """A response of HTTP."""

    status: int
    request_id: str
    body: bytes
    is_last: bool
    """Whether the server closes the connection after it."""


class Client:
    """Sends one request after another over a connection that is kept alive, and over others that it breaks."""

    def __init__(self, port: int, seed: int, bodies: list[bytes], expected: dict[bytes, Any]) -> None:
        self._port = port
        self._random = Random(seed)
        self._seed = seed
        self._bodies = bodies
        self._expected = expected
        self._sent = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0
        self.fates: Counter[str] = Counter()
        self.reopened = 0
        """Requests that met the end of a connection that had been idle, and were sent again."""

    async def run(self, requests: int) -> None:
        """Send requests, and count what becomes of them; WrongAnswer if one is answered wrongly or not at all."""
        for _ in range(requests):
            fate = self._random.random()
            if fate < 0.04:
                await self._hang_up()
            elif fate < 0.07:
                await self._die_half_way()
            elif fate < 0.09:
                body, status = self._random.choice(WRONG)
                await self._ask(body, {status})
            elif fate < 0.14 or time.monotonic() % STORM_EVERY_S < STORM_S:
                deadline = self._random.choice(("1", "0.1", "0.001"))
                await self._ask(self._choose(), {200, 429, 504}, f"Groundwire-Deadline-Ms: {deadline}\r\n")
            else:
                await self._ask(self._choose(), {200})

    def _choose(self) -> bytes:
        """A right request, of the tenant ``regular`` or, one in four, of a tenant with a new name."""
        body = self._random.choice(self._bodies)
        tenant = "regular" if self._random.random() < 0.75 else f"tenant-{self._seed}-{self._sent}"
        return b'{"options": {"tenant": "%s"}, %s' % (tenant.encode(), body[1:])

    def _frame(self, body: bytes, header: str = "") -> tuple[str, bytes]:
        self._sent += 1
        request_id = f"soak-{self._seed}-{self._sent}"
        head = (
            f"POST /score HTTP/1.1\r\nHost: soak\r\nContent-Type: application/json\r\nX-Request-Id: {request_id}\r\n"
            f"Authorization: Bearer {TOKEN}\r\n{header}Content-Length: {len(body)}\r\n\r\n"
        )
        return request_id, head.encode() + body

    async def _ask(self, body: bytes, allowed: set[int], header: str = "") -> None:
        if self._streams is not None and time.monotonic() - self._used > IDLE_S:
            await self.close()
        is_used = self._streams is not None
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        request_id, raw = self._frame(body, header)
        try:
            self._streams[1].write(raw)
            answer = await asyncio.wait_for(read_answer(self._streams[0]), SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            check(is_used and not getattr(error, "partial", b""), f"{request_id} has no answer: {error!r}")
            self._streams[1].transport.abort()
            self._streams = None
            self.reopened += 1
            await self._ask(body, allowed, header)
            return
        self._used = time.monotonic()
        check(answer.request_id == request_id, f"{request_id} was answered as {answer.request_id}")
        check(
            answer.status in allowed or (200 in allowed and answer.status in ERRORS),
            f"{request_id} was answered {answer.status}: {answer.body[:300]!r}",
        )
        content = json.loads(answer.body)
        if answer.status == 200:
            expected = self._expected[body.partition(b"}, ")[2]]
            check(all(content[name] == expected[name] for name in COMPARED), f"{request_id} has another score")
        else:
            check(bool(content["code"]), f"{request_id} was answered {answer.status} without a code")
        self.fates[str(answer.status) if answer.status in allowed else f"unexpected {answer.status}"] += 1
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


def list_workers(pid: int) -> list[int]:
    """The processes that a process has started (Linux)."""
    parts = [task.read_text(encoding="ascii").split() for task in Path(f"/proc/{pid}/task").glob("*/children")]
    return sorted(int(child) for part in parts for child in part)


def read_resident_mb(pid: int) -> float:
    """The resident memory of a process, 0 if it has ended (Linux)."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


def look_at(server: Server, requests: int) -> Point:
    """The state of a server (Linux)."""
    pid = server.process.pid
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    threads = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
    return Point(
        requests,
        read_resident_mb(pid),
        int(threads[1]) if threads else 0,
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        sum(not line.startswith("#") for line in read_metrics(server)),
        sum(map(read_resident_mb, list_workers(pid))),
    )


def read_metrics(server: Server) -> list[str]:
    """The lines of the server's ``/metrics``."""
    return httpx.get(f"{server.url}/metrics", headers=GATEWAY, timeout=SECONDS, trust_env=False).text.splitlines()


def read_gauge(server: Server, name: str, label: str = "") -> float:
    """A number of the server's ``/metrics``, summed over its labels, or over those series that have ``label``."""
    series = [line for line in read_metrics(server) if re.match(rf"{name}(\{{| )", line)]
    check(bool(series), f"/metrics has no {name}")
    return sum(float(line.rsplit(" ", 1)[1]) for line in series if label in line)


async def kill_workers(server: Server, count: int, every_s: float, killed: list[int]) -> None:
    """Kill one worker process after another, when all are there, and collect their numbers."""
    random = Random(0)
    while True:
        await asyncio.sleep(every_s)
        await wait_for_workers(server, count)
        killed.append(random.choice(list_workers(server.process.pid)))
        os.kill(killed[-1], signal.SIGKILL)


async def wait_for_workers(server: Server, count: int) -> None:
    """Return when all worker processes are ready."""
    deadline = time.monotonic() + REPLACED_S
    while count > 1 and read_gauge(server, "groundwire_processes") != count:
        check(time.monotonic() < deadline, "a killed worker process was not replaced")
        await asyncio.sleep(0.2)


def make_bodies(server: Server, metrics: list[str]) -> dict[bytes, Any]:
    """Right requests without their options, with the scores that the server answers without load."""
    answers = {}
    for dialogue in distinct(DISTINCT):
        body = {"response": dialogue.response, "knowledge": dialogue.knowledge, "metrics": metrics}
        content = json.dumps(body).encode()
        answer = httpx.post(f"{server.url}/score", content=content, headers=GATEWAY, timeout=SECONDS, trust_env=False)
        check(answer.status_code == 200, f"the server answered {answer.status_code}: {answer.text}")
        answers[content[1:]] = answer.json()
    return answers


def measure(
    server: Server,
    requests: int,
    metrics: list[str],
    looks: int = POINTS,
    workers: int = 1,
    kill_every_s: float = 0,
    minutes: float = 0,
) -> Soak:
    """Run all clients, and look at the server ``looks`` times at even distances, until the minutes are over."""
    port = int(server.url.rpartition(":")[2])
    expected = make_bodies(server, metrics)
    bodies = [b"{" + body for body in expected]
    part = requests // looks // CLIENTS
    clients = [Client(port, seed, bodies, expected) for seed in range(CLIENTS)]
    points: list[Point] = []
    killed: list[int] = []
    end = time.monotonic() + minutes * 60 if minutes else float("inf")

    async def run_all() -> None:
        killer = asyncio.create_task(kill_workers(server, workers, kill_every_s, killed)) if kill_every_s else None
        while len(points) < looks and time.monotonic() < end:
            await asyncio.gather(*(client.run(part) for client in clients))
            await asyncio.gather(*(client.close() for client in clients))
            await wait_for_workers(server, workers)
            points.append(look_at(server, (len(points) + 1) * part * CLIENTS))
            print(f"{points[-1].requests:,} requests, {len(killed)} worker processes killed", flush=True)
            server.forget_lines()
        if killer is not None:
            killer.cancel()
        await wait_for_workers(server, workers)

    spent, _ = common.timed(lambda: asyncio.run(run_all()))
    fates = sum((client.fates for client in clients), Counter[str]())
    sent = points[-1].requests
    check(sum(fates.values()) == sent, f"{sent} requests were sent and {sum(fates.values())} counted")
    for name in ("groundwire_queue_size", "groundwire_active_requests"):
        check(read_gauge(server, name) == 0, f"{name} is not 0 at the end")
    later = points[len(points) // 2 :]
    slope = 0.0
    if len(later) > 1:
        slope = np.polyfit([point.requests for point in later], [point.resident_mb for point in later], 1)[0] * 1000
    dropped = int(read_gauge(server, "groundwire_requests_total", 'status="499"'))
    return Soak(
        sent,
        sent / spent * 1000,
        dict(fates),
        points,
        float(slope),
        dropped,
        len(killed),
        spent / 60_000,
        sum(client.reopened for client in clients),
    )


def main(
    requests: Annotated[int, typer.Option(help="Requests of all clients together.", min=POINTS * CLIENTS)] = 1_000_000,
    minutes: Annotated[float, typer.Option(help="Stop after so many minutes; 0: when all are sent.", min=0)] = 0,
    metrics: Annotated[str, typer.Option(help="What is scored.")] = "fast",
    workers: Annotated[int, typer.Option(help="Worker processes of the server.", min=1)] = 2,
    kill_every_s: Annotated[
        float, typer.Option(help="Kill a worker process every so many seconds; 0: none.", min=0)
    ] = 60,
    tiny: Annotated[bool, typer.Option(help="Few requests without a model, to try it; writes no file.")] = False,
    out: Annotated[Path | None, typer.Option(help="The JSON file; default: bench/results/soak_http.json.")] = None,
) -> None:
    """Send many requests over HTTP and look at the server's memory, threads, files and series."""
    if tiny:
        requests, minutes, metrics, workers = 40 * CLIENTS, 0, "overlap,overlap_precision,values", 1
    kill_every_s = kill_every_s if workers > 1 else 0
    names = metrics.split(",")
    tokens = {"GROUNDWIRE_TENANT_TOKENS": f"*={TOKEN}"}
    with start_server("--metrics", metrics, "--workers", str(workers), threads=workers, **tokens) as server:
        server.wait_until_ready()
        soak = measure(server, requests, names, 4 if tiny else POINTS, workers, kill_every_s, minutes)
        code = server.stop()
    check(code == 0, f"the server ended with {code}")
    first, last = soak.points[len(soak.points) // 2], soak.points[-1]
    failed = sum(soak.fates.get(f"unexpected {status}", 0) for status in (500, 503))
    targets = (
        PerformanceTarget.at_most("resident memory, growth per 1,000 requests", soak.slope_mb, 0.05, "MB"),
        PerformanceTarget.at_most("threads at the end", last.threads - first.threads, 0, "more"),
        PerformanceTarget.at_most("open files at the end", last.files - first.files, 2, "more"),
        PerformanceTarget.at_most("series at the end", last.series - first.series, 2, "more"),
        PerformanceTarget.at_most("right requests that failed", failed, 0, "requests"),
        PerformanceTarget.at_most("requests sent again, of 1,000", soak.reopened / soak.requests * 1000, 1, "requests"),
    )
    rows = [
        [
            f"{point.requests:,}",
            f"{point.resident_mb:.1f}",
            f"{point.workers_mb:.1f}",
            *map(str, (point.threads, point.files, point.series)),
        ]
        for point in soak.points[:: max(1, len(soak.points) // 10)]
    ]
    title = (
        f"{soak.per_second:.0f} requests/s, {soak.fates}, {soak.dropped} dropped, {soak.kills} worker processes "
        f"killed, {soak.reopened} sent again"
    )
    columns = ("requests", "MB resident", "MB of workers", "threads", "files", "series")
    common.console().print(common.table(title, columns, rows))
    settings: dict[str, int | float | str | None] = {
        "requests": requests,
        "minutes": minutes,
        "clients": CLIENTS,
        "metrics": metrics,
        "workers": workers,
        "kill_every_s": kill_every_s,
    }
    common.finish(
        "soak_http",
        settings,
        soak,
        () if tiny else targets,
        out or (None if tiny else common.RESULTS / "soak_http.json"),
    )


if __name__ == "__main__":
    typer.run(main)
