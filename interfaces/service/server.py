"""Runs the application with uvicorn, and checks beforehand what it would serve."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from prometheus_client import disable_created_metrics

from groundwire.engine import Engine, InvalidRequest, LoadOptions
from groundwire.engine.extend import make_plan
from groundwire.runtime.local import describe
from groundwire.runtime.resources import freeze_objects
from groundwire.runtime.version import VERSION

from . import logs
from .application import app
from .connections import Connection, Connections, Socket
from .front import Front
from .settings import S, Settings, list_warnings, read_tokens

BACKLOG = 2048
"""Connections that wait to be accepted."""
ACCEPTED_AT_ONCE = 16
"""Connections that are accepted before the limits look at them; asyncio takes this for the backlog too."""


HANDSHAKE_SECONDS = 0.1
"""Time in which clients complete the connections that they have begun, before a stop."""
ACCEPT_SECONDS = 2.0
"""Time in which they are accepted, at most."""
SETTLE_SECONDS = 0.05
"""Time in which accepted connections come to their protocol."""
SWITCH_SECONDS = 0.001
"""Time after which a thread with work gives the event loop its turn, in place of Python's 0.005."""
LAST_WORDS_SECONDS = 0.8
"""Time for the last event of streams that are not finished when the server stops."""
SO_ATTACH_FILTER = 26
"""Of Linux: sets a program that decides about each packet to a socket."""


class DrainingServer(uvicorn.Server):
    """A server that first says that it is not ready, then stops taking connections, and finishes what it has begun.

    A second signal ends the delay, a third one the requests.
    """

    def __init__(self, config: uvicorn.Config, front: Front, delay_seconds: float) -> None:
        super().__init__(config)
        self._front = front
        self._delay_seconds = delay_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections, with a backlog of our own."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the connections that clients have made, no further ones, and finish."""
        for listener in sockets or ():
            refuse_handshakes(listener)
        await asyncio.sleep(HANDSHAKE_SECONDS)
        await accept_waiting(sockets or ())
        await super().shutdown(sockets)
        if tasks := self.server_state.tasks:  # those that the end of the time has cancelled say so to their clients
            await asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop, on SIGTERM and SIGINT."""
        readiness = self._front.service.readiness
        is_first, readiness.is_draining = not readiness.is_draining, True
        if is_first:
            logs.write(logging.INFO, "draining", delay_ms=self._delay_seconds * 1000)
        if not (is_first and self._delay_seconds):
            self.force_exit = self.should_exit
            super().handle_exit(sig, frame)
            return
        self._captured_signals.append(sig)
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(loop.call_later, self._delay_seconds, setattr, self, "should_exit", True)


def refuse_handshakes(listener: socket.socket) -> None:
    """Let Linux drop the packets that begin a connection, so that a client is refused when it tries again, not reset.

    Elsewhere, and where the kernel does not take the filter, a connection that is made in the moment in which the
    listener is closed may be reset.
    """
    if sys.platform != "linux":
        return
    flags_at, syn, syn_or_ack = 13, 0x02, 0x12
    program = (
        (0x30, 0, 0, flags_at),  # load a byte of the TCP header
        (0x54, 0, 0, syn_or_ack),  # keep these bits of it
        (0x15, 0, 1, syn),  # skip the next instruction unless SYN alone is set
        (0x06, 0, 0, 0),  # drop the packet
        (0x06, 0, 0, 0xFFFFFFFF),  # take all of it
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    with suppress(OSError):
        listener.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code))
        )


async def accept_waiting(listeners: Sequence[socket.socket]) -> None:
    """Return when the event loop has accepted what waits at the listeners, or after ``ACCEPT_SECONDS``."""
    loop = asyncio.get_running_loop()
    end = loop.time() + ACCEPT_SECONDS
    with selectors.DefaultSelector() as waiting:
        for listener in listeners:
            waiting.register(listener, selectors.EVENT_READ)
        while loop.time() < end and waiting.select(0):
            await asyncio.sleep(0)
    await asyncio.sleep(SETTLE_SECONDS)


def load_engine(settings: Settings) -> Engine:
    """The engine that the settings describe; raises what ``Engine.load`` raises."""
    return Engine.load(
        settings.bundle,
        settings.device,
        threads=settings.threads,
        extra=settings.extra,
        processes=max(1, settings.workers),
        options=make_load_options(settings),
    )


def make_load_options(settings: Settings) -> LoadOptions:
    """The options of the engine; raises InvalidRequest for a calibration that cannot be read."""
    return LoadOptions(
        calibration=settings.calibration,
        max_waiting_tokens=settings.max_waiting_tokens,
        tenant_weights=settings.tenant_weights,
        separate=settings.workers > 0,
    )


def check_service(settings: Settings) -> str:
    """Say what a server with these settings would serve, in one sentence, without loading a model.

    Files of bundles are read, and compared with their digests; ports are not opened.

    Raises:
        InvalidRequest: A setting, a token, a metric or the calibration is not usable.
        BundleError: A bundle is missing or damaged.
        DeviceError: The device cannot be used.
    """
    tokens = len(read_tokens(settings))
    roles, identity, calibration = describe(settings.bundle, settings.device, settings.extra)
    calibration = make_load_options(settings).loaded_calibration or calibration
    try:
        metrics = ", ".join(make_plan(roles, identity, calibration, settings.metrics or None).names)
    except InvalidRequest:
        if settings.metrics:
            raise
        metrics = "none"  # a bundle that repairs or generates, and scores nothing
    return (
        f"The settings are usable: bundle {identity.bundle} {identity.digest} on {identity.device}, metrics {metrics}, "
        f"{settings.workers} worker{'s' * (settings.workers != 1)}, "
        f"{tokens or 'no'} token{'s' * (tokens != 1)}."
    )


def listen(settings: Settings) -> socket.socket:
    """A socket at the address of the settings; InvalidRequest says why there is none."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise InvalidRequest(
            f"host is {settings.host!r} and port {settings.port}: {error.strerror}. Choose others, or stop the program "
            "that listens there."
        ) from error
    listener.listen(BACKLOG)
    return listener


def run(
    settings: S,
    on_listening: Callable[[str], object] | None = None,
    make: Callable[[Engine, S], Front] = app,
) -> int:
    """Serve until a signal ends it; the exit code is 0 after a clean stop.

    ``on_listening`` is called with the address once the server takes connections; ``make`` makes the application.

    The port is opened before the engine is loaded, so that an address in use is said at once. Raises InvalidRequest,
    BundleError or DeviceError for settings that do not work.
    """
    logs.configure(settings.log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    for warning in list_warnings(settings, os.environ):
        logs.write(logging.WARNING, "warning", detail=warning)
    disable_created_metrics()  # type: ignore[no-untyped-call]
    bundles = "+".join(map(str, (settings.bundle, *settings.extra)))
    logs.write(logging.INFO, "loading", version=VERSION, bundle=bundles, workers=settings.workers)
    with listen(settings) as listener, exit_on_sigterm(), load_engine(settings) as engine:
        front = make(engine, settings)
        freeze_objects()
        connections = Connections(settings, front.service.monitoring)
        config = uvicorn.Config(
            front,
            http=cast("type[asyncio.Protocol]", partial(Connection, connections)),
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="on",
            backlog=ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=max(1, round(settings.drain_timeout_ms / 1000)),
            ws=cast("type[asyncio.Protocol]", partial(Socket, connections)),
            ws_max_size=settings.max_body_bytes,
            ws_per_message_deflate=False,
        )
        server = DrainingServer(config, front, settings.drain_delay_ms / 1000)
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        identity = engine.core.runtime.identity
        with stop_on_signals(server):
            drain_on_hangup(server)
            logs.write(
                logging.INFO,
                "listening",
                url=url,
                version=VERSION,
                bundle=identity.bundle,
                digest=identity.digest,
                device=identity.device,
                workers=settings.workers,
                tokens=bool(front.service.tokens),
            )
            if on_listening is not None:
                on_listening(url)
            server.run(sockets=[listener])
    logs.write(logging.INFO, "stopped")
    return 0


def drain_on_hangup(server: DrainingServer) -> None:
    """Let the end of its terminal (SIGHUP) stop a server as SIGTERM does, unless it is ignored, as by ``nohup``."""
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda _, frame: server.handle_exit(signal.SIGTERM, frame))


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the process while models load: the first process of a container has no default for it."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stop_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let a signal end the server before uvicorn handles signals; it raises them again when it has stopped."""

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
