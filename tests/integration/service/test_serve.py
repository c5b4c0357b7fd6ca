"""``groundwire serve`` with the embedded bundle, in a process of its own, over real connections."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from groundwire.engine import Engine, Score
from groundwire.runtime.bundles.bundle import embedded
from groundwire.runtime.version import VERSION
from tests.support.offline import ROOT
from tests.support.server import SECONDS, Server, start_server

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")
METRICS = ("nli", "detector.consistency", "verifiability", "overlap", "overlap_precision")
EXAMPLES = (ROOT / "examples" / "dialogues.jsonl").read_bytes()
HONEY = {"response": "Honey is blue.", "knowledge": "Honey keeps for years. It is golden."}
HANGUP = signal.SIGHUP if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else signal.SIGTERM
"""The end of a terminal, unless these tests were started so that it is ignored."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server("--metrics", ",".join(METRICS), GROUNDWIRE_TOKENS="secret") as running:
        running.wait_until_ready()
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=server.url, headers={"Authorization": "Bearer secret"}, timeout=SECONDS, trust_env=False
    ) as client:
        yield client


def test_scores_are_those_of_the_engine(client: httpx.Client) -> None:
    rows = [json.loads(line) for line in EXAMPLES.splitlines()][:4]
    with Engine.load("compact", threads=1) as engine:
        for row in rows:
            body = {name: row[name] for name in ("response", "knowledge", "history") if name in row}
            served = Score.from_json(client.post("/score", json=body).content)
            local = engine.score(row["response"], row["knowledge"], history=row["history"], metrics=METRICS)
            assert served.signature == local.signature
            assert served.value == pytest.approx(local.value, abs=1e-6)
            assert served.verdict.label == local.verdict.label
            assert [span.text for span in served.unsupported] == [span.text for span in local.unsupported]


def test_a_file_is_streamed_through(client: httpx.Client) -> None:
    lines = EXAMPLES.splitlines(keepends=True)
    headers = {"Content-Type": "application/x-ndjson"}
    with client.stream("POST", "/score_many?metrics=overlap", content=iter(lines), headers=headers) as answer:
        answers = [json.loads(line) for line in answer.iter_lines()]
    assert [line["line"] for line in answers] == list(range(1, len(lines) + 1))
    assert [line["id"] for line in answers] == [json.loads(line)["id"] for line in lines]
    assert {line["score"]["status"] for line in answers} <= {"scored", "nothing_to_verify"}


FIRST = {"knowledge": HONEY["knowledge"], "policy": {"inconsistent": "redact", "unknown": "flag"}}
PIECES = ["Honey keeps for", " years. It is", " blue. Really."]


def test_a_response_is_checked_while_it_is_written(client: httpx.Client, server: Server) -> None:
    lines = [json.dumps(line).encode() + b"\n" for line in (FIRST, *PIECES)]
    headers = {"Content-Type": "application/x-ndjson"}
    with client.stream("POST", "/stream", content=iter(lines), headers=headers) as answer:
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: ")]
    headers = {"Authorization": "Bearer secret"}
    with connect(server.url.replace("http", "ws") + "/stream", additional_headers=headers, proxy=None) as socket:
        for message in (FIRST, *PIECES, {"finish": True}):
            socket.send(json.dumps(message))
        received = [json.loads(message) for message in socket]
    assert socket.close_code == 1000
    assert [event["type"] for event in received] == [event["type"] for event in events]
    assert events[-1]["released"] == received[-1]["released"]
    assert events[-1]["released"].startswith("Honey keeps for years.")
    assert "blue" not in events[-1]["released"]


def test_a_socket_without_a_token_is_refused(server: Server) -> None:
    with pytest.raises(InvalidStatus, match="401"), connect(server.url.replace("http", "ws") + "/stream", proxy=None):
        pass


def test_a_client_that_hangs_up_is_noticed(client: httpx.Client, server: Server) -> None:
    address, port = re.fullmatch(r"http://(.+):(\d+)", server.url).groups()  # type: ignore[union-attr]
    body = json.dumps(HONEY | {"metrics": "all", "knowledge": " ".join(["Honey is golden."] * 200)}).encode()
    with socket.create_connection((address, int(port))) as connection:
        connection.sendall(
            b"POST /score HTTP/1.1\r\nHost: a\r\nX-Request-Id: gone\r\nAuthorization: Bearer secret\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
    line = server.wait_for("request")
    while line["request_id"] != "gone":
        line = server.wait_for("request")
    assert (line["status"], line["code"]) == (499, "client_closed")
    assert "groundwire_queue_size 0.0" in client.get("/metrics").text


def test_the_numbers_are_prometheus_text(client: httpx.Client) -> None:
    text = client.get("/metrics").text
    assert re.search(r'groundwire_requests_total\{route="/score",status="200"\} \d', text)
    assert "_created" not in text


def test_texts_are_not_logged(client: httpx.Client, server: Server) -> None:
    client.post("/score", json=HONEY)
    client.post("/score", json=HONEY | {"response": 5})
    assert httpx.post(f"{server.url}/score", json=HONEY, trust_env=False).status_code == 401
    assert "oney" not in json.dumps(server.lines)
    assert "secret" not in json.dumps(server.lines)


def test_a_stop_finishes_what_has_begun() -> None:
    with start_server("--metrics", "fast", GROUNDWIRE_DRAIN_DELAY_MS="60000") as server:
        server.wait_until_ready()
        answers: list[Any] = []
        half = threading.Event()

        def write() -> Iterator[bytes]:
            lines = EXAMPLES.splitlines(keepends=True)[:4]
            yield from lines[:2]
            half.wait(SECONDS)
            yield from lines[2:]

        def post() -> None:
            headers = {"Content-Type": "application/x-ndjson"}
            answers.append(
                httpx.post(
                    f"{server.url}/score_many", content=write(), headers=headers, timeout=SECONDS, trust_env=False
                ).text
            )

        thread = threading.Thread(target=post)
        thread.start()
        with httpx.Client(base_url=server.url, timeout=SECONDS, trust_env=False) as client:
            while "groundwire_verdicts_total{" not in client.get("/metrics").text:
                pass
            server.process.send_signal(HANGUP)
            server.wait_for("draining")
            assert client.get("/readyz").status_code == 503
            assert client.post("/score", json=HONEY).status_code == 200, "a load balancer may not know yet"
        server.process.send_signal(signal.SIGTERM)  # the second ends the delay
        with contextlib.suppress(ConnectionRefusedError):  # until it listens no longer
            while server.process.poll() is None:
                socket.create_connection(("127.0.0.1", httpx.URL(server.url).port), SECONDS).close()
        half.set()
        assert server.process.wait(SECONDS) == 0
        thread.join(SECONDS)
        assert [json.loads(line)["line"] for line in answers[0].splitlines()] == [1, 2, 3, 4]


def list_children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the processes")
def test_a_worker_process_that_is_killed_loses_no_request() -> None:
    with start_server("--workers", "2", "--metrics", "overlap", GROUNDWIRE_WORKER="2") as server:
        server.wait_for("warmed up")
        (warning,) = [line["detail"] for line in server.lines if line["event"] == "warning"]
        assert "did you mean GROUNDWIRE_WORKERS?" in warning
        (begun,) = [line for line in server.lines if line["event"] == "listening"]
        assert (begun["version"], begun["workers"], begun["tokens"]) == (VERSION, 2, False)
        assert begun["bundle"].startswith("compact")
        assert re.fullmatch(r"[0-9a-f+]+", begun["digest"])

        def score(number: int) -> int:
            body = HONEY | {"response": f"Honey is golden {number} times."}
            return httpx.post(f"{server.url}/score", json=body, timeout=SECONDS, trust_env=False).status_code

        workers = list_children(server.process.pid)
        assert len(workers) == 2
        with ThreadPoolExecutor(4) as clients:
            answers = clients.map(score, range(24))
            os.kill(workers[0], signal.SIGKILL)
            assert set(answers) == {200}
        text = httpx.get(f"{server.url}/metrics", trust_env=False).text
        assert 'groundwire_requests_total{route="/score",status="200"} 24.0' in text
        assert server.stop() == 0
        server.wait_for("stopped")
        assert server.lines[-1]["event"] == "stopped", "after the worker processes"
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_what_cannot_be_served_is_said_at_once() -> None:
    with pytest.raises(AssertionError, match="No bundle 'absent'"), start_server("--bundle", "absent"):
        pass


FREEZING = """
import gc, os, signal
from groundwire.service.server import run
from groundwire.service.settings import Settings

def stop(url):
    print(gc.get_freeze_count())
    os.kill(os.getpid(), signal.SIGTERM)

run(Settings(bundle="compact", port=0, threads=1, workers=0), stop)
"""


def test_loaded_objects_are_left_out_of_garbage_collections() -> None:
    output = subprocess.run([sys.executable, "-c", FREEZING], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert int(output.stdout) > 100_000, output.stderr
    # A signal that comes before uvicorn handles signals stops the server as a later one does.
    assert output.returncode == 0
    assert json.loads(output.stderr.splitlines()[-1])["event"] == "stopped"
