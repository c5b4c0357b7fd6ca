"""Clients that mean harm, or are broken, against ``groundwire serve`` in a process of its own."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
import websockets.sync.client as websocket

from groundwire.runtime.bundles.bundle import embedded
from tests.hostile.stops import CLIENTS, stop_under_load
from tests.support.offline import ROOT
from tests.support.server import SECONDS, Server, start_server, time_calls

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")
TOKEN = {"Authorization": "Bearer secret"}
JSON = {"Content-Type": "application/json"}
CHUNKED = b"Host: a\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"1\r\n \r\n" * 2_000
UPGRADE = (
    b"GET /stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
KNOWLEDGE = "Honey keeps for years. It is golden."
DESCRIPTORS = 256
HEADERS_S, IDLE_S = 2.0, 3.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[0] != resource.RLIM_INFINITY and before[0] < 4 * DESCRIPTORS:
        pytest.skip("this process may not open enough connections")
    times = {"GROUNDWIRE_MAX_IDLE_MS": f"{IDLE_S * 1000:g}", "GROUNDWIRE_MAX_HEADERS_MS": f"{HEADERS_S * 1000:g}"}
    tokens = {"GROUNDWIRE_TOKENS": "secret", "GROUNDWIRE_TENANT_TOKENS": "polite=polite,*=gateway"}
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, before[1]))
    try:
        context = start_server("--metrics", "overlap", **times, **tokens)
        running = context.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with contextlib.ExitStack() as stack:
        stack.push(context)
        running.wait_until_ready()
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=TOKEN, timeout=SECONDS, trust_env=False) as client:
        yield client


def connect(server: Server, seconds: float = SECONDS) -> socket.socket:
    address, port = re.fullmatch(r"http://(.+):(\d+)", server.url).groups()  # type: ignore[union-attr]
    return socket.create_connection((address, int(port)), seconds)


def encode(body: Any, path: str = "/score", token: str = "secret", media_type: str = "application/json") -> bytes:
    """A request with a body, as bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Type: {media_type}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(content), content)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side ends it; a reset is an error."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def make_score_call(client: httpx.Client, **options: Any) -> Callable[[int], None]:
    """A call that scores a response that is not in the cache."""

    def call(number: int) -> None:
        body = {"response": f"Honey is blue {number} {time.monotonic()}.", "knowledge": KNOWLEDGE, "options": options}
        answer = client.post("/score", json=body)
        assert answer.status_code == 200, answer.text

    return call


def wait_until_idle(client: httpx.Client, line: str = "groundwire_queue_size 0.0") -> None:
    """Return when nothing is left in the queue, or when the server's numbers have another line."""
    end = time.monotonic() + SECONDS
    while f"\n{line}\n" not in client.get("/metrics").text:
        assert time.monotonic() < end
        time.sleep(0.05)


@contextlib.contextmanager
def keep_sending(server: Server, head: bytes, count: int) -> Iterator[list[float]]:
    """Connections that send chunks of one byte without end; the list gets the seconds after which each was closed."""
    stop, closed = threading.Event(), list[float]()

    def attack() -> None:
        started = time.monotonic()
        with connect(server, 1.0) as connection:
            try:
                connection.sendall(head + CHUNKED)
                while not stop.is_set():
                    with contextlib.suppress(TimeoutError):
                        connection.sendall(CHUNKS)
            except OSError:
                closed.append(time.monotonic() - started)

    threads = [threading.Thread(target=attack) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield closed
    finally:
        stop.set()
        for thread in threads:
            thread.join(SECONDS)


@pytest.mark.parametrize(
    ("head", "is_refused"),
    [
        (b"POST /nothing HTTP/1.1\r\n", True),
        (b"GET /healthz HTTP/1.1\r\n", True),
        (b"POST /score_many HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Type: application/x-ndjson\r\n", False),
    ],
)
def test_bodies_in_chunks_of_a_byte_leave_others_their_answers(
    server: Server, client: httpx.Client, head: bytes, is_refused: bool
) -> None:
    time_calls(make_score_call(client), 10)
    idle = statistics.median(time_calls(make_score_call(client), 20))
    with keep_sending(server, head, 8) as closed:
        time.sleep(0.3)
        health = time_calls(lambda _: client.get("/healthz"), 100)
        scores = statistics.median(time_calls(make_score_call(client), 20))
        assert health[98] < 0.5
        assert scores < 3 * idle + 0.1
        if is_refused:  # half a second after the refusal, which may be later than these answers
            end = time.monotonic() + SECONDS
            while len(closed) < 8 and time.monotonic() < end:
                time.sleep(0.05)
            assert len(closed) == 8
            assert max(closed) < 3.0
    if not is_refused:
        assert not closed


def make_frames(opcode: int, count: int) -> bytes:
    """Empty masked frames of a WebSocket."""
    return bytes([opcode, 0x80, 0, 0, 0, 0]) * count


@pytest.mark.parametrize(
    ("first", "frames"),
    [
        (b"", make_frames(0x89, 4_000)),  # pings
        (b"", make_frames(0x8A, 4_000)),  # pongs
        (make_frames(0x01, 1), make_frames(0x00, 4_000)),  # a message that never ends
        (b"", b"\x81\x81\0\0\0\0a" * 4_000),  # messages of a letter
    ],
)
def test_frames_without_end_leave_others_their_answers(
    server: Server, client: httpx.Client, first: bytes, frames: bytes
) -> None:
    stop = threading.Event()

    def attack() -> None:
        while not stop.is_set():
            with connect(server, 1.0) as connection, contextlib.suppress(OSError):
                connection.sendall(UPGRADE)
                assert connection.recv(1 << 16).startswith(b"HTTP/1.1 101 ")
                connection.sendall(first)
                while not stop.is_set():
                    with contextlib.suppress(TimeoutError):
                        connection.sendall(frames)

    with ThreadPoolExecutor(8) as pool:
        try:
            attacks = [pool.submit(attack) for _ in range(8)]
            time.sleep(0.3)
            seconds = time_calls(lambda _: client.get("/healthz"), 100)
        finally:
            stop.set()
        for done in attacks:
            done.result(SECONDS)
    assert seconds[98] < 0.5


def test_a_list_of_many_members_is_refused_before_it_is_read(client: httpx.Client) -> None:
    options = {"bertscore": {"idf_documents": ["a"] * 480_000}}
    bodies = [{"response": "a", "knowledge": [""] * 600_000}, {"response": "a", "knowledge": "b", "options": options}]
    for body in bodies:
        answer = client.post("/score", content=json.dumps(body, separators=(",", ":")), headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert "members" in answer.json()["detail"]
    text = json.dumps({"response": "," * 60_000, "knowledge": "b"})  # commas of a text are no members
    assert "response has 60000" in client.post("/score", content=text, headers=JSON).json()["detail"]


def test_an_answer_before_the_end_of_its_body_is_readable_and_ends_the_connection(server: Server) -> None:
    with connect(server, 5.0) as connection:
        connection.sendall(b"POST /score HTTP/1.1\r\n" + CHUNKED + CHUNKS)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer
    assert b'"code":"unauthorized"' in answer


def send_until_closed(connection: socket.socket, part: bytes, seconds: float) -> float:
    """Send a part again and again; the seconds after which the other side has closed the connection."""
    started = time.monotonic()
    connection.settimeout(0.5)
    while time.monotonic() < started + seconds:
        try:
            connection.sendall(part)
        except TimeoutError:
            continue
        except OSError:
            break
        time.sleep(0.01)
    return time.monotonic() - started


@pytest.mark.parametrize("part", [b"b" * 20_000, b"b: c\r\n" * 4_000])
def test_headers_without_end_are_refused(server: Server, part: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\na: ")
        assert send_until_closed(connection, part, 5.0) < min(HEADERS_S, 1.5)


def test_long_headers_that_come_at_once_are_refused(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nb: " + b"c" * 70_000 + b"\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


def test_trailers_without_end_are_refused(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(b"POST /score HTTP/1.1\r\nAuthorization: Bearer secret\r\n" + CHUNKED + b"0\r\n")
        assert send_until_closed(connection, b"b: c\r\n" * 4_000, 5.0) < 1.5


def test_a_reader_that_never_reads_is_closed(server: Server) -> None:
    records = ({"response": f"Honey is blue {number}.", "knowledge": KNOWLEDGE} for number in range(1_000))
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    head = b"POST /score_many HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Type: application/x-ndjson\r\n"
    with connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(head + CHUNKED)
        part = b"%x\r\n%s\r\n" % (len(lines), lines)
        assert IDLE_S < send_until_closed(connection, part, 30.0) < 30.0


def test_a_websocket_that_never_reads_is_closed() -> None:
    sentences = json.dumps("Honey is golden. " * 20).encode()
    frame = b"\x81\xfe" + len(sentences).to_bytes(2, "big") + bytes(4) + sentences  # masked with zeros
    first = json.dumps({"knowledge": KNOWLEDGE}).encode()
    # A server of its own: what it has read is checked after the end, before the requests of other tests.
    with start_server("--metrics", "overlap", GROUNDWIRE_MAX_IDLE_MS=f"{IDLE_S * 1000:g}") as server:
        server.wait_until_ready()
        with connect(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(UPGRADE)
            assert connection.recv(12) == b"HTTP/1.1 101"
            connection.sendall(bytes([0x81, 0x80 | len(first)]) + bytes(4) + first)
            assert IDLE_S < send_until_closed(connection, frame, 60.0) < 60.0
        with httpx.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as client:
            wait_until_idle(client, "groundwire_open_connections 1.0")


def test_clients_that_end_their_sending_get_their_answer(server: Server) -> None:
    with connect(server) as connection:
        connection.sendall(encode({"response": f"Honey is blue {time.monotonic()}.", "knowledge": KNOWLEDGE}))
        connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == "scored"


def test_hang_ups_leave_nothing(server: Server, client: httpx.Client) -> None:
    body = {"metrics": "all", "knowledge": " ".join(["Honey is golden."] * 200)}
    for number in range(50):
        with connect(server) as connection:
            connection.sendall(encode(body | {"response": f"Honey is blue {number}."}))
            time.sleep(0.005)
    wait_until_idle(client)
    wait_until_idle(client, "groundwire_open_connections 1.0")
    numbers = client.get("/metrics").text
    assert 'groundwire_requests_total{route="/score",status="499"}' in numbers
    assert re.search(r'^groundwire_resident_bytes{part="workers"} [1-9]', numbers, re.M)
    files = Path(f"/proc/{server.process.pid}/fd")
    assert not files.exists() or len(list(files.iterdir())) < 40


def test_a_storm_of_deadlines_is_answered(server: Server, client: httpx.Client) -> None:
    def post(number: int) -> int:
        headers = TOKEN | {"Groundwire-Deadline-Ms": str(0.001 * 10 ** (number % 4))}
        body = {"response": f"Honey is blue {number}.", "knowledge": KNOWLEDGE, "metrics": "fast"}
        return client.post("/score", json=body, headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        codes = set(pool.map(post, range(300)))
    assert 504 in codes
    assert codes <= {200, 408, 429, 504}
    wait_until_idle(client)
    assert client.get("/healthz").status_code == 200


def test_tenants_with_fresh_names_leave_a_polite_one_its_share(server: Server) -> None:
    def flood(stop: threading.Event, is_fresh: bool) -> None:
        headers = {"Authorization": "Bearer gateway"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=SECONDS, trust_env=False) as client:
            while not stop.is_set():
                tenant = f"{time.monotonic_ns()}" if is_fresh else "flood"
                make_score_call(client, tenant=tenant)(0)

    medians = []
    headers = {"Authorization": "Bearer polite"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=SECONDS, trust_env=False) as client:
        for is_fresh in (False, True):
            stop = threading.Event()
            threads = [threading.Thread(target=flood, args=(stop, is_fresh)) for _ in range(8)]
            for thread in threads:
                thread.start()
            try:
                medians.append(statistics.median(time_calls(make_score_call(client), 15)))
            finally:
                stop.set()
                for thread in threads:
                    thread.join(SECONDS)
    assert medians[1] < 3 * medians[0] + 0.1


def test_no_request_makes_series(client: httpx.Client) -> None:
    def score(number: int) -> None:
        rate = 0.02 + number / 1000
        body = {"response": "Honey is blue.", "knowledge": KNOWLEDGE, "options": {"max_false_positive_rate": rate}}
        client.post("/score", json=body | {"metrics": "fast"})

    score(0)
    before = client.get("/metrics").text
    for number in range(1, 60):
        score(number)
    assert client.get("/metrics").text.count("recent_verdicts{") - before.count("recent_verdicts{") <= 2


def test_half_sent_requests_exhaust_no_descriptors(server: Server) -> None:
    server.forget_lines()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(server)) for _ in range(2 * DESCRIPTORS)]
        for connection in held:
            with contextlib.suppress(OSError):
                connection.sendall(b"POST /score HTTP/1.1\r\nX-a: ")
        assert httpx.get(f"{server.url}/healthz", trust_env=False, timeout=5.0).status_code == 200
        time.sleep(HEADERS_S + 1.5)
        for connection in held:
            connection.settimeout(5.0)
            with contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b""
        assert httpx.get(f"{server.url}/healthz", trust_env=False, timeout=5.0).status_code == 200
    assert len(server.lines) < 100
    assert {line["reason"] for line in server.lines if line["event"] == "connection closed"} == {
        "displaced",
        "no request",
    }


def test_a_stop_under_load_resets_no_connection() -> None:
    stop = stop_under_load(start_server("--metrics", "overlap"))
    assert stop.answers >= CLIENTS
    assert not stop.broken
    assert stop.code == 0


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_stop_while_models_load_ends_the_server_and_its_workers(workers: str) -> None:
    arguments = [sys.executable, "-m", "groundwire", "serve", "--port", "0", "--workers", workers]
    with subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["event"] == "loading"
        time.sleep(0.5)
        process.terminate()
        # The worker has the other end of this pipe, too: it is at its end when both have ended.
        assert not [line for line in process.stderr if "listening" in line]
        assert process.wait(SECONDS) in (128 + signal.SIGTERM, -signal.SIGTERM)


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="the clock is moved by a preloaded library"
)
def test_a_clock_that_jumps_changes_no_answer(tmp_path: Path) -> None:
    library, clock, day = tmp_path / "clock.so", tmp_path / "clock", 86_400
    source = ROOT / "tests" / "support" / "jumping_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    clock.write_text("0")
    moved = {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(clock)}
    with start_server("--metrics", "overlap", **moved) as server:
        server.wait_until_ready()
        years = set()
        with httpx.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as client:
            for days in (0, 400, -400, 3_650, 0):
                clock.write_text(str(days * day))
                make_score_call(client)(0)
                assert client.get("/readyz").status_code == 200
                years.add(server.wait_for("request")["time"][:4])
        assert len(years) > 2  # the jumps have reached the server
        assert server.stop() == 0


def test_streams_that_a_stop_cuts_say_so() -> None:
    first = {"knowledge": KNOWLEDGE, "policy": {"unknown": "flag"}}
    lines = b"".join(json.dumps(line).encode() + b"\n" for line in (first, "Honey is golden. And"))
    head = b"POST /stream HTTP/1.1\r\nContent-Type: application/x-ndjson\r\n" + CHUNKED
    with start_server("--metrics", "overlap", GROUNDWIRE_DRAIN_TIMEOUT_MS="1000") as server:
        server.wait_until_ready()
        address = server.url.replace("http", "ws")
        with connect(server) as events, websocket.connect(f"{address}/stream") as socket:
            events.sendall(head + b"%x\r\n%s\r\n" % (len(lines), lines))
            socket.send(json.dumps(first))
            socket.send(json.dumps("Honey is golden. And"))
            assert json.loads(socket.recv(SECONDS))["type"] == "sentence"
            server.process.terminate()
            messages = []
            with contextlib.suppress(websockets.ConnectionClosedError):
                messages.extend(socket.recv(SECONDS) for _ in range(9))
            answer = read_all(events)
        assert server.process.wait(SECONDS) == 0
    assert socket.close_code == 4503
    assert json.loads(messages[-1])["problem"]["code"] == "closed"
    assert b"event: error" in answer
    assert b'"code":"closed"' in answer
    assert answer.endswith(b"0\r\n\r\n")


def test_a_key_that_is_there_twice_is_refused(client: httpx.Client) -> None:
    body = b'{"response": "Honey is blue.", "knowledge": "Honey is golden.", "r\\u0065sponse": "Honey is golden."}'
    answer = client.post("/score", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    row = {"shape": [1], "datatype": "BYTES", "data": ["Honey is blue."]}
    inputs = [{"name": name, **row} for name in ("response", "knowledge", "response")]
    answer = client.post("/v2/models/groundwire/infer", json={"inputs": inputs})
    assert (answer.status_code, answer.json()["path"]) == (422, "$.inputs[2].name")
