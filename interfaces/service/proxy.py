"""The proxy: an ASGI application before a server of OpenAI's chat protocol, which lets only checked answers leave."""

from __future__ import annotations

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router

from groundwire.engine import Engine, InvalidRequest

from . import health
from .application import make_route
from .chat import Chat
from .front import Front
from .openapi import Operation
from .problems import Refusal
from .settings import ProxySettings
from .state import Service
from .upstream import Upstream

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def make_proxy(engine: Engine, settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None) -> Front:
    """Make an ASGI application that asks a server of OpenAI's chat protocol, and checks its answers.

    It has ``/v1/chat/completions`` and ``/v1/models``, and the paths of the service for health and numbers. Other paths
    are refused: their answers would not be checked.

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
    service = Service(engine, settings)
    upstream = Upstream(settings, transport)
    chat = Chat(upstream, settings)
    operations = (
        Operation("POST", "/v1/chat/completions", chat.complete),
        Operation("GET", "/v1/models", chat.list_models),
        Operation("GET", "/healthz", health.healthz),
        Operation("GET", "/readyz", health.readyz),
        Operation("GET", "/metrics", health.metrics),
    )
    routes: list[BaseRoute] = [make_route(service, operation) for operation in operations]
    routes.append(Route("/{path:path}", refuse, methods=METHODS))
    return Front(service, Router(routes, redirect_slashes=False), upstream.close)


async def refuse(request: Request) -> Response:
    """Say which paths there are."""
    raise Refusal(
        "not_found",
        f"The proxy has no {request.method} {request.url.path!r:.100}: it answers /v1/chat/completions and /v1/models, "
        "and would let answers of other paths leave unchecked.",
    )
