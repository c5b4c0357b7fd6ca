"""The proxy: an ASGI application before a server of chats, which lets only checked answers leave."""

from __future__ import annotations

import httpx
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from groundwire.engine import Engine, InvalidRequest, Options

from . import probes
from .application import make_route
from .chat import Chat
from .front import Front
from .openapi import Operation
from .problems import Refusal
from .settings import ProxySettings
from .state import Service
from .upstream import Upstream


def make_proxy(engine: Engine, settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None) -> Front:
    """Make an ASGI application that asks a server of chats, and checks its answers.

    It has OpenAI's ``/v1/chat/completions`` and ``/v1/responses``, Anthropic's ``/v1/messages``, ``/v1/models``, and
    the paths of the service for health and numbers. Other paths are refused: their answers would not be checked.

    Args:
        engine: The engine, which stays the caller's.
        settings: The upstream, the policy, the limits and the tokens.
        transport: The transport of requests to the upstream; None is the network.

    Returns:
        The application. Models are warmed as for ``app``.

    Raises:
        InvalidRequest: The settings do not fit the engine, or ``upstream`` is not an address.
    """
    if engine.core.calibration is None:
        raise InvalidRequest(
            f"The bundle {settings.bundle} has no calibration, so no answer would have a verdict; pass a calibration."
        )
    engine.plan(settings.metrics or None, Options(profile=settings.profile))
    service = Service(engine, settings)
    upstream = Upstream(settings, transport)
    chat = Chat(upstream, settings)
    operations = (
        Operation("POST", "/v1/chat/completions", chat.complete),
        Operation("POST", "/v1/responses", chat.respond),
        Operation("POST", "/v1/messages", chat.write_message),
        Operation("GET", "/v1/models", chat.list_models),
        Operation("GET", "/healthz", probes.healthz),
        Operation("GET", "/readyz", probes.readyz),
        Operation("GET", "/metrics", probes.metrics),
    )
    routes = [make_route(service, operation) for operation in operations]
    return Front(service, Router(routes, redirect_slashes=False, default=refuse), upstream.close)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Say which paths there are."""
    raise Refusal(
        "not_found",
        f"The proxy has no {scope['path']!r:.100}: it answers /v1/chat/completions, /v1/responses, /v1/messages and "
        "/v1/models, and would let answers of other paths leave unchecked.",
    )
