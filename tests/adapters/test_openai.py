"""The guard around OpenAI's own client, before a server that answers as theirs does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, INCONSISTENT, KNOWLEDGE, load
from tests.support.streams import METRICS

openai = load("openai")
from groundwire.adapters.openai import guard  # noqa: E402

TEXT = f"{CONSISTENT} {INCONSISTENT} {CONSISTENT}"
BASE = {"id": "c", "created": 1, "model": "m"}


class Handler(BaseHTTPRequestHandler):
    """Answers every request with ``TEXT``."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request.get("stream"):
            body, kind = b"".join(self._write_events()), "text/event-stream"
        else:
            message = {"role": "assistant", "content": TEXT}
            choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
            body = json.dumps(BASE | {"object": "chat.completion", "choices": [choice]}).encode()
            kind = "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _write_events(self) -> Iterator[bytes]:
        deltas = [{"role": "assistant", "content": ""}, *({"content": letter} for letter in TEXT), {}]
        for index, delta in enumerate(deltas):
            reason = "stop" if index == len(deltas) - 1 else None
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            chunk = BASE | {"object": "chat.completion.chunk", "choices": [choice]}
            yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[dict[str, str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key": "none"}
        server.shutdown()


def test_an_answer(engine: Engine, address: dict[str, str]) -> None:
    client = guard(openai.OpenAI(**address), KNOWLEDGE, engine, metrics=METRICS)
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Honey?"}])
    (choice,) = answer.choices
    assert isinstance(answer, openai.types.chat.ChatCompletion)
    assert (choice.message.content, choice.finish_reason) == (CONSISTENT, "content_filter")
    assert choice.groundwire["label"] == "inconsistent"
    assert [span["text"] for span in choice.groundwire["unsupported"]] == ["blue"]


def test_a_stream(engine: Engine, address: dict[str, str]) -> None:
    client = guard(openai.OpenAI(**address), KNOWLEDGE, engine, metrics=METRICS)
    chunks = list(client.chat.completions.create(model="m", messages=[], stream=True))
    assert all(isinstance(chunk, openai.types.chat.ChatCompletionChunk) for chunk in chunks)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == CONSISTENT
    assert chunks[-1].choices[0].finish_reason == "content_filter"
    assert chunks[-1].choices[0].groundwire["label"] == "inconsistent"


def test_an_asynchronous_stream(engine: Engine, address: dict[str, str]) -> None:
    async def run() -> list[Any]:
        async with openai.AsyncOpenAI(**address) as client:
            checked = guard(client, KNOWLEDGE, engine, metrics=METRICS)
            answer = await checked.chat.completions.create(model="m", messages=[])
            assert answer.choices[0].message.content == CONSISTENT
            stream = await checked.chat.completions.create(model="m", messages=[], stream=True)
            return [chunk async for chunk in stream]

    chunks = asyncio.run(run())
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == CONSISTENT
    assert chunks[-1].choices[0].groundwire["label"] == "inconsistent"
