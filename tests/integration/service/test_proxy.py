"""``groundwire proxy`` with the embedded bundle, between real connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from groundwire.runtime.bundles.bundle import embedded
from tests.support.chat_server import ChatServer, listen
from tests.support.server import SECONDS, Server, start_server

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")
KNOWLEDGE = "Delivery is free and takes 3 to 5 working days. Express delivery costs £4.95 and takes one working day."
RIGHT, WRONG = "Delivery takes 3 to 5 working days.", "Express delivery costs £5.95 and takes one working day."
CORRECTED = "Express delivery costs £4.95 and takes one working day."
PATH = "/v1/chat/completions"
BODY = {
    "model": "m",
    "messages": [{"role": "tool", "content": KNOWLEDGE}, {"role": "user", "content": "How much is express delivery?"}],
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[tuple[ChatServer, str]]:
    server = ChatServer(f"{RIGHT} {WRONG}")
    with listen(server.app) as address:
        yield server, address


@pytest.fixture(scope="module")
def proxy(upstream: tuple[ChatServer, str]) -> Iterator[Server]:
    options = ("--upstream", f"{upstream[1]}/v1", "--policy", "correct")
    settings = {"TOKENS": "secret", "UPSTREAM_KEY": "key", "DRAIN_DELAY_MS": "60000"}
    variables = {f"GROUNDWIRE_{name}": value for name, value in settings.items()}
    with start_server(*options, command="proxy", **variables) as running:
        running.wait_until_ready()
        yield running


@pytest.fixture
def client(proxy: Server) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=proxy.url, headers={"Authorization": "Bearer secret"}, timeout=SECONDS, trust_env=False
    ) as client:
        yield client


def read_chunks(lines: Iterator[str]) -> Iterator[Any]:
    for line in lines:
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def test_an_answer_is_corrected(client: httpx.Client, upstream: tuple[ChatServer, str]) -> None:
    (choice,) = client.post(PATH, json=BODY).json()["choices"]
    assert choice["message"]["content"] == f"{RIGHT} {CORRECTED}"
    assert choice["groundwire"]["label"] == "inconsistent"
    assert choice["groundwire"]["citations"]
    assert upstream[0].headers[-1]["authorization"] == "Bearer key"


def test_a_sentence_leaves_while_the_next_is_written(client: httpx.Client, upstream: tuple[ChatServer, str]) -> None:
    server, _ = upstream
    before = server.sent
    texts = []
    with client.stream("POST", PATH, json=BODY | {"model": "slow", "stream": True}) as answer:
        for chunk in read_chunks(answer.iter_lines()):
            for choice in chunk["choices"]:
                if text := choice["delta"].get("content"):
                    texts.append((text, server.sent - before))
    assert "".join(text for text, _ in texts) == f"{RIGHT} {CORRECTED}"
    assert texts[0][0].strip() == RIGHT
    assert texts[0][1] < len(server.text)


def test_a_client_that_leaves_ends_the_upstreams_stream(client: httpx.Client, upstream: tuple[ChatServer, str]) -> None:
    server, _ = upstream
    server.has_left.clear()
    with client.stream("POST", PATH, json=BODY | {"model": "slow", "stream": True}) as answer:
        next(read_chunks(answer.iter_lines()))
    assert server.has_left.wait(SECONDS)


def test_a_stop_finishes_the_stream(upstream: tuple[ChatServer, str]) -> None:
    with start_server("--upstream", f"{upstream[1]}/v1", "--policy", "annotate", command="proxy") as running:
        running.wait_until_ready()
        body = BODY | {"model": "slow", "stream": True}
        stopped: list[int] = []
        stop = threading.Thread(target=lambda: stopped.append(running.stop()))
        with httpx.stream("POST", f"{running.url}{PATH}", json=body, timeout=SECONDS, trust_env=False) as answer:
            lines = answer.iter_lines()
            next(lines)
            stop.start()
            text = "".join(
                choice["delta"].get("content") or "" for chunk in read_chunks(lines) for choice in chunk["choices"]
            )
        stop.join()
        assert (text, stopped) == (f"{RIGHT} {WRONG}", [0])


def test_texts_and_keys_are_not_logged(client: httpx.Client, proxy: Server) -> None:
    client.post(PATH, json=BODY)
    client.post(PATH, json=BODY | {"model": "mute"})
    logged = json.dumps(proxy.lines)
    assert '"route": "/v1/chat/completions"' in logged
    assert "elivery" not in logged
    assert "secret" not in logged
