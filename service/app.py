"""The ASGI application over one engine."""

from __future__ import annotations

from functools import cache

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from groundwire.engine import Engine, Generation, InvalidRequest, Refinement, Score

from . import health, lines, scoring
from .call import Call
from .deadlines import make_deadline
from .front import Front
from .openapi import make_document
from .operations import Operation
from .records import GenerateBody, Health, RankBody, Ranking, RefineBody, ScoreBody, ScoredLine, ScoreLine
from .settings import Settings
from .state import Service

_QUERY = (
    {"name": "metrics", "in": "query", "description": "Names, separated by commas.", "schema": {"type": "string"}},
    {"name": "options", "in": "query", "description": "Options as JSON.", "schema": {"type": "string"}},
)
OPERATIONS = (
    Operation("POST", "/score", scoring.score, ScoreBody, Score),
    Operation(
        "POST",
        "/score_many",
        lines.score_many,
        ScoreLine,
        ScoredLine,
        lines.MEDIA_TYPE,
        lines.MEDIA_TYPE,
        ("unauthorized", "unsupported_media_type", "invalid", "not_ready", "deadline"),
        _QUERY,
    ),
    Operation("POST", "/rank", scoring.rank, RankBody, Ranking),
    Operation("POST", "/refine", scoring.refine, RefineBody, Refinement),
    Operation("POST", "/generate", scoring.generate, GenerateBody, Generation),
    Operation("GET", "/healthz", health.healthz, result=Health, problems=("closed",)),
    Operation("GET", "/readyz", health.readyz, result=Health, problems=("not_ready", "closed")),
    Operation("GET", "/metrics", health.metrics, result_type="text/plain", problems=("unauthorized",)),
)


def app(engine: Engine, settings: Settings | None = None) -> Front:
    """An ASGI application that serves an engine; mount it in another one, or run it with an ASGI server.

    The engine stays the caller's: close it when the server has stopped. Models are warmed when the server starts, or
    with the first request where this application is mounted and gets no lifespan events; until then requests are
    answered with 503. Of ``settings`` the limits, tokens, metrics and ``log_texts`` are used. Raises InvalidRequest for
    settings that do not fit the engine.
    """
    if not isinstance(engine, Engine):
        raise InvalidRequest(f"engine is {type(engine).__name__}; pass an Engine, as of Engine.load().")
    service = Service(engine, settings or Settings())
    routes = [_make_route(service, operation) for operation in OPERATIONS]

    async def openapi(request: Request) -> Response:
        return Response(encode_document(), media_type="application/json")

    routes.append(Route("/openapi.json", openapi))
    return Front(service, Router(routes, redirect_slashes=False))


@cache
def encode_document() -> bytes:
    """The OpenAPI document as JSON."""
    return msgspec.json.encode(make_document(OPERATIONS))


def _make_route(service: Service, operation: Operation) -> Route:
    async def handle(request: Request) -> Response:
        known = request.scope["groundwire"]
        known["route"] = operation.path
        settings = service.settings
        deadline = make_deadline(
            request.headers, settings.default_deadline_ms, settings.max_deadline_ms, known["arrived"], service.now
        )
        call = Call(service, request, known["id"], deadline)
        call.log_fields = known["log"]
        return await operation.handle(call)

    return Route(operation.path, handle, methods=[operation.method], name=operation.name)
