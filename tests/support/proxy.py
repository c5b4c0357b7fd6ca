"""A proxy before a fake upstream, over fake models."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from groundwire.engine import Engine
from groundwire.runtime.calls import Classify
from groundwire.runtime.errors import ModelError
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from groundwire.service.proxy import make_proxy
from groundwire.service.settings import ProxySettings
from tests.support.chat_server import ChatServer
from tests.support.service import connect
from tests.support.streams import KNOWLEDGE, METRICS, classify, world

T = TypeVar("T")
RIGHT, WRONG = "Honey is sweet.", "Honey is blue."
TEXT = f"{RIGHT} {WRONG} {RIGHT}"
ASKED = [{"role": "user", "content": "Honey?"}]
GIVEN = {"knowledge": [KNOWLEDGE]}
UPSTREAM = "http://upstream/v1"
BOOK = [{"role": "user", "content": "Book a table for 4 in Leeds."}]
FORMS = ("chat/completions", "responses", "messages")
"""The protocols of the proxy."""


def run(
    test: Callable[[httpx.AsyncClient, ChatServer], Awaitable[T]],
    text: str = TEXT,
    runtime: FakeRuntime | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    **settings: Any,
) -> T:
    """What a test with a warm proxy and its upstream returns."""

    async def main() -> T:
        upstream = ChatServer(text)
        chosen = ProxySettings(**{"upstream": UPSTREAM, "metrics": METRICS} | settings)
        with Engine(runtime or world()) as engine:
            front = make_proxy(engine, chosen, transport or httpx.ASGITransport(upstream.app))
            await front.warm()
            async with connect(front) as client:
                return await test(client, upstream)

    return asyncio.run(main())


def make_body(form: str, messages: Any, given: Any, *, stream: bool) -> dict[str, Any]:
    """A request of a protocol; ``given`` is the proxy's field, None for none."""
    name = "input" if form == "responses" else "messages"
    return {"model": "m", name: messages, "stream": stream} | ({} if given is None else {"groundwire": given})


def fail(call: Classify) -> Outcome:
    """A model that fails at the answer, and not at the scores that the server makes of its own accord."""
    return ModelError("out of memory") if RIGHT in call.hypothesis else classify(call)
