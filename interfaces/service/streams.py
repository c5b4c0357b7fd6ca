"""``/stream``: checks a response while it arrives, over a WebSocket or as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from groundwire.engine import GroundwireError
from groundwire.engine.extend import list_turns
from groundwire.guard import FinalEvent, Guard, ResponseStream
from groundwire.guard.chat import CheckedChat
from groundwire.guard.records import Event

from . import logs
from .lines import MEDIA_TYPE as LINES
from .lines import split_lines
from .openapi import EVENTS
from .problems import Refusal, refuse_error
from .records import Delta, StreamBody, StreamError
from .request import CLIENT_LEFT, ServiceRequest, check_media_type, check_texts, decode, run_both, wait_until_gone
from .scoring import MAX_ENTRIES
from .state import Service

FIRST = msgspec.json.Decoder(StreamBody)
NEXT = msgspec.json.Decoder(str | Delta)
WAITING = 16
"""Pieces of text that are read before the one in front of them is checked, at most."""
Pieces: TypeAlias = "asyncio.Queue[str | None]"
"""Pieces of the response, in order; None when it is complete."""
SendEvent: TypeAlias = Callable[[Event | StreamError], Awaitable[None]]
CLOSE = 4000
"""A WebSocket that ends with a problem is closed with this plus the HTTP status."""


async def stream(request: ServiceRequest) -> Response:
    """Stream a response, check it while it arrives, and say which text may leave.

    The body is lines of JSON: first what the response should rest on and the policy, then parts of the response
    ("text", or {"delta": "text"}); the end of the body is the end of the response. The answer is server-sent events
    (`sentence`, `release`, `early_verdict`, `blocked`, `final`, `error`), whose data are the records of that type. Only
    the text of `release` may leave. The same path takes a WebSocket: one message per line, and one per event.
    """
    check_media_type(request.http.headers, LINES)
    settings = request.service.settings
    lines = split_lines(request.http, settings.max_body_bytes, settings.max_idle_ms)
    try:
        async with asyncio.timeout(request.deadline.left_ms() / 1000):
            first = await anext(lines, None)
    except TimeoutError as error:
        raise Refusal("body_timeout", f"The first line was not complete within {request.deadline.ms:g} ms.") from error
    return ServerEvents(request, open_stream(request, decode(first or b"", FIRST)), lines)


def open_stream(request: ServiceRequest, body: StreamBody) -> ResponseStream:
    """The engine's stream for a first line; Refusal if it does not fit, or if the server is full."""
    service, settings = request.service, request.service.settings
    check_texts(settings, (), body.knowledge, body.history, body.triples)
    check_streams(service)
    return Guard(service.engine).open(
        body.knowledge or (),
        history=list_turns(body.history),
        triples=body.triples,
        metrics=service.choose_metrics(body.metrics),
        policy=body.policy.build(settings.max_stream_ms, settings.max_held_words),
        scoring=request.bound_options(body.options),
    )


def check_streams(service: Service) -> None:
    """Raise Refusal ``overloaded`` if as many streams are open as the server allows."""
    if service.open_streams >= service.settings.max_streams:
        raise Refusal(
            "overloaded",
            f"{service.open_streams} streams are open, the most that this server allows. Try again later.",
            headers={"Retry-After": "1"},
        )


@contextmanager
def count_stream(service: Service, opened: ResponseStream | CheckedChat) -> Iterator[None]:
    """Count the stream as open, and close it at the end."""
    service.open_streams += 1
    try:
        with closing(opened):
            yield
    finally:
        service.open_streams -= 1


async def watch(opened: ResponseStream, pieces: Pieces, request_id: str) -> AsyncGenerator[Event, None]:
    """What happens to the parts, the final event included where the policy has ended the stream.

    Raises Refusal for whatever goes wrong: the stream then ends with an event that says so.
    """

    async def take() -> AsyncIterator[str]:
        while (piece := await pieces.get()) is not None:
            yield piece

    try:
        async with aclosing(opened.watch(take())) as events:
            async for event in events:
                yield event
        if opened.score is None:
            await opened.afinish()
            for event in opened.last_events:
                yield event
    except Exception as error:
        raise logs.refuse_logged(error, request_id) from error


async def send_events(
    request: ServiceRequest, opened: ResponseStream, pieces: Pieces, send: SendEvent
) -> Refusal | None:
    """Send what happens, and at the end why the stream has ended, if that was an error, which is returned too."""
    async with aclosing(watch(opened, pieces, request.context.id)) as events:
        try:
            async for event in events:
                if isinstance(event, FinalEvent):
                    event = replace(event, score=event.score.shorten(MAX_ENTRIES))
                await send(event)
                if isinstance(event, FinalEvent):
                    request.service.monitoring.add_score(event.score)
                    request.context.log_fields |= {
                        "verdict": event.score.verdict.label,
                        "score_status": event.score.status,
                    }
        except Refusal as refusal:
            return await send_error(request, refusal, send)
    return None


async def send_error(request: ServiceRequest, refusal: Refusal, send: SendEvent) -> Refusal:
    """Send a refusal as the last event."""
    request.context.log_fields["stream_error"] = refusal.code
    await send(StreamError(refusal.describe(request.context.id)))
    return refusal


def decode_piece(text: bytes | str) -> Delta:
    """A further line of a stream."""
    piece = decode(text, NEXT)
    return Delta(piece) if isinstance(piece, str) else piece


class ServerEvents(Response):
    """The events of a stream, while the lines of the body are read."""

    def __init__(self, request: ServiceRequest, opened: ResponseStream, lines: AsyncIterator[bytes | None]) -> None:
        super().__init__(media_type=EVENTS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._request = request
        self._opened = opened
        self._lines = lines
        self._pieces: Pieces = asyncio.Queue(WAITING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and send until the response is complete and checked, or the client leaves."""

        async def send_event(event: Event | StreamError) -> None:
            data = msgspec.json.encode(event)
            name = event.__struct_config__.tag
            body = f"event: {name}\ndata: ".encode() + data + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        with count_stream(self._request.service, self._opened):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                with self._request.service.readiness.refuse_stop():
                    ended = await run_both(
                        self._read(), send_events(self._request, self._opened, self._pieces, send_event)
                    )
            except Refusal as refusal:
                if refusal.code == "client_closed":
                    raise
                ended = await send_error(self._request, refusal, send_event)
            if ended is not None:
                self._request.context.refusals.append(ended.code)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read(self) -> None:
        """Pass the parts on; then wait for the client to leave, which is a Refusal."""
        async with limit_time(self._request.service.settings.max_stream_ms, "The response"):
            async for line in self._lines:
                if line is None:
                    raise Refusal("too_large", "The line is too long; send smaller pieces.")
                if line.strip():
                    piece = decode_piece(line)
                    await self._pieces.put(piece.delta)
                    if piece.finish:
                        break
        await self._pieces.put(None)
        async for _ in self._lines:  # what follows the end is not looked at
            pass
        await wait_until_gone(self._request.http)
        raise Refusal("client_closed", CLIENT_LEFT)


class limit_time:  # noqa: N801 - used like asyncio.timeout
    """A block that ends with Refusal ``deadline`` after a time, about ``what`` was not complete."""

    def __init__(self, ms: float, what: str) -> None:
        self._ms = ms
        self._what = what
        self._timeout = asyncio.timeout(ms / 1000)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._timeout.__aexit__(*error)
        except TimeoutError as late:
            raise Refusal("deadline", f"{self._what} was not complete within {self._ms:.0f} ms.") from late


async def serve_socket(request: ServiceRequest, socket: WebSocket) -> None:
    """``stream`` over a WebSocket, which is closed with 1000 after the final event."""
    await socket.accept()

    async def send_event(event: Event | StreamError) -> None:
        await socket.send_text(msgspec.json.encode(event).decode())

    ended: Refusal | None = None
    try:
        try:
            settings = request.service.settings
            async with limit_time(request.deadline.left_ms(), "The first message"):
                first = await receive_text(socket)
            opened = open_stream(request, decode(first, FIRST))
            pieces: Pieces = asyncio.Queue(WAITING)
            with count_stream(request.service, opened), request.service.readiness.refuse_stop():
                ended = await run_both(
                    read_socket(socket, pieces, settings.max_idle_ms, settings.max_stream_ms),
                    send_events(request, opened, pieces, send_event),
                )
        except GroundwireError as error:
            raise refuse_error(error) from error
    except Refusal as refusal:
        if refusal.code == "client_closed":
            raise
        ended = await send_error(request, refusal, send_event)
    await socket.close(1000 if ended is None else CLOSE + ended.status, "" if ended is None else ended.code)
    if ended is not None:
        raise ended


async def read_socket(socket: WebSocket, pieces: Pieces, idle_ms: float, max_ms: float) -> None:
    """Pass the parts on; then wait for the client to leave, which is a Refusal."""
    async with limit_time(max_ms, "The response"):
        is_complete = False
        while not is_complete:
            try:
                async with asyncio.timeout(idle_ms / 1000):
                    text = await receive_text(socket)
            except TimeoutError as error:
                raise Refusal("body_timeout", f"Nothing has come for {idle_ms:g} ms; send pieces sooner.") from error
            piece = decode_piece(text)
            await pieces.put(piece.delta)
            is_complete = piece.finish
    await pieces.put(None)
    while True:
        await receive_text(socket)


async def receive_text(socket: WebSocket) -> str:
    """The next message; Refusal ``client_closed`` if the client leaves."""
    try:
        message = await socket.receive()
    except WebSocketDisconnect as error:
        raise Refusal("client_closed", CLIENT_LEFT) from error
    if message["type"] == "websocket.disconnect":
        raise Refusal("client_closed", CLIENT_LEFT)
    text: str | None = message.get("text")
    if text is None:
        raise Refusal("invalid", "The message is binary; send text.")
    return text
