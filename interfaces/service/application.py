"""The ASGI application over one engine."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.websockets import WebSocket

from groundwire.engine import Engine, InvalidRequest
from groundwire.evidence import EvidencePacket
from groundwire.generation import Generation
from groundwire.guard.records import Event
from groundwire.repair import Correction, Refinement
from groundwire.turns import TurnCheck

from . import decisions, detector, guardrail, inference, lines, page, probes, scoring, streams, turns
from .context import get_context
from .front import Front
from .openapi import EVENTS, WORK, Operation, make_document
from .records import (
    ClassifyBody,
    CorrectBody,
    DecisionAnswers,
    DecisionsBody,
    EvidenceBody,
    GenerateBody,
    GuardrailAnswer,
    GuardrailBody,
    Health,
    InferBody,
    Inference,
    LabelledSpans,
    ListedModels,
    Live,
    ModelMetadata,
    RankBody,
    Ranking,
    Ready,
    RefineBody,
    ScoreAnswer,
    ScoreBody,
    ScoredLine,
    ScoreLine,
    ServerMetadata,
    StreamBody,
    StreamError,
    SystemOneAnswer,
    SystemOneBody,
    TurnBody,
)
from .request import ServiceRequest, make_deadline
from .settings import Settings
from .state import Service

_QUERY = (
    {"name": "metrics", "in": "query", "description": "Names, separated by commas.", "schema": {"type": "string"}},
    {"name": "options", "in": "query", "description": "Options as JSON.", "schema": {"type": "string"}},
)
_MODEL = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "enum": [inference.MODEL]}}
OPERATIONS = (
    Operation("POST", "/score", scoring.score, ScoreBody, ScoreAnswer),
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
    Operation("POST", "/check_turn", turns.check_turn, TurnBody, TurnCheck),
    Operation("POST", "/evidence", scoring.evidence, EvidenceBody, EvidencePacket),
    Operation("POST", "/rank", scoring.rank, RankBody, Ranking),
    Operation("POST", "/correct", scoring.correct, CorrectBody, Correction),
    Operation("POST", "/refine", scoring.refine, RefineBody, Refinement),
    Operation("POST", "/generate", scoring.generate, GenerateBody, Generation),
    Operation(
        "POST",
        "/stream",
        streams.stream,
        StreamBody,
        Event | StreamError,
        lines.MEDIA_TYPE,
        EVENTS,
        (
            "malformed",
            "unauthorized",
            "body_timeout",
            "too_large",
            "unsupported_media_type",
            "invalid",
            "overloaded",
            "not_ready",
            "closed",
            "deadline",
        ),
    ),
    Operation("POST", "/classify", detector.classify, ClassifyBody, LabelledSpans),
    Operation("POST", guardrail.PATH, guardrail.check_guardrail, GuardrailBody, GuardrailAnswer),
    Operation("POST", "/v1/systemone", decisions.answer_system_one, SystemOneBody, SystemOneAnswer),
    Operation("POST", "/v1/decisions", decisions.decide, DecisionsBody, DecisionAnswers),
    Operation("GET", "/v1/models", decisions.list_models, result=ListedModels, problems=("unauthorized",)),
    Operation("GET", "/v2", inference.server_metadata, result=ServerMetadata, problems=("unauthorized",)),
    Operation("GET", "/v2/health/live", inference.live, result=Live, problems=("closed",)),
    Operation("GET", "/v2/health/ready", inference.ready, result=Ready, problems=("not_ready", "closed")),
    Operation(
        "GET",
        "/v2/models/{name}",
        inference.model_metadata,
        result=ModelMetadata,
        problems=("unauthorized", "not_found", "not_ready"),
        parameters=(_MODEL,),
    ),
    Operation(
        "GET",
        "/v2/models/{name}/ready",
        inference.model_ready,
        result=Ready,
        problems=("unauthorized", "not_found", "not_ready", "closed"),
        parameters=(_MODEL,),
    ),
    Operation(
        "POST",
        "/v2/models/{name}/infer",
        inference.infer,
        InferBody,
        Inference,
        problems=("not_found", *WORK),
        parameters=(_MODEL,),
    ),
    Operation("GET", "/healthz", probes.healthz, result=Health, problems=("closed",)),
    Operation("GET", "/readyz", probes.readyz, result=Health, problems=("not_ready", "closed")),
    Operation("GET", "/metrics", probes.metrics, result_type="text/plain", problems=("unauthorized",)),
)


def app(engine: Engine, settings: Settings | None = None) -> Front:
    """Make an ASGI application that serves an engine; mount it in another one, or run it with an ASGI server.

    Models are warmed when the server starts, or with the first request where this application is mounted and gets no
    lifespan events; until then requests are answered with 503.

    Args:
        engine: The engine. It stays the caller's: close it when the server has stopped, and bound its unfinished work
            with
            ``LoadOptions.max_waiting_tokens``.
        settings: The limits, tokens, metrics and ``log_texts`` are used; None takes the defaults.

    Returns:
        The application.

    Raises:
        InvalidRequest: The settings do not fit the engine.
    """
    if not isinstance(engine, Engine):
        raise InvalidRequest(f"engine is {type(engine).__name__}; pass an Engine, as of Engine.load().")
    service = Service(engine, settings or Settings())
    routes: list[BaseRoute] = [make_route(service, operation) for operation in OPERATIONS]

    async def openapi(request: Request) -> Response:
        get_context(request.scope).route = "/openapi.json"
        return Response(encode_document(), media_type="application/json")

    async def serve_socket(socket: WebSocket) -> None:
        await streams.serve_socket(_make_request(service, socket, "/stream"), socket)

    async def show_page(request: Request) -> Response:
        get_context(request.scope).route = "/ui"
        return page.show_page(service, request.url.path.rpartition("/")[2])

    async def show_description(request: Request) -> Response:
        get_context(request.scope).route = page.DESCRIPTION_PATH
        return page.show_description(encode_document(), needs_token=bool(service.tokens))

    async def go_to_page(request: Request) -> Response:
        get_context(request.scope).route = "/"
        return RedirectResponse("ui")

    routes += [Route("/openapi.json", openapi), WebSocketRoute("/stream", serve_socket)]
    if service.settings.ui:
        routes += [
            *(Route(path, show_page) for path in page.PATHS),
            Route(page.DESCRIPTION_PATH, show_description),
            Route("/", go_to_page),
        ]
    return Front(service, Router(routes, redirect_slashes=False))


@cache
def encode_document() -> bytes:
    """The OpenAPI document as JSON."""
    return msgspec.json.encode(make_document(OPERATIONS))


def make_route(service: Service, operation: Operation) -> Route:
    """The route of an operation."""

    async def handle(request: Request) -> Response:
        return await operation.handle(_make_request(service, request, operation.path))

    return Route(operation.path, handle, methods=[operation.method], name=operation.name)


def _make_request(service: Service, http: Any, path: str) -> ServiceRequest:
    context = get_context(http.scope)
    context.route = path
    settings = service.settings
    deadline = make_deadline(
        http.headers, settings.default_deadline_ms, settings.max_deadline_ms, context.arrived, service.now
    )
    return ServiceRequest(service, http, context, deadline)
