"""Bounds what one connection costs the server: how long it may be idle, how much and how fast it sends, and how many
connections are open. A connection speaks HTTP, and perhaps WebSocket after that."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from . import logs
from .monitoring import Monitoring
from .settings import Settings

CHECK_SECONDS = 1.0
"""Time between two checks of a connection; each gives it a new budget."""
CHUNKS_PER_CHECK = 4_096
"""Parts of a body, as chunks, that a connection may send between two checks. More wait for the next one."""
BYTES_PER_CHECK = 1 << 26
"""Bytes that a connection may send between two checks. More wait for the next one."""
PARSED_AT_ONCE = 1 << 14
"""Bytes that are parsed before the budget is looked at again."""
SOCKET_CHECK_SECONDS = 0.1
"""Time after which a WebSocket has a new budget: many small ones, as all that it sends is parsed on the event loop."""
FRAMES_PER_CHECK = 50
"""Frames of a WebSocket, pings and parts of messages among them, in this time. More wait for the next one."""
SOCKET_BYTES_PER_CHECK = 1 << 20
"""Bytes of a WebSocket in this time. More wait for the next one."""
SOCKET_PARSED_AT_ONCE = 1 << 8
"""Bytes of a WebSocket, some forty frames at most, that are parsed before the budget is looked at again."""
MAX_HEADER_BYTES = 1 << 16
"""Bytes without a part of a body among them: headers, trailers, and what belongs to a chunk but is not in it."""
PROBE_SECONDS = 0.1
"""Time between two looks at a client that has ended its sending."""
LAST_REQUEST_SECONDS = 1.0
"""Time after the start of a stop in which a connection without a request may send one."""
RESERVED_DESCRIPTORS = 128
"""File descriptors that are not for connections."""
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Connections:
    """What the connections of one server share: their limits, and which of them wait for a request."""

    def __init__(self, settings: Settings, monitoring: Monitoring) -> None:
        self.max_headers_seconds = settings.max_headers_ms / 1000
        self.max_idle_seconds = settings.max_idle_ms / 1000
        self.max_open = max(1, min(settings.max_connections, count_descriptors() - RESERVED_DESCRIPTORS))
        self.waiting: dict[Connection, None] = {}
        """Connections without a request whose headers are complete, in the order in which they began to wait."""
        self._monitoring = monitoring
        monitoring.max_descriptors.set(count_descriptors())

    def note_open(self, change: int) -> None:
        """Count connections that have come, or gone."""
        self._monitoring.open_connections.inc(change)

    def make_room(self, open_connections: int) -> bool:
        """Close the connection that has waited for the longest time if there are too many; False if none waits."""
        if open_connections <= self.max_open:
            return True
        if not self.waiting:
            return False
        next(iter(self.waiting)).end("displaced")
        return True

    def note_end(self, reason: str, client: tuple[str, int] | None = None) -> None:
        """Count a connection of a client that the server has closed, and log it, seldom."""
        self._monitoring.connections_closed.labels(reason).inc()
        peer = {} if client is None else {"peer": client[0]}
        logs.connections.warning("connection closed", extra={logs.FIELDS: {"reason": reason, **peer}})


def count_descriptors() -> int:
    """Return how many file descriptors this process may have; a large number where nothing limits them."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


class ReadFlow(FlowControl):
    """Reads on when neither the application nor the budget of the connection holds that up."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._is_held = False
        self._is_throttled = False

    def pause_reading(self) -> None:
        """Hold up, for the application."""
        self._is_held = True
        super().pause_reading()

    def resume_reading(self) -> None:
        """Read on, as far as the application is concerned."""
        self._is_held = False
        self._update()

    def throttle(self, is_throttled: bool) -> None:
        """Hold up, or read on, for the budget."""
        self._is_throttled = is_throttled
        self._update()

    def _update(self) -> None:
        if self._is_held or self._is_throttled:
            super().pause_reading()
        else:
            super().resume_reading()


class UnreadBytes:
    """Since when a client has taken nothing of what was written for it."""

    def __init__(self, now: float) -> None:
        self._size = 0
        self._since = now

    def wait_seconds(self, size: int, now: float) -> float:
        """Return for how long no byte has left, from the bytes that are not written at ``now``."""
        if not size or size < self._size:
            self._since = now
        self._size = size
        return now - self._since


class Connection(HttpToolsProtocol):
    """One HTTP connection of a server, within the limits of ``Connections``."""

    def __init__(self, connections: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._shared = connections
        self._timer: asyncio.TimerHandle | None = None
        self._waits_since = self.loop.time()
        self._unread = UnreadBytes(self._waits_since)
        self._unparsed = b""
        self._chunks = self._bytes = self._bytes_between = 0
        self._is_half_closed = self._is_stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, in place of another one if there are too many."""
        super().connection_made(transport)
        self._shared.note_open(1)
        self.flow = ReadFlow(transport)
        self._timer = self.loop.call_later(CHECK_SECONDS, self._check)
        if self._shared.make_room(len(self.connections)):
            self._shared.waiting[self] = None
        else:
            transport.write(TOO_MANY)
            self.end("refused")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._shared.note_open(-1)
        self._forget()
        super().connection_lost(exc)

    def _forget(self) -> None:
        self._shared.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def end(self, reason: str) -> None:
        """Close the connection for a reason that is counted."""
        self._shared.waiting.pop(self, None)
        self._shared.note_end(reason, self.client)
        self.transport.close()

    def _check(self) -> None:
        """Close a connection whose client is too slow; else give it a new budget."""
        self._timer = self.loop.call_later(CHECK_SECONDS, self._check)
        now = self.loop.time()
        if self._unread.wait_seconds(self.transport.get_write_buffer_size(), now) >= self._shared.max_idle_seconds:
            self._shared.note_end("not read", self.client)
            self.transport.abort()
        elif self in self._shared.waiting and now - self._waits_since >= self._shared.max_headers_seconds:
            self.end("no request")
        elif not self.transport.is_closing():
            self._chunks = self._bytes = 0
            self._parse(self._unparsed)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, as far as the budget goes."""
        self._parse(self._unparsed + data)

    def _parse(self, data: bytes) -> None:
        start = 0
        while start < len(data) and self._chunks < CHUNKS_PER_CHECK and self._bytes < BYTES_PER_CHECK:
            part = data[start : start + PARSED_AT_ONCE]
            start += len(part)
            self._bytes += len(part)
            self._bytes_between += len(part)
            super().data_received(part)
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return
            if self._bytes_between > MAX_HEADER_BYTES:
                self.send_400_response("The headers of the request are too long.")
                return
        self._unparsed = data[start:]
        self.flow.throttle(bool(self._unparsed))  # type: ignore[attr-defined]

    def on_headers_complete(self) -> None:
        """Begin with a request, unless its headers, which came at once, are too long."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            raise ValueError("The headers of the request are too long.")  # the parser stops, and the answer is 400
        self._shared.waiting.pop(self, None)
        self._bytes_between = 0
        super().on_headers_complete()
        if self._is_stopping and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Pass a part of a body on."""
        self._chunks += 1
        self._bytes_between = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has come as a whole."""
        self._bytes_between = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, if this one was read to its end; what follows an answer is not read."""
        if not self.pipeline:
            self._waits_since = self.loop.time()
            if self.cycle.more_body:
                self.transport.close()
            elif not self.transport.is_closing():
                self._shared.waiting[self] = None
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to ``Socket``."""
        self._forget()
        super().handle_websocket_upgrade()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a client that has ended its sending after a complete request.

        A program that has closed the connection ends it in the same way. Its system answers whatever is sent to it
        with a reset, and so the client gets an interim response.
        """
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        if not self._is_half_closed:
            self._is_half_closed = True
            # An interim response may not come within an answer, nor before the answers to earlier requests.
            is_begun = bool(self.pipeline) or self.cycle.response_started
            if not is_begun and self.cycle.scope["http_version"] != "1.0":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._look_for_reset()
        return True

    def _look_for_reset(self) -> None:
        if self.transport.is_closing():
            return
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        else:
            self.loop.call_later(PROBE_SECONDS, self._look_for_reset)

    def shutdown(self) -> None:
        """Finish what has begun, and answer one more request if it comes at once: it may be on its way."""
        self._is_stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LAST_REQUEST_SECONDS, super().shutdown)
        else:
            super().shutdown()


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket of a server, within the limits of ``Connections``."""

    def __init__(self, connections: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._shared = connections
        self._timer: asyncio.TimerHandle | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._unread = UnreadBytes(self.loop.time())
        self._unparsed = b""
        self._frames = self._bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(CHECK_SECONDS, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._shared.note_open(-1)  # it was counted when it came
        for timer in (self._timer, self._renewal):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Close the connection of a client that does not read, which gets an answer to each ping."""
        self._timer = self.loop.call_later(CHECK_SECONDS, self._check)
        unread = self.transport.get_write_buffer_size()
        if self._unread.wait_seconds(unread, self.loop.time()) >= self._shared.max_idle_seconds:
            self._shared.note_end("not read", self.client)
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, as far as the budget goes, and as far as the application takes the messages."""
        self._unparsed += data
        self._parse()

    async def receive(self) -> Any:
        """Take the next message for the application."""
        message = await super().receive()
        self._parse()
        return message

    def _parse(self) -> None:
        data, start = self._unparsed, 0
        if data and self._renewal is None:
            self._renewal = self.loop.call_later(SOCKET_CHECK_SECONDS, self._renew)
        while start < len(data) and self._frames < FRAMES_PER_CHECK and self._bytes < SOCKET_BYTES_PER_CHECK:
            if self.read_paused or self.transport.is_closing():
                break
            part = data[start : start + SOCKET_PARSED_AT_ONCE]
            start += len(part)
            self._bytes += len(part)
            super().data_received(part)
        self._unparsed = data[start:]
        if self._unparsed:
            self.transport.pause_reading()
        elif not self.read_paused:
            self.transport.resume_reading()

    def _renew(self) -> None:
        """Give the connection a new budget."""
        self._renewal = None
        self._frames = self._bytes = 0
        self._parse()

    def handle_events(self) -> None:
        """Count the frames that were parsed, and handle them."""
        self._frames += len(self.conn.events)
        super().handle_events()

    def shutdown(self) -> None:
        """Let a stream that has begun go on: it is finished, or the end of the time for that ends it."""
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
