"""Whatever an upstream answers, the proxy answers with types, and lets nothing leave that was not checked."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest

from tests.support.chat_server import ChatServer
from tests.support.proxy import ASKED, BOOK, FORMS, GIVEN, RIGHT, TEXT, WRONG, make_body, run

ANSWERS = 60
"""Of each protocol, streamed and whole, with a wrong text and with a wrong call."""
MADE_UP = 7777
VALUES = (
    None, -1, 1, 99, 10**30, True, "", [], {}, "stop", "x" * 300, WRONG, [WRONG], {"text": WRONG},
    [{"type": "text", "text": WRONG}], "assistant", "tool_use", "function_call", "text_delta", "output_text",
)  # fmt: skip
KEYS = (
    "content", "text", "audio", "function_call", "delta", "message", "arguments", "input", "parts", "tool_calls",
    "type", "index", "annotations", "logprobs", "thinking", "name", "output", "item", "content_block", "choices",
)  # fmt: skip
DATA = re.compile(rb"data: ({.*})")


class Words(str):
    """A text that is written word by word."""

    def __iter__(self) -> Iterator[str]:
        return iter(re.findall(r"\S+\s*", str(self)))


class Mutating(httpx.AsyncBaseTransport):
    """The network to an upstream whose answers are changed on the way."""

    def __init__(self, upstream: ChatServer, random: Random) -> None:
        self._inner = httpx.ASGITransport(upstream.app)
        self._random = random
        self.last = b""
        """What was answered last."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        content, kind = await answer.aread(), answer.headers["content-type"]
        self.last = self._change_events(content) if "event-stream" in kind else self._change(content)
        return httpx.Response(200, headers={"content-type": kind}, content=self.last)

    def _change_events(self, content: bytes) -> bytes:
        """Some events are changed, exchanged, repeated, left out, or lose their name; or the stream ends early."""
        random = self._random
        events = [event for event in re.split(rb"\r?\n\r?\n", content) if event]
        first, second = random.choices(range(len(events)), k=2)
        match random.randrange(6):
            case 0:
                events[first], events[second] = events[second], events[first]
            case 1:
                events.insert(first, events[second])
            case 2:
                del events[first]
            case 3:
                del events[first + 1 :]
            case 4:
                events[first] = events[first].partition(b"\n")[2]
        for index, event in enumerate(events):
            if (data := DATA.search(event)) and random.random() < 0.15:
                events[index] = event.replace(data[1], self._change(data[1]))
        return random.choice((b"\n\n", b"\r\n\r\n", b"\r\r")).join(events) + b"\n\n"

    def _change(self, content: bytes) -> bytes:
        """Some fields are left out, replaced, renamed, added or wrapped."""
        random, value = self._random, json.loads(content)
        for _ in range(random.randint(1, 3)):
            parent, key = random.choice(list(list_places(value)) or [({"": 0}, "")])
            new = copy.deepcopy(random.choice(VALUES))
            match random.randrange(5):
                case 0:
                    del parent[key]
                case 1:
                    parent[key] = new
                case 2 if isinstance(parent, dict):
                    parent[random.choice(KEYS)] = parent.pop(key)
                case 3 if isinstance(parent, dict):
                    parent[random.choice(KEYS)] = new
                case _:
                    parent[key] = [parent[key], parent[key]]
        return json.dumps(value).encode()


def list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every object and list in JSON with each of its keys."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield value, key
        yield from list_places(inner)


def drop_verdicts(value: Any) -> Any:
    """JSON without the proxy's own field, and without refusals, which leave unchecked and are said to."""
    if isinstance(value, list):
        return [drop_verdicts(item) for item in value]
    if not isinstance(value, dict):
        return value
    left_out = ("groundwire", "refusal", "delta" if value.get("type") == "response.refusal.delta" else "")
    return {key: drop_verdicts(item) for key, item in value.items() if key not in left_out}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("is_call", [False, True])
def test_nothing_unchecked_leaves(form: str, stream: bool, is_call: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    upstream = ChatServer(Words(RIGHT if is_call else TEXT))
    upstream.calls = [{"guests": MADE_UP, "city": "Leeds"}] if is_call else []
    transport = Mutating(upstream, Random(0))
    body = make_body(form, BOOK if is_call else ASKED, None if is_call else GIVEN, stream=stream)

    async def test(client: httpx.AsyncClient, _: ChatServer) -> None:
        for _ in range(ANSWERS):
            answer = await client.post(f"/v1/{form}", json=body)
            assert answer.status_code in (200, 502), (answer.text, transport.last)
            parts = DATA.findall(answer.content) if stream and answer.status_code == 200 else [answer.content]
            for part in map(json.loads, parts):
                assert not re.search(rf"\bblue\b|{MADE_UP}", str(drop_verdicts(part))), transport.last
            assert not caplog.records, transport.last

    run(test, transport=transport, calls="block")
