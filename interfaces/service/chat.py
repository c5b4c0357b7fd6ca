"""``/v1/chat/completions`` of the proxy: what the upstream answers, checked before any of it leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from groundwire.engine import GroundwireError, InvalidRequest, Options
from groundwire.guard import Correct, Guard, Policy, ResponseStream
from groundwire.guard.chat import (
    FIELD,
    ChatOptions,
    CheckedChat,
    add_citing,
    read_history,
    read_knowledge,
)
from groundwire.guard.steps import Steps, arun

from . import logs
from .problems import Refusal, describe_error, refuse_error
from .records import JsonObject
from .request import ServiceRequest, check_texts, decode, refuse_when_gone, run_both, translate_paths
from .settings import ProxySettings
from .streams import check_streams, count_stream, limit_time
from .upstream import END, EVENTS, Upstream, UpstreamAnswer, decode_answer

MAX_CHOICES = 64
"""Choices of a request (``n``), at most."""
ACTIONS: Mapping[str, Mapping[str, Any]] = {
    "block": {},
    "annotate": {"inconsistent": "flag", "unknown": "flag"},
    "redact": {"inconsistent": "redact"},
    "correct": {"inconsistent": Correct()},
}
"""The actions of each policy of the settings, as far as they differ from ``Policy()``."""
UNSURE: Mapping[str, Any] = {
    "label": None,
    "block": "block",
    "annotate": "flag",
    "redact": "redact",
    "correct": Correct(),
}
"""``Policy.unsure`` of each value of the settings."""


class ChatBody(msgspec.Struct, frozen=True):
    """What the proxy reads of a request; the upstream reads the rest."""

    messages: tuple[JsonObject, ...]
    stream: bool | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)] | None = None
    groundwire: ChatOptions | None = None


_PATHS = {"$.knowledge": "$.messages", "$.history": "$.messages"}
BODY = msgspec.json.Decoder(ChatBody)


class Chat:
    """Passes requests on, and checks the answers."""

    def __init__(self, upstream: Upstream, settings: ProxySettings) -> None:
        self._upstream = upstream
        self._settings = settings
        self._policy = Policy(
            **ACTIONS[settings.policy],
            unsure=UNSURE[settings.unsure],
            max_held_words=min(Policy().max_held_words, settings.max_held_words),
            deadline_ms=settings.max_stream_ms,
        )

    async def list_models(self, request: ServiceRequest) -> Response:
        """List the upstream's models."""
        async with limit_time(self._settings.max_stream_ms, "The upstream's answer"):
            answer = await request.wait_for(self._ask(request, "GET", "models"))
            try:
                return make_response(answer, await request.wait_for(answer.read()))
            finally:
                await answer.close()

    async def complete(self, request: ServiceRequest) -> Response:
        """Answer a chat with what the upstream answers, checked.

        The text of a choice is what the policy lets leave, `finish_reason` is `content_filter` where that is not all,
        and `groundwire` has the verdict; in a stream it is in the last chunk of the choice. An error of the upstream
        is passed back as it is.
        """
        content = await request.read_json()
        body, forwarded = decode(content, BODY), msgspec.json.decode(content)
        check_streams(request.service)
        is_given = body.groundwire is not None and body.groundwire.knowledge is not None
        with translate_paths(_PATHS | {"$.knowledge": f"$.{FIELD}.knowledge"} if is_given else _PATHS):
            checked = self._open(request, forwarded, body.n or 1)
        forwarded.pop(FIELD, None)
        asking = self._ask(request, "POST", "chat/completions", forwarded)
        return CheckedAnswer(request, checked, asking, self._settings.max_stream_ms, is_stream=bool(body.stream))

    def _ask(self, request: ServiceRequest, method: str, path: str, body: Any = None) -> Awaitable[UpstreamAnswer]:
        http = request.http
        return self._upstream.ask(method, path, http.headers, http.scope["query_string"], body)

    def _open(self, request: ServiceRequest, body: Mapping[str, Any], choices: int) -> CheckedChat:
        """The checks of the answer to a body; Refusal or an error of the engine if there can be none."""
        service = request.service
        knowledge = read_knowledge(body, self._settings.knowledge_from)
        history = read_history(body["messages"])
        if not knowledge and self._settings.without_knowledge == "refuse":
            raise Refusal(
                "invalid",
                f"The request has no knowledge; give it in {FIELD}.knowledge, or in messages of the roles "
                f"{' and '.join(self._settings.knowledge_from)}.",
                f"$.{FIELD}.knowledge",
            )
        check_texts(self._settings, (), knowledge, history)
        names = self._settings.metrics or add_citing(service.engine, service.metrics or ())
        options = request.bound_options(Options(profile=self._settings.profile))

        def open_stream() -> ResponseStream:
            return Guard(service.engine).open(knowledge, self._policy, history=history, metrics=names, scoring=options)

        open_stream().close()  # unusable texts and a full engine are errors before the model is asked
        return CheckedChat(open_stream, choices)


class CheckedAnswer(Response):
    """The upstream's answer while it is checked, as a whole or as server-sent events."""

    def __init__(
        self,
        request: ServiceRequest,
        checked: CheckedChat,
        asking: Awaitable[UpstreamAnswer],
        max_ms: float,
        *,
        is_stream: bool,
    ) -> None:
        """``max_ms`` is for the answer, from the question to its end."""
        super().__init__(media_type=EVENTS)
        self._request = request
        self._checked = checked
        self._asking = asking
        self._max_ms = max_ms
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask, check and send until the answer is complete, or the client leaves."""
        request = self._request
        with count_stream(request.service, self._checked):
            async with limit_time(self._max_ms, "The upstream's answer"):
                answer = await request.wait_for(self._asking)
            try:
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    async with limit_time(self._max_ms, "The upstream's answer"):
                        response = make_response(answer, await request.wait_for(answer.read()))
                elif answer.status != HTTPStatus.OK:
                    raise Refusal("upstream", f"The upstream's answer has the status {answer.status}, not 200.")
                elif not self._is_stream:
                    response = make_response(answer, await request.wait_for(self._check(answer)))
                elif answer.is_stream:
                    response = None
                    await self._stream(answer, send)
                else:
                    raise Refusal("upstream", "The upstream's answer is not a stream, which was asked for.")
            finally:
                await answer.close()
        if response is not None:
            await response(scope, receive, send)

    async def _check(self, answer: UpstreamAnswer) -> bytes:
        """The completion that may leave, as JSON."""
        async with limit_time(self._max_ms, "The upstream's answer"):
            with refuse_answer():
                part = await arun(self._checked.check(decode_answer(await answer.read())))
                if part is None or not all("message" in choice for choice in part["choices"]):
                    raise InvalidRequest("The answer has a choice without a message.")
        self._note_scores()
        return msgspec.json.encode(part)

    async def _stream(self, answer: UpstreamAnswer, send: Send) -> None:
        async def send_event(data: bytes) -> None:
            await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True})

        headers = answer.headers | {"cache-control": "no-store", "x-accel-buffering": "no"}
        await send({"type": "http.response.start", "status": 200, "headers": Headers(headers).raw})
        try:
            with self._request.service.readiness.refuse_stop():
                await run_both(refuse_when_gone(self._request.http), self._relay_in_time(answer, send_event))
        except (GroundwireError, Refusal) as error:
            refusal = error if isinstance(error, Refusal) else refuse_error(error)
            if refusal.code == "client_closed":
                raise
            context = self._request.context
            context.refusals.append(refusal.code)
            context.log_fields["stream_error"] = refusal.code
            await send_event(msgspec.json.encode(describe_error(refusal.describe(context.id))))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay_in_time(self, answer: UpstreamAnswer, send: Callable[[bytes], Awaitable[None]]) -> None:
        async with limit_time(self._max_ms, "The upstream's answer"):
            with refuse_answer():
                await self._relay(answer, send)

    async def _relay(self, answer: UpstreamAnswer, send: Callable[[bytes], Awaitable[None]]) -> None:
        async with aclosing(answer.read_events()) as events:
            async for data in events:
                chunk = decode_answer(data)
                if chunk.get("error"):  # what is held does not leave
                    await send(msgspec.json.encode({"error": chunk["error"]}))
                    return
                await self._send_part(self._checked.check(chunk), send)
                if self._checked.is_stopped:
                    break
        await self._send_part(self._checked.finish(), send)
        self._note_scores()
        await send(END)

    async def _send_part(self, steps: Steps[JsonObject | None], send: Callable[[bytes], Awaitable[None]]) -> None:
        try:
            part = await arun(steps)
        except GroundwireError:
            raise
        except Exception as error:
            raise logs.refuse_logged(error, self._request.context.id) from error
        if part is not None:
            await send(msgspec.json.encode(part))

    def _note_scores(self) -> None:
        """Count the scores of the choices, and let the log name their verdicts."""
        scores = self._checked.scores
        for score in scores:
            self._request.service.monitoring.add_score(score)
        self._request.context.log_fields["verdict"] = ",".join(score.verdict.label for score in scores)


def make_response(answer: UpstreamAnswer, content: bytes) -> Response:
    """A response with the status and the headers of an answer."""
    return Response(content, answer.status, answer.headers)


@contextmanager
def refuse_answer() -> Iterator[None]:
    """Raise as Refusal ``upstream`` what is wrong with an answer: its client cannot repair that."""
    try:
        yield
    except InvalidRequest as error:
        raise Refusal("upstream", f"The upstream's answer cannot be checked: {error}") from error
