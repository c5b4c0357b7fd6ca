"""Many requests over HTTP with faults: each is answered once, or by an error with a code, and nothing grows.

    python -m bench.soak_http                          1,000,000 requests to one server with two worker processes
    python -m bench.soak_http --minutes 20             as many of them as 20 minutes allow
    python -m bench.soak_http --ledger soak.jsonl      goes on where an earlier run with this ledger ended
    python -m bench.soak_http --workers 1 --metrics overlap,values

Clients come through all doors of the service. They hang up, die half way, read slowly or never, send wrong requests,
ask for too little time, some now and then and all together in a storm twice a minute, and come as tenants with new
names. A worker process is killed every minute, the disk of the log is full every other time that the server is looked
at, and in the first half the server is stopped and started again under load. The memory, threads and open files of
``groundwire serve`` are read from outside. Every answer must carry the id of its request and, where it is not an
error, equal the answer to the same request without load.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import httpx
import msgspec
import numpy as np
import typer
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from .support import common
from .support.common import PerformanceTarget, check
from .support.dialogues import distinct
from .support.soak_doors import DOORS, EVENTS, MANY, STREAM, Door, Sample, encode, is_cut, read_content

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
DISTINCT_OTHER = 20
"""Distinct requests of each door but ``/score``."""
RESTARTS = 8
"""Stops under load in the first half of the points."""
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
    starts: int = 1
    """Starts of the server before."""


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
    """Requests that the server counted as given up by their clients, since its last start."""
    stops: int = 0
    """Stops under load, each with a new start."""
    kills: int = 0
    """Worker processes that were killed, and replaced."""
    minutes: float = 0.0
    reopened: int = 0
    """Requests that were sent again, because the server had closed a connection that was idle."""


class Answer(NamedTuple):
    """A response of HTTP."""

    status: int
    request_id: str
    media_type: str
    body: bytes
    is_last: bool
    """Whether the server closes the connection after it."""


class LoggedServer:
    """``groundwire serve`` on one port, with its log in a file, which is started again after each stop."""

    def __init__(self, directory: Path, arguments: list[str], environment: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = directory / "log"
        self._command = [sys.executable, "-m", "groundwire", "serve", "--port", str(self.port), *arguments]
        self._environment = os.environ | environment
        self.starts = 0
        self.is_stopping = False
        """A request that has just come may be refused, with 503."""
        self.start()

    def start(self) -> None:
        """Start the server; its log begins anew."""
        self._log.write_bytes(b"")
        with self._log.open("ab") as log:  # where it was cut, it goes on at its end
            self.process = subprocess.Popen(
                self._command, cwd=common.ROOT, env=self._environment, stdout=subprocess.DEVNULL, stderr=log
            )
        self.starts += 1

    async def wait_until_ready(self) -> None:
        """Return when the server is ready."""
        deadline = time.monotonic() + REPLACED_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz", timeout=SECONDS, trust_env=False).status_code == 200:
                    return
            check(self.process.poll() is None, f"the server ended: {self.read_log()[-2000:]}")
            check(time.monotonic() < deadline, "the server is not ready")
            await asyncio.sleep(0.2)

    async def stop(self) -> None:
        """End the server as an orchestrator does, and wait for its end."""
        self.is_stopping = True
        self.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.process.wait, SECONDS)
        check(code == 0, f"the server ended with {code}: {self.read_log()[-2000:]}")

    async def restart(self) -> None:
        """Stop the server, whatever it is doing, and start it again."""
        await self.stop()
        self.start()
        await self.wait_until_ready()
        self.is_stopping = False

    def fill_disk(self, is_full: bool) -> None:
        """Let each byte that the server writes into a file fail, or no more (Linux)."""
        limit = 0 if is_full else resource.RLIM_INFINITY
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def read_log(self) -> str:
        """The log."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def check_log(self) -> None:
        """WrongAnswer if the log has a defect; then begin it anew."""
        defects = [line for line in self.read_log().splitlines() if '"defect"' in line or "Traceback" in line]
        check(not defects, f"the log has {defects[:1]}")
        os.truncate(self._log, 0)


class Client:
    """Sends one request after another over a connection that is kept alive, and over others that it breaks."""

    def __init__(self, server: LoggedServer, seed: int, samples: dict[Door, list[Sample]]) -> None:
        self._server = server
        self._random = Random(seed)
        self._seed = seed
        self._samples = samples
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
                await self._ask(DOORS[0], body, {status})
            elif fate < 0.14 or time.monotonic() % STORM_EVERY_S < STORM_S:
                deadline = self._random.choice(("1", "0.1", "0.001"))
                sample = self._random.choice(self._samples[DOORS[0]])
                header = f"Groundwire-Deadline-Ms: {deadline}\r\n"
                await self._ask(sample.door, self._name_tenant(sample), {200, 429, 504}, sample.expected, header)
            elif fate < 0.145:
                await self._never_read()
            elif fate < 0.155:
                await self._talk()
            else:
                sample = self._choose()
                is_slow = sample.door.media_type != DOORS[0].media_type and self._random.random() < 0.3
                body = self._name_tenant(sample)
                await self._ask(sample.door, body, {sample.status}, sample.expected, chunk=200 if is_slow else 1 << 16)
                if is_slow:  # the server has finished long ago, and closes the idle connection at any time
                    await self.close()

    def _choose(self) -> Sample:
        """A right request through any door."""
        (door,) = self._random.choices(DOORS, [door.share for door in DOORS])
        return self._random.choice(self._samples[door])

    def _name_tenant(self, sample: Sample) -> bytes:
        """The body of a request of the tenant ``regular`` or, one in four, of a tenant with a new name."""
        if not sample.door.has_options:
            return sample.body
        return sample.name_tenant("regular" if self._random.random() < 0.75 else f"tenant-{self._seed}-{self._sent}")

    def _frame(self, door: Door, body: bytes, header: str = "") -> tuple[str, bytes]:
        self._sent += 1
        request_id = f"soak-{self._seed}-{self._sent}"
        head = (
            f"POST {door.path} HTTP/1.1\r\nHost: soak\r\nContent-Type: {door.media_type}\r\n"
            f"X-Request-Id: {request_id}\r\n"
            f"Authorization: Bearer {TOKEN}\r\n{header}Content-Length: {len(body)}\r\n\r\n"
        )
        return request_id, head.encode() + body

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection, as soon as the server takes one."""
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", self._server.port, limit=1 << 24)
            except ConnectionRefusedError:
                check(self._server.is_stopping, "the server takes no connection")
                await asyncio.sleep(0.1)

    async def _ask(
        self, door: Door, body: bytes, allowed: set[int], expected: Any = None, header: str = "", chunk: int = 1 << 16
    ) -> None:
        if self._streams is not None and time.monotonic() - self._used > IDLE_S:
            await self.close()
        is_used = self._streams is not None
        if self._streams is None:
            self._streams = await self._connect()
        request_id, raw = self._frame(door, body, header)
        is_stopping = self._server.is_stopping
        try:
            self._streams[1].write(raw)
            answer = await asyncio.wait_for(read_answer(self._streams[0], chunk), SECONDS)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            check(is_used and not getattr(error, "partial", b""), f"{request_id} has no answer: {error!r}")
            self._streams[1].transport.abort()
            self._streams = None
            self.reopened += 1
            await self._ask(door, body, allowed, expected, header, chunk)
            return
        self._used = time.monotonic()
        is_stopping |= self._server.is_stopping
        check(answer.request_id == request_id, f"{request_id} was answered as {answer.request_id}")
        self._check(door, answer, allowed, expected, is_stopping=is_stopping)
        if answer.is_last:
            await self.close()

    def _check(self, door: Door, answer: Answer, allowed: set[int], expected: Any, *, is_stopping: bool) -> None:
        """Compare an answer with what is right, and count it."""
        status, name = answer.status, f"{door.path} {answer.request_id}"
        is_expected = status in allowed or (status == 503 and is_stopping)
        is_right = is_expected or (not allowed.isdisjoint({200, 422}) and status in ERRORS)
        check(is_right, f"{name} was answered {status}: {answer.body[:300]!r}")
        content = read_content(answer.media_type, answer.body)
        if status != 200:
            check(bool(content["code"]), f"{name} was answered {status} without a code")
            self.fates[str(status) if is_expected else f"unexpected {status}"] += 1
        elif is_cut(content):
            self.fates["cut by a stop" if is_stopping else "cut"] += 1
        else:
            check(content == expected, f"{name} has another answer: {str(content)[:2000]} for {str(expected)[:2000]}")
            self.fates["200"] += 1
        if door == MANY and status == 200:
            numbers = [line["line"] for line in content]
            check(numbers == list(range(1, len(expected) + 1)), f"{name} has lines {numbers}")

    async def _talk(self) -> None:
        """Send a stream as a WebSocket, and compare its events."""
        sample = self._random.choice(self._samples[STREAM])
        is_stopping = self._server.is_stopping
        events: list[str] = []
        try:
            async with connect(
                f"ws://127.0.0.1:{self._server.port}/stream", additional_headers=GATEWAY, proxy=None, max_size=None
            ) as socket:
                for line in sample.body.decode().split("\n"):
                    await socket.send(line)
                await socket.send('{"finish": true}')
                async for event in socket:
                    events.append(f"data: {event!s}")
        except (ConnectionRefusedError, InvalidStatus, ConnectionClosedError) as error:
            is_stopping |= self._server.is_stopping
            check(is_stopping or isinstance(error, ConnectionClosedError), f"a WebSocket failed: {error!r}")
        content = read_content(EVENTS, "\n\n".join(events).encode())
        if not content or is_cut(content) or content[-1]["type"] != "final":
            self.fates["cut by a stop" if is_stopping or self._server.is_stopping else "cut"] += 1
            return
        check(content == sample.expected, f"a WebSocket has other events: {content} for {sample.expected}")
        self.fates["WebSocket"] += 1

    async def _hang_up(self) -> None:
        """Close the connection at some time after a whole request, perhaps before its answer."""
        _, writer = await self._connect()
        sample = self._choose()
        writer.write(self._frame(sample.door, self._name_tenant(sample))[1])
        await asyncio.sleep(self._random.random() * 0.02)
        writer.close()
        self.fates["hung up"] += 1

    async def _die_half_way(self) -> None:
        """Send a part of a request, and nothing more."""
        _, writer = await self._connect()
        sample = self._choose()
        raw = self._frame(sample.door, self._name_tenant(sample))[1]
        writer.write(raw[: self._random.randrange(1, len(raw))])
        await asyncio.sleep(self._random.random() * 0.05)
        if self._random.random() < 0.5:
            writer.transport.abort()
        else:
            writer.close()
        self.fates["died half way"] += 1

    async def _never_read(self) -> None:
        """Ask for many lines, take none of them for a while, and leave."""
        reader, writer = await self._connect()
        sample = self._random.choice(self._samples[MANY])
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(self._frame(MANY, b"\n".join([sample.body] * 4))[1])
        await asyncio.sleep(self._random.random())
        writer.transport.abort()
        self.fates["never read"] += 1

    async def close(self) -> None:
        """Close the connection; WrongAnswer if the server sent more than it was asked for."""
        if self._streams is not None:
            reader, writer = self._streams
            self._streams = None
            with contextlib.suppress(TimeoutError, ConnectionError):
                more = await asyncio.wait_for(reader.read(1), QUIET)
                check(not more, "a request was answered twice")
            writer.close()


async def read_answer(reader: asyncio.StreamReader, chunk: int) -> Answer:
    """The next response of a connection; of less than 64 KiB at a time, it is read slowly."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    body = bytearray()
    if "content-length" in fields:
        body += await reader.readexactly(int(fields["content-length"]))
    else:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            while size:
                part = await reader.read(min(size, chunk))
                check(bool(part), f"a chunk ends after {len(body)} bytes")
                body += part
                size -= len(part)
                if chunk < 1 << 16:
                    await asyncio.sleep(0.001)
            await reader.readexactly(2)
        await reader.readexactly(2)
    is_last = fields.get("connection") == "close"
    return Answer(int(head.split(" ", 2)[1]), fields["x-request-id"], fields["content-type"], bytes(body), is_last)


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


def look_at(server: LoggedServer, requests: int) -> Point:
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
        server.starts,
    )


def read_metrics(server: LoggedServer) -> list[str]:
    """The lines of the server's ``/metrics``."""
    return httpx.get(f"{server.url}/metrics", headers=GATEWAY, timeout=SECONDS, trust_env=False).text.splitlines()


def read_gauge(server: LoggedServer, name: str, label: str = "") -> float:
    """A number of the server's ``/metrics``, summed over its labels, or over those series that have ``label``."""
    series = [line for line in read_metrics(server) if re.match(rf"{name}(\{{| )", line)]
    check(bool(series), f"/metrics has no {name}")
    return sum(float(line.rsplit(" ", 1)[1]) for line in series if label in line)


async def kill_workers(server: LoggedServer, count: int, every_s: float, killed: list[int]) -> None:
    """Kill one worker process after another, when all are there, and collect their numbers."""
    random = Random(0)
    while True:
        await asyncio.sleep(every_s)
        await wait_for_workers(server, count)
        killed.append(random.choice(list_workers(server.process.pid)))
        os.kill(killed[-1], signal.SIGKILL)


async def wait_for_workers(server: LoggedServer, count: int) -> None:
    """Return when all worker processes are ready."""
    deadline = time.monotonic() + REPLACED_S
    while count > 1 and read_gauge(server, "groundwire_processes") != count:
        check(time.monotonic() < deadline, "a killed worker process was not replaced")
        await asyncio.sleep(0.2)


def make_samples(server: LoggedServer, metrics: list[str]) -> dict[Door, list[Sample]]:
    """Right requests of each door, with the answers of the server without load."""
    samples: dict[Door, list[Sample]] = {door: [] for door in DOORS}
    for number, dialogue in enumerate(distinct(DISTINCT)):
        for door in DOORS if number < DISTINCT_OTHER else DOORS[:1]:
            body = encode(door, dialogue.response, dialogue.knowledge, metrics)
            headers = GATEWAY | {"Content-Type": door.media_type}
            answer = httpx.post(server.url + door.path, content=body, headers=headers, timeout=SECONDS, trust_env=False)
            check(answer.status_code in (200, 422), f"{door.path} answered {answer.status_code}: {answer.text}")
            expected = read_content(answer.headers["Content-Type"], answer.content)
            check(not is_cut(expected), f"{door.path} was cut without load")
            samples[door].append(Sample(door, body, answer.status_code, expected))
    return samples


def read_ledger(path: Path | None) -> tuple[list[Point], Counter[str], Counter[str]]:
    """The points of earlier runs, the fates of their requests and their other counts, from a line of JSON each."""
    lines = path.read_bytes().splitlines() if path is not None and path.exists() else []
    entries = [json.loads(line) for line in lines]
    points = [msgspec.convert(entry["point"], Point) for entry in entries]
    fates, counts = (sum((Counter(entry[name]) for entry in entries), Counter()) for name in ("fates", "counts"))
    return points, fates, counts


def measure(
    server: LoggedServer,
    requests: int,
    metrics: list[str],
    looks: int = POINTS,
    workers: int = 1,
    kill_every_s: float = 0,
    minutes: float = 0,
    ledger: Path | None = None,
) -> Soak:
    """Run all clients, and look at the server ``looks`` times at even distances, until the minutes are over."""
    points, fates, counts = read_ledger(ledger)
    earlier = len(points)
    samples = make_samples(server, metrics)
    part = requests // looks // CLIENTS
    clients = [Client(server, seed + earlier * CLIENTS, samples) for seed in range(CLIENTS)]
    killed: list[int] = []
    end = time.monotonic() + minutes * 60 if minutes else float("inf")

    async def run_all() -> None:
        killer = asyncio.create_task(kill_workers(server, workers, kill_every_s, killed)) if kill_every_s else None
        while len(points) < looks and time.monotonic() < end:
            server.fill_disk(len(points) % 2 == 1)
            sending = asyncio.gather(*(client.run(part) for client in clients))
            if len(points) < looks // 2 and len(points) % max(2, looks // 2 // RESTARTS) == 1:
                await asyncio.sleep(1)
                await server.restart()
            await sending
            await asyncio.gather(*(client.close() for client in clients))
            await wait_for_workers(server, workers)
            points.append(look_at(server, (points[-1].requests if points else 0) + part * CLIENTS))
            note()
            print(f"{points[-1].requests:,} requests, {counts}", flush=True)
        if killer is not None:
            killer.cancel()
        await wait_for_workers(server, workers)

    def note() -> None:
        """Count what became of the requests since the last time."""
        new = sum((client.fates for client in clients), Counter[str]())
        reopened = sum(client.reopened for client in clients)
        others = Counter(killed=len(killed), reopened=reopened, stops=server.starts - 1)
        others -= noted
        noted.update(others)
        for client in clients:
            client.fates.clear()
        fates.update(new)
        counts.update(others)
        if ledger is not None:
            with ledger.open("ab") as file:
                file.write(msgspec.json.encode({"point": points[-1], "fates": new, "counts": others}) + b"\n")
        server.fill_disk(False)
        server.check_log()

    noted = Counter[str]()
    spent, _ = common.timed(lambda: asyncio.run(run_all()))
    sent = points[-1].requests
    check(sum(fates.values()) == sent, f"{sent} requests were sent and {sum(fates.values())} counted")
    for name in ("groundwire_queue_size", "groundwire_active_requests"):
        check(read_gauge(server, name) == 0, f"{name} is not 0 at the end")
    later = [point for point in points[len(points) // 2 :] if point.starts == points[-1].starts]
    slope = 0.0
    if len(later) > 1:
        slope = np.polyfit([point.requests for point in later], [point.resident_mb for point in later], 1)[0] * 1000
    dropped = int(read_gauge(server, "groundwire_requests_total", 'status="499"'))
    return Soak(
        requests=sent,
        per_second=(sent - (points[earlier - 1].requests if earlier else 0)) / spent * 1000,
        fates=dict(fates),
        points=points,
        slope_mb=float(slope),
        dropped=dropped,
        stops=counts["stops"],
        kills=counts["killed"],
        minutes=spent / 60_000,
        reopened=counts["reopened"],
    )


def main(
    requests: Annotated[int, typer.Option(help="Requests of all clients together.", min=POINTS * CLIENTS)] = 1_000_000,
    minutes: Annotated[float, typer.Option(help="Stop after so many minutes; 0: when all are sent.", min=0)] = 0,
    metrics: Annotated[str, typer.Option(help="What is scored.")] = "fast",
    workers: Annotated[int, typer.Option(help="Worker processes of the server.", min=1)] = 2,
    kill_every_s: Annotated[
        float, typer.Option(help="Kill a worker process every so many seconds; 0: none.", min=0)
    ] = 60,
    ledger: Annotated[Path | None, typer.Option(help="File of counts, with which a later run goes on.")] = None,
    tiny: Annotated[bool, typer.Option(help="Few requests with few models, to try it; writes no file.")] = False,
    out: Annotated[Path | None, typer.Option(help="The JSON file; default: bench/results/soak_http.json.")] = None,
) -> None:
    """Send many requests over HTTP and look at the server's memory, threads, files and series."""
    if tiny:
        requests, minutes, metrics, workers = 40 * CLIENTS, 0, "overlap,overlap_precision,values", 1
    kill_every_s = kill_every_s if workers > 1 else 0
    names = metrics.split(",")
    environment = {"GROUNDWIRE_TENANT_TOKENS": f"*={TOKEN}", "GROUNDWIRE_THREADS": str(workers)}
    arguments = ["--metrics", metrics, "--workers", str(workers)]
    with tempfile.TemporaryDirectory() as directory:
        server = LoggedServer(Path(directory), arguments, environment)
        try:
            asyncio.run(server.wait_until_ready())
            looks = 4 if tiny else POINTS
            soak = measure(server, requests, names, looks, workers, kill_every_s, minutes, ledger)
            asyncio.run(server.stop())
        finally:
            if server.process.poll() is None:
                server.process.kill()
    later = [point for point in soak.points[len(soak.points) // 2 :] if point.starts == soak.points[-1].starts]
    first, last = later[0], later[-1]
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
        f"killed, {soak.stops} stops, {soak.reopened} sent again"
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
