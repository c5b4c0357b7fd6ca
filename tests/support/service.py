"""A service over fake models, and a client that speaks ASGI to it, message by message."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import httpx
from starlette.types import ASGIApp

from groundwire.engine import Engine, LoadOptions
from groundwire.runtime.protocol import Runtime
from groundwire.service.application import app
from groundwire.service.front import Front
from groundwire.service.settings import Settings
from tests.support.streams import world

T = TypeVar("T")
HONEY = {"response": "Honey is sweet.", "knowledge": "Honey is sweet and golden."}
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}


@contextlib.asynccontextmanager
async def serve(runtime: Runtime | None = None, **settings: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Front]]:
    """A warm service and its client."""
    checked = Settings(**settings)
    with Engine(runtime or world(), LoadOptions(max_waiting_tokens=checked.max_waiting_tokens)) as engine:
        front = app(engine, checked)
        await front.warm()
        async with connect(front) as client:
            yield client, front


def connect(application: ASGIApp, **options: Any) -> httpx.AsyncClient:
    """A client of an ASGI application; errors of the application are raised."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://service", **options)


def run(test: Callable[[httpx.AsyncClient, Front], Awaitable[T]], runtime: Runtime | None = None, **settings: Any) -> T:
    """What a test with a warm service returns."""

    async def main() -> T:
        async with serve(runtime, **settings) as (client, front):
            return await test(client, front)

    return asyncio.run(main())


class Connection:
    """One HTTP request whose body comes, and whose answer is read, piece by piece."""

    def __init__(self, application: ASGIApp, path: str, headers: Mapping[str, str] = NDJSON, query: str = "") -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.taken = 0
        """Messages that the application has received."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        self.task = asyncio.create_task(application(scope, self._receive, self._send))  # type: ignore[arg-type]

    async def _receive(self) -> dict[str, Any]:
        self.taken += 1
        return await self._messages.get()

    async def _send(self, message: dict[str, Any]) -> None:
        await self.sent.put(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.leave()  # servers say that the client is gone after the end of the answer

    def write(self, piece: bytes) -> None:
        """Send a piece of the body."""
        self._messages.put_nowait({"type": "http.request", "body": piece, "more_body": True})

    def write_line(self, record: Any) -> None:
        """Send a line of JSON."""
        self.write(json.dumps(record).encode() + b"\n")

    def end(self) -> None:
        """The body is complete."""
        self._messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    def leave(self) -> None:
        """Close the connection."""
        self._messages.put_nowait({"type": "http.disconnect"})

    async def read_status(self) -> int:
        """The status of the answer."""
        message = await asyncio.wait_for(self.sent.get(), 30)
        assert message["type"] == "http.response.start"
        return int(message["status"])

    async def read_line(self) -> Any:
        """The next line of the answer; None after the last."""
        message = await asyncio.wait_for(self.sent.get(), 30)
        assert message["type"] == "http.response.body"
        return json.loads(message["body"]) if message["body"] else None


class Socket:
    """One WebSocket."""

    def __init__(self, application: ASGIApp, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "path": "/stream",
            "root_path": "",
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "extensions": {"websocket.http.response": {}},
        }
        self._messages.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(application(scope, self._messages.get, self._sent.put))  # type: ignore[arg-type]

    def write(self, text: str) -> None:
        """Send a message."""
        self._messages.put_nowait({"type": "websocket.receive", "text": text})

    def leave(self) -> None:
        """Close the connection."""
        self._messages.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def read(self) -> dict[str, Any]:
        """What the application sends next, as ASGI has it."""
        return await asyncio.wait_for(self._sent.get(), 30)

    async def read_event(self) -> Any:
        """The next message, which is JSON."""
        message = await self.read()
        assert message["type"] == "websocket.send", message
        return json.loads(message["text"])


def count_requests(front: Front) -> int:
    """Requests that the engine has accepted and not finished."""
    return front.service.engine.core.scheduler.unfinished


def count_tokens(front: Front) -> int:
    """The estimated tokens of these requests."""
    return front.service.engine.core.scheduler.unfinished_tokens


async def wait_until(holds: Callable[[], bool]) -> None:
    """Return when a condition holds."""
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.001)
