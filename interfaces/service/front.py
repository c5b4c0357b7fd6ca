"""What happens to every request before and after its handler, and to every error."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route, Router, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from . import logs, page
from .context import OTHER, RequestContext, get_context
from .problems import MEDIA_TYPE, Code, Refusal, describe_error
from .state import Service
from .usage import watch_loop

ID_HEADER = "X-Request-Id"
UNREAD_SECONDS = 0.5
"""Time in which the rest of a body is read and dropped after its answer, so that the client can read the answer."""
_ID = re.compile(r"[\x21-\x7e]{1,128}")
TOKENLESS = frozenset(
    {"/healthz", "/readyz", "/v2/health/live", "/v2/health/ready", page.DESCRIPTION_PATH, *page.PATHS}
)
"""Paths that need no token."""
COLD = TOKENLESS | {"/metrics", "/openapi.json", "/v2"}
"""Paths that are answered while models are being warmed."""
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="groundwire"'}
_CODES: dict[int, Code] = {404: "not_found", 405: "method_not_allowed"}


class Authorizer:
    """Lets requests with one of the tokens in, or all requests without any tokens."""

    def __init__(self, tokens: Iterable[str], tenants: Mapping[str, str] = MappingProxyType({})) -> None:
        """``tenants`` has a tenant for each of the ``tokens`` that names one."""
        self._digests = tuple(_digest(token) for token in tokens)
        self._tenants = {_digest(token): tenant for token, tenant in tenants.items()}

    def check(self, header: str | None) -> str:
        """Return the tenant of a request, empty where its token names none.

        Raises Refusal ``unauthorized`` unless the value of the header ``Authorization`` has one of the tokens.

        Digests of equal length are compared, all of them, so that the time says nothing about any token.
        """
        if not self._digests:
            return ""
        scheme, _, token = (header or "").partition(" ")
        token_digest = _digest(token.strip())
        matches = [hmac.compare_digest(token_digest, digest) for digest in self._digests]
        if scheme.lower() != "bearer" or not any(matches):
            what = "no bearer token" if scheme.lower() != "bearer" else "a bearer token that is not known"
            raise Refusal(
                "unauthorized", f"The request has {what}; send Authorization: Bearer TOKEN.", headers=_CHALLENGE
            )
        return self._tenants.get(token_digest, "")


def _find_token(headers: Headers) -> str | None:
    """The header ``Authorization``; else what Anthropic's clients send in its place."""
    key = headers.get("x-api-key")
    return headers.get("authorization") or (None if key is None else f"Bearer {key}")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Body:
    """The body of one request: whether it was read to its end."""

    def __init__(self, headers: Headers, receive: Receive) -> None:
        self._receive = receive
        self.is_complete = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers

    async def receive(self) -> Message:
        """Receive the next message, as ASGI has it."""
        message = await self._receive()
        self.is_complete = self.is_complete or not message.get("more_body", False)
        return message

    async def discard(self) -> None:
        """Read the rest and drop it, for ``UNREAD_SECONDS``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_SECONDS):
                while not self.is_complete:
                    await self.receive()


class Front:
    """Gives requests an id, checks their tokens, turns errors into problems, and counts and logs the answers."""

    def __init__(self, service: Service, router: Router, close: Callable[[], Awaitable[None]] | None = None) -> None:
        """``close`` is called when the server has stopped."""
        self._service = service
        self._router = router
        self._close = close
        self._authorizer = Authorizer(service.tokens, service.tenants)

    @property
    def service(self) -> Service:
        """What the requests share."""
        return self._service

    async def warm(self) -> None:
        """Return when the models are warm: for the start of a program that mounts this application."""
        await self._service.readiness.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers = Headers(scope=scope)
        context = RequestContext(choose_id(headers.get(ID_HEADER.lower())), self._service.now())
        with logs.trace_request(scope.get("method", "WEBSOCKET"), headers, context):
            await self._serve({**scope, "app": self, "groundwire": context}, headers, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Begin to warm the engine at startup. It stays open at shutdown: it belongs to whoever loaded it."""
        watching = asyncio.create_task(watch_loop(self._service.monitoring))
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._service.readiness.begin()
                await send({"type": "lifespan.startup.complete"})
            else:
                watching.cancel()
                await self._service.readiness.stop()
                if self._close is not None:
                    await self._close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        service, context, path = self._service, get_context(scope), route_path(scope)
        request_id = context.id
        # "app" lets the router raise errors; the handlers of a program that mounts this one are not for them.
        scope.pop("starlette.exception_handlers", None)
        status: int | None = None
        body = Body(headers, receive)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                answer = MutableHeaders(raw=message.setdefault("headers", []))
                answer[ID_HEADER] = request_id
                if status >= HTTPStatus.BAD_REQUEST and not body.is_complete:
                    answer["Connection"] = "close"
            elif message["type"] == "http.response.body" and not (message.get("more_body") or body.is_complete):
                await send({**message, "more_body": True})
                await body.discard()
                message = {"type": "http.response.body"}
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        refusal: Refusal | None = None
        try:
            if path not in TOKENLESS:
                context.tenant = self._authorizer.check(_find_token(headers))
            if path not in COLD:
                service.readiness.begin()
                service.readiness.check_computes()
            with service.readiness.refuse_stop():
                await self._router(scope, body.receive, send_with_id)
        except HTTPException as error:
            refusal = Refusal(_CODES.get(error.status_code, "malformed"), error.detail, headers=error.headers or {})
        except Exception as error:
            refusal = logs.refuse_logged(error, request_id)
        finally:
            if refusal is not None and refusal.code == "failed":
                refusal = service.readiness.find_refusal() or refusal  # its processes have ended one after the other
            if refusal is not None and status is None and refusal.code != "client_closed":
                await respond_with_problem(refusal, request_id, scope, body.receive, send_with_id)
            if refusal is not None:
                if context.route == OTHER:  # it came before the handler, which names its route
                    context.route = self._find_route(scope)
                context.status = refusal.status
                context.refusals.append(refusal.code)
            elif status is not None:
                context.status = status
            else:
                context.refusals.append("client_closed")
            self._note(scope, path, context, refusal)

    def _find_route(self, scope: Scope) -> str:
        """The path of the operation that a request is for, whatever its method."""
        for route in self._router.routes:
            if isinstance(route, Route | WebSocketRoute) and route.matches(scope)[0] is not Match.NONE:
                return route.path
        return OTHER

    def _note(self, scope: Scope, path: str, context: RequestContext, refusal: Refusal | None) -> None:
        """Count the request and its refusals, and log it in one line."""
        monitoring = self._service.monitoring
        seconds, client = self._service.now() - context.arrived, scope.get("client")
        monitoring.requests.labels(context.route, context.status).inc()
        monitoring.request_seconds.labels(context.route).observe(seconds)
        for code in context.refusals:
            monitoring.refusals.labels(context.route, code).inc()
        logs.write(
            logging.DEBUG if path in COLD else logging.INFO,
            "request",
            request_id=context.id,
            trace_id=logs.find_trace_id(),
            method=scope.get("method", "WEBSOCKET"),
            route=context.route,
            status=context.status,
            code=None if refusal is None else refusal.code,
            detail=refusal.detail if refusal is not None and refusal.code == "failed" else None,
            tenant=context.tenant or None,
            peer=client[0] if refusal is not None and client else None,
            ms=round(seconds * 1000, 3),
            **context.log_fields,
        )


def choose_id(request_id: str | None) -> str:
    """The id that a request brings along, if it is 1–128 visible ASCII characters; else a new one."""
    return request_id if request_id is not None and _ID.fullmatch(request_id) else secrets.token_hex(16)


def route_path(scope: MutableMapping[str, Any]) -> str:
    """The path within this application, wherever another one has mounted it."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


async def respond_with_problem(refusal: Refusal, request_id: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a refusal; to a WebSocket that was not accepted as a response to its handshake."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.code})
        return
    problem, path = refusal.describe(request_id), route_path(scope)
    content = msgspec.json.encode(problem)
    if path.startswith("/v2/"):  # the Open Inference Protocol's own form is an object with ``error``
        content = msgspec.json.encode({"error": refusal.detail, **msgspec.to_builtins(problem)})
    elif path.startswith("/v1/"):  # as in OpenAI's and Anthropic's protocols
        content = msgspec.json.encode(describe_error(problem))
    await Response(content, refusal.status, refusal.headers, MEDIA_TYPE)(scope, receive, send)
