"""Upstreams that mean harm, or are broken, and ``groundwire proxy`` in a process of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from groundwire.runtime.bundles.bundle import embedded
from tests.support import hostile_upstream
from tests.support.hostile_upstream import BODIES, CHOICES, TRICKLES
from tests.support.server import SECONDS, Server, start_server, time_calls

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")
KNOWLEDGE = "Honey keeps for years. It is golden."
PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def proxy() -> Iterator[Server]:
    with hostile_upstream.listen() as address:
        settings = {"GROUNDWIRE_METRICS": "overlap"}
        with start_server("--upstream", f"{address}/v1", command="proxy", **settings) as running:
            running.wait_until_ready()
            yield running


@pytest.fixture
def client(proxy: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, timeout=SECONDS, trust_env=False) as client:
        yield client


def ask(client: httpx.Client, model: str, *, stream: bool) -> httpx.Response:
    messages = [{"role": "system", "content": KNOWLEDGE}, {"role": "user", "content": "What is honey?"}]
    return client.post(PATH, json={"model": model, "messages": messages, "stream": stream})


def read_last_event(answer: httpx.Response) -> dict[str, object]:
    assert answer.status_code == 200
    *_, last, end = answer.text.split("\n\n")
    assert end == ""
    event: dict[str, object] = json.loads(last.removeprefix("data: "))
    return event


def read_status(proxy: Server, name: str) -> int:
    """A number of the status of the proxy's process."""
    lines = Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@pytest.mark.parametrize("model", CHOICES)
def test_a_malformed_choice_is_the_upstreams_error(client: httpx.Client, proxy: Server, model: str) -> None:
    proxy.forget_lines()
    answer = ask(client, model, stream=False)
    assert (answer.status_code, answer.json()["code"]) == (502, "upstream"), answer.text
    if "message" not in CHOICES[model] or "delta" in CHOICES[model]:
        last = read_last_event(ask(client, model, stream=True))
        assert last["code"] == "upstream"
        assert "blue" not in str(last.get("choices"))
    assert not [line for line in proxy.lines if line["event"] == "defect"]


@pytest.mark.parametrize("model", BODIES)
def test_a_stream_that_cannot_be_read_ends_with_an_error(client: httpx.Client, model: str) -> None:
    assert read_last_event(ask(client, model, stream=True))["code"] == "upstream"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("stream", [False, True])
def test_layers_of_compression_are_refused_unread(client: httpx.Client, proxy: Server, stream: bool) -> None:
    before = read_status(proxy, "VmHWM")
    answer = ask(client, "bomb", stream=stream)
    code = read_last_event(answer)["code"] if stream else answer.json()["code"]
    assert code == "upstream"
    assert read_status(proxy, "VmHWM") < before + 20_000


@pytest.fixture(scope="module")
def impatient_proxy() -> Iterator[Server]:
    with hostile_upstream.listen() as address:
        limits = {"GROUNDWIRE_MAX_STREAM_MS": "2000", "GROUNDWIRE_DEFAULT_DEADLINE_MS": "2000"}
        settings = {"GROUNDWIRE_METRICS": "overlap"} | limits
        with start_server("--upstream", f"{address}/v1", command="proxy", **settings) as running:
            running.wait_until_ready()
            yield running


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", TRICKLES)
def test_an_upstream_that_trickles_without_end_is_left(impatient_proxy: Server, model: str, stream: bool) -> None:
    with httpx.Client(base_url=impatient_proxy.url, timeout=SECONDS, trust_env=False) as client:
        started = time.monotonic()
        answer = ask(client, model, stream=stream)
        seconds = time.monotonic() - started
        is_event = answer.headers["content-type"].startswith("text/event-stream")
        code = read_last_event(answer)["code"] if is_event else answer.json()["code"]
        assert code in ("upstream", "deadline")
        assert seconds < 20.0
        assert "groundwire_streams 0.0" in client.get("/metrics").text


@pytest.mark.parametrize("model", ["lines", "events", "letters"])
def test_an_endless_answer_leaves_others_their_turn(client: httpx.Client, proxy: Server, model: str) -> None:
    asking = threading.Thread(target=lambda: ask(client, model, stream=True))
    with httpx.Client(base_url=proxy.url, timeout=SECONDS, trust_env=False) as other:
        asking.start()
        seconds = time_calls(lambda _: other.get("/healthz"), 100)
        asking.join()
    assert seconds[98] < 0.5
