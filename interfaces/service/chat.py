"""The chats of the proxy, in three protocols: what the upstream answers, checked before any of it leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from groundwire.engine import InvalidRequest, Options
from groundwire.guard import Correct, Guard, Policy, ResponseStream
from groundwire.guard.chat import FIELD, ChatOptions, CheckedChat, add_citing, read_history, read_knowledge
from groundwire.guard.forms import ChatForm, CompletionsForm, MessagesForm, ResponsesForm
from groundwire.guard.policies import TurnPolicy
from groundwire.guard.steps import Steps, arun
from groundwire.guard.turns import TurnGuard

from . import logs
from .problems import Refusal, describe_error
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


SendEvent: TypeAlias = Callable[[JsonObject | None], Awaitable[None]]
"""Sends an event of a stream; None is its end."""


class ChatBody(msgspec.Struct, frozen=True):
    """What the proxy reads of a request; the upstream reads the rest."""

    messages: tuple[JsonObject, ...]
    stream: bool | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)] | None = None
    groundwire: ChatOptions | None = None
    tools: tuple[JsonObject, ...] | None = None


class MessagesBody(msgspec.Struct, frozen=True):
    """The same in Anthropic's protocol."""

    messages: tuple[JsonObject, ...]
    system: str | tuple[JsonObject, ...] | None = None
    stream: bool | None = None
    groundwire: ChatOptions | None = None
    tools: tuple[JsonObject, ...] | None = None


class ResponsesBody(msgspec.Struct, frozen=True):
    """The same in OpenAI's protocol of responses."""

    input: str | tuple[JsonObject, ...]
    instructions: str | None = None
    stream: bool | None = None
    groundwire: ChatOptions | None = None
    tools: tuple[JsonObject, ...] | None = None
    background: Literal[False] | None = None
    """An answer that is asked for later would not be checked."""
    previous_response_id: None = None
    """A dialogue that the upstream keeps is not known here."""
    conversation: None = None
    prompt: None = None


Body: TypeAlias = ChatBody | MessagesBody | ResponsesBody
COMPLETIONS = msgspec.json.Decoder(ChatBody)
MESSAGES = msgspec.json.Decoder(MessagesBody)
RESPONSES = msgspec.json.Decoder(ResponsesBody)


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
        self._turns = TurnPolicy(
            argument=settings.calls,
            action=settings.claims,
            value=settings.claims,
            unknown="block" if "block" in (settings.calls, settings.claims) else "annotate",
            fallback=settings.stopped_text,
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
        return await self._answer(request, COMPLETIONS, CompletionsForm())

    async def respond(self, request: ServiceRequest) -> Response:
        """Answer a request for a response as ``complete`` does; `incomplete_details` says `content_filter`."""
        return await self._answer(request, RESPONSES, ResponsesForm())

    async def write_message(self, request: ServiceRequest) -> Response:
        """Answer a request for a message as ``complete`` does; `stop_reason` is `refusal`."""
        return await self._answer(request, MESSAGES, MessagesForm())

    async def _answer(self, request: ServiceRequest, decoder: msgspec.json.Decoder[Any], form: ChatForm) -> Response:
        content = await request.read_json()
        body, forwarded = decode(content, decoder), msgspec.json.decode(content)
        check_streams(request.service)
        is_given = body.groundwire is not None and body.groundwire.knowledge is not None
        knowledge_path = f"$.{FIELD}.knowledge" if is_given else "$.input" if form.path == "responses" else "$.messages"
        with translate_paths({"$.knowledge": knowledge_path, "$.history": knowledge_path}):
            checked = self._open(request, form.read_request(forwarded) | {FIELD: forwarded.get(FIELD)}, body)
        forwarded.pop(FIELD, None)
        asking = self._ask(request, "POST", form.path, forwarded)
        return CheckedAnswer(request, checked, asking, form, self._settings.max_stream_ms, is_stream=bool(body.stream))

    def _ask(self, request: ServiceRequest, method: str, path: str, body: Any = None) -> Awaitable[UpstreamAnswer]:
        http = request.http
        return self._upstream.ask(method, path, http.headers, http.scope["query_string"], body)

    def _open(self, request: ServiceRequest, chat: Mapping[str, Any], body: Body) -> CheckedChat:
        """The checks of the answer to a chat; Refusal or an error of the engine if there can be none."""
        service = request.service
        knowledge = read_knowledge(chat, self._settings.knowledge_from)
        history = read_history(chat["messages"])
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
        turns = None
        if self._turns.checks:
            knowledge_items = (body.groundwire and body.groundwire.knowledge) or ()
            turns = TurnGuard(service.engine, self._turns, chat, knowledge_items, options)
        return CheckedChat(open_stream, getattr(body, "n", None) or 1, turns)


class CheckedAnswer(Response):
    """The upstream's answer while it is checked, as a whole or as server-sent events."""

    def __init__(
        self,
        request: ServiceRequest,
        checked: CheckedChat,
        asking: Awaitable[UpstreamAnswer],
        form: ChatForm,
        max_ms: float,
        *,
        is_stream: bool,
    ) -> None:
        """``max_ms`` is for the answer, from the question to its end."""
        super().__init__(media_type=EVENTS)
        self._request = request
        self._checked = checked
        self._asking = asking
        self._form = form
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
                written = self._form.read_answer(decode_answer(await answer.read()))
                part = await arun(self._checked.check(written))
                if part is None or not all("message" in choice for choice in part["choices"]):
                    raise InvalidRequest("The answer has a choice without a message.")
                content = msgspec.json.encode(self._form.write_answer(part))
        self._note_checks()
        return content

    async def _stream(self, answer: UpstreamAnswer, send: Send) -> None:
        async def send_event(event: JsonObject | None) -> None:
            name = f"event: {event['type']}\n" if event and self._form.names_events else ""
            body = f"{name}data: ".encode() + (END if event is None else msgspec.json.encode(event)) + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        headers = answer.headers | {"cache-control": "no-store", "x-accel-buffering": "no"}
        await send({"type": "http.response.start", "status": 200, "headers": Headers(headers).raw})
        try:
            with self._request.service.readiness.refuse_stop():
                await run_both(refuse_when_gone(self._request.http), self._relay_in_time(answer, send_event))
        except Exception as error:
            context = self._request.context
            refusal = logs.refuse_logged(error, context.id)
            if refusal.code == "client_closed":
                raise
            context.refusals.append(refusal.code)
            context.log_fields["stream_error"] = refusal.code
            await send_event(self._form.write_error(describe_error(refusal.describe(context.id))))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay_in_time(self, answer: UpstreamAnswer, send: SendEvent) -> None:
        async with limit_time(self._max_ms, "The upstream's answer"):
            with refuse_answer():
                await self._relay(answer, send)

    async def _relay(self, answer: UpstreamAnswer, send: SendEvent) -> None:
        async with aclosing(answer.read_events()) as events:
            async for data in events:
                event = decode_answer(data)
                if (failure := self._form.find_error(event)) is not None:  # what is held does not leave
                    await send(failure)
                    return
                if (chunk := self._form.read_event(event)) is not None:
                    await self._send_part(self._checked.check(chunk), send)
                if self._checked.is_stopped or self._form.is_last(event):
                    break
        if self._form.names_events and not (self._checked.is_complete or self._checked.is_stopped):
            raise Refusal("upstream", "The upstream's stream has ended before it was complete.")
        await self._send_part(self._checked.finish(), send)
        self._note_checks()
        if not self._form.names_events:
            await send(None)

    async def _send_part(self, steps: Steps[JsonObject | None], send: SendEvent) -> None:
        part = await arun(steps)
        for event in () if part is None else self._form.write_chunk(part):
            await send(event)

    def _note_checks(self) -> None:
        """Count the scores of the choices and what was not checked, and let the log name them."""
        monitoring, fields = self._request.service.monitoring, self._request.context.log_fields
        for score in self._checked.scores:
            monitoring.add_score(score)
        fields["verdict"] = ",".join(score.verdict.label for score in self._checked.scores)
        for part in self._checked.not_checked:
            monitoring.not_checked.labels(part.part, part.reason).inc()
        if self._checked.not_checked:
            fields["not_checked"] = ",".join(f"{part.part}:{part.reason}" for part in self._checked.not_checked)
        if self._checked.checked_turns:
            fields["turn_label"] = ",".join(turn.label for turn in self._checked.checked_turns)


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
