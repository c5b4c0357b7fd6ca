"""One HTTP request while it is served: its body, its deadline, and whether its client is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from groundwire.engine import Options

from .deadlines import Deadline
from .decoding import decode
from .limits import bound_options
from .problems import Refusal
from .state import Service

T = TypeVar("T")
GONE = "The client has closed the connection."


class Call:
    """A request, with what its handler needs."""

    def __init__(
        self, service: Service, request: Request, request_id: str, deadline: Deadline, log_fields: dict[str, Any]
    ) -> None:
        self.service = service
        self.request = request
        self.request_id = request_id
        self.deadline = deadline
        self.log_fields = log_fields
        """What the line of the log says besides."""

    async def read(self, decoder: msgspec.json.Decoder[T]) -> T:
        """The record in the body; Refusal says what is wrong with it."""
        check_media_type(self.request.headers.get("content-type"), "application/json")
        body = await self.read_bytes()
        if self.service.settings.log_texts:
            self.log_fields["body"] = body.decode("utf-8", "replace")
        return decode(body, decoder)

    async def read_bytes(self) -> bytes:
        """The body, within the limit of bytes and the deadline."""
        limit = self.service.settings.max_body_bytes
        declared = self.request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise _make_too_large(limit)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.deadline.left_ms() / 1000):
                async for part in self.request.stream():
                    size += len(part)
                    if size > limit:
                        raise _make_too_large(limit)
                    parts.append(part)
        except TimeoutError as error:
            raise Refusal("body_timeout", f"The body was not complete within {self.deadline.ms:g} ms.") from error
        except ClientDisconnect as error:
            raise Refusal("client_closed", GONE) from error
        return b"".join(parts)

    def bound_options(self, options: Options) -> Options:
        """The options that the engine gets: with what is left of the deadline, and within the server's limits."""
        deadline = self.deadline.shorten(options.deadline_ms)
        return bound_options(options, self.service.settings, deadline.left_ms())

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]], cost: int) -> T:
        """The result of what ``work`` begins; it is cancelled if the client leaves. Refusal if the server is full."""
        try:
            ticket = self.service.gate.enter(cost)
        except Refusal:
            self.service.monitoring.overloaded.inc()
            raise
        self.log_fields["tokens"] = cost
        with ticket:
            return await run_while_connected(work(), self.request)


async def run_while_connected(work: Coroutine[Any, Any, T], request: Request) -> T:
    """The result of ``work``; Refusal ``client_closed`` if the client leaves first, after ``work`` was cancelled.

    The body must have been read.
    """
    return await run_both(_refuse_when_gone(request), work)


async def run_both(reading: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, when it has one; before, the error that ends ``reading``, which does not end otherwise.

    Whatever is not finished then is cancelled, and has ended when this returns.
    """
    working, listening = asyncio.ensure_future(work), asyncio.ensure_future(reading)
    try:
        await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            listening.result()
        return await working
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)


async def _refuse_when_gone(request: Request) -> None:
    await wait_until_gone(request)
    raise Refusal("client_closed", GONE)


async def wait_until_gone(request: Request) -> None:
    """Return when the client has left. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def check_media_type(given: str | None, allowed: str) -> None:
    """Raise Refusal ``unsupported_media_type`` unless a body says that it is of the allowed type, or says nothing."""
    kind = (given or allowed).partition(";")[0].strip().lower()
    if kind != allowed and not (allowed == "application/json" and kind.endswith("+json")):
        raise Refusal(
            "unsupported_media_type", f"The body is {kind!r:.100}; send {allowed}, and say so in Content-Type."
        )


def make_json(content: Any, status: int = 200, **headers: str) -> Response:
    """A response with a record as JSON."""
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def _make_too_large(limit: int) -> Refusal:
    return Refusal(
        "too_large",
        f"The body has more than {limit} bytes; send less, or start the server with a larger max_body_bytes.",
        headers={"Connection": "close"},
    )
