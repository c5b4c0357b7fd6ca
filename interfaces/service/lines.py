"""``/score_many``: lines of JSON in, lines of JSON out, in order, with no more in flight than the server can hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

import msgspec
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from groundwire.engine import Options, Overloaded, Pending, Plan, Score
from groundwire.engine.extend import make_request
from groundwire.engine.schema.results import check_fields

from . import logs
from .problems import Refusal, refuse_large_answer
from .records import ScoredLine, ScoreLine
from .request import (
    CLIENT_LEFT,
    Deadline,
    ServiceRequest,
    check_media_type,
    check_texts,
    decode,
    make_deadline,
    run_both,
    wait_until_gone,
)
from .scoring import limit_entries, select

IN_FLIGHT = 64
"""Lines of one caller that are worked on, at most: while the oldest is not finished and sent, no more is read."""
IN_FLIGHT_PER_PLACE = 8
"""Lines for each request that the engine works on at the same time, as ``Engine.score_many`` has."""
PRIORITY = -10
"""Of lines, unless their options ask for a lower one: whoever waits for one score does not wait for a file."""
MEDIA_TYPE = "application/x-ndjson"
LINE = msgspec.json.Decoder(ScoreLine)
OPTIONS = msgspec.json.Decoder(Options)
Answers: TypeAlias = "asyncio.Queue[asyncio.Future[ScoredLine] | None]"
"""One future per line, in order; None after the last."""
Texts: TypeAlias = "asyncio.Queue[bytes | Refusal | None]"
"""Lines, or what is wrong with them, in order; None after the last."""


async def score_many(request: ServiceRequest) -> Response:
    """Score lines of JSON, one by one, while they come.

    The query has the `metrics`, separated by commas, and the `options` as JSON; each line has its deadline, by
    default the longest that the server allows, and single requests are served first. Lines that are not usable have an
    `error`, and the others go on. The answers are in the order of the lines. While the server is busy, it reads no
    further. Look at the status of each score: only `scored` carries a value.
    """
    settings, headers = request.service.settings, request.http.headers
    longest = settings.max_deadline_ms
    request.deadline = make_deadline(headers, longest, longest, request.context.arrived, request.service.now)
    check_media_type(headers, MEDIA_TYPE)
    query = request.http.query_params
    if unknown := sorted(set(query) - {"metrics", "options"}):
        raise Refusal("invalid", f"The query has {', '.join(unknown)}; it may have metrics and options.")
    if repeated := sorted(name for name in set(query) if len(query.getlist(name)) > 1):
        raise Refusal("invalid", f"The query has {', '.join(repeated)} more than once; keep one of them.")
    options = Options()
    if "options" in query:
        try:
            options = decode(query["options"], OPTIONS)
        except Refusal as error:
            path = f"$.options{error.path[1:]}"
            raise Refusal("invalid", f"options of the query: {error.detail}", path) from error
    names = tuple(name.strip() for name in query.get("metrics", "").split(",") if name.strip())
    if options.priority <= settings.max_priority:  # a higher one is refused with the others
        options = replace(options, priority=min(options.priority, PRIORITY))
    return ScoredLines(request, request.plan(names or None, options), request.deadline.ms)


RETRY_SECONDS = 0.02
"""Between two attempts while the engine has no room for a line."""


class ScoredLines(Response):
    """The answers to the lines of a body that is read while they are sent."""

    def __init__(self, request: ServiceRequest, plan: Plan, deadline_ms: float) -> None:
        """``deadline_ms`` is for each line, from its turn: the time in which it waits for room counts."""
        super().__init__(media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._request = request
        self._plan = plan
        self._deadline_ms = deadline_ms
        self._answers: Answers = asyncio.Queue(
            min(IN_FLIGHT, IN_FLIGHT_PER_PLACE * request.service.engine.core.runtime.concurrent_requests)
        )
        self._texts: Texts = asyncio.Queue(1)
        self._lines = 0
        self._is_answered = False
        self._unfinished: set[asyncio.Future[ScoredLine]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and send until the lines end, or the client leaves."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            await run_both(self._read(), run_both(self._begin_all(), self._send(send)))
        finally:
            unfinished = tuple(self._unfinished)
            for future in unfinished:
                future.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
            self._request.context.log_fields["lines"] = self._lines

    async def _read(self) -> None:
        """Read ahead of the line that waits for room, so that a client that leaves is noticed, which is a Refusal."""
        settings = self._request.service.settings
        limit = settings.max_body_bytes
        too_long = Refusal("too_large", f"The line has more than {limit} bytes; send less at a time.")
        try:
            async for text in split_lines(self._request.http, limit, settings.max_idle_ms):
                await self._texts.put(too_long if text is None else text)
        except Refusal as refusal:
            if refusal.code == "client_closed":
                raise
            await self._texts.put(refusal)
        await self._texts.put(None)
        await wait_until_gone(self._request.http)
        if not self._is_answered:  # a server says that the client is gone after the last answer, too
            raise Refusal("client_closed", CLIENT_LEFT)

    async def _begin_all(self) -> None:
        """Begin with every line."""
        while (text := await self._texts.get()) is not None:
            self._lines += 1
            if isinstance(text, Refusal):
                await self._refuse(self._lines, None, text)
            elif text.strip():
                await self._begin(text)
        await self._answers.put(None)

    async def _begin(self, text: bytes) -> None:
        """Begin with a line when there is room for it."""
        settings, body, number = self._request.service.settings, None, self._lines
        try:
            body = decode(text, LINE)
            check_texts(settings, (body.response,), body.knowledge, body.history, body.triples)
            pending = await self._start(body)
        except Exception as error:
            await self._refuse(number, body, logs.refuse_logged(error, self._request.context.id))
        else:
            await self._put(asyncio.ensure_future(self._score(number, body, pending)))

    async def _start(self, body: ScoreLine) -> Pending[Score]:
        """Start a line; while the engine has no room for it, wait.

        Raises InvalidRequest, EngineClosed, and Refusal ``deadline`` for a line that finds no room in its time.
        """
        check_fields(body.fields)
        texts = make_request(body.response, body.knowledge, body.history, self._plan.options, body.triples)
        core, now = self._request.service.engine.core, self._request.service.now
        deadline = Deadline(now(), self._deadline_ms, now, self._deadline_ms)
        while True:
            try:
                entries = limit_entries(body.explanations)
                return core.score(texts, self._plan, deadline.left_ms(), is_bulk=True, max_entries=entries)
            except Overloaded:
                await asyncio.sleep(RETRY_SECONDS)

    async def _refuse(self, number: int, body: ScoreLine | None, refusal: Refusal) -> None:
        answer: asyncio.Future[ScoredLine] = asyncio.get_running_loop().create_future()
        answer.set_result(self._describe(number, body, refusal))
        await self._put(answer)

    def _describe(self, number: int, body: ScoreLine | ScoredLine | None, refusal: Refusal) -> ScoredLine:
        context = self._request.context
        context.refusals.append(refusal.code)
        return ScoredLine(number, None if body is None else body.id, error=refusal.describe(context.id))

    async def _put(self, answer: asyncio.Future[ScoredLine]) -> None:
        self._unfinished.add(answer)
        answer.add_done_callback(self._unfinished.discard)
        await self._answers.put(answer)

    async def _score(self, number: int, body: ScoreLine, pending: Pending[Score]) -> ScoredLine:
        try:
            score = await pending
            self._request.service.monitoring.add_score(score)
            return ScoredLine(number, body.id, select(score, body.fields, explanations=body.explanations))
        except Exception as error:
            return self._describe(number, body, logs.refuse_logged(error, self._request.context.id))

    async def _send(self, send: Send) -> None:
        """Send every answer when it is there."""
        while (answer := await self._answers.get()) is not None:
            scored = await answer
            line, limit = msgspec.json.encode(scored), self._request.service.settings.max_answer_bytes
            if len(line) > limit:
                line = msgspec.json.encode(self._describe(scored.line, scored, refuse_large_answer(len(line), limit)))
            await send({"type": "http.response.body", "body": line + b"\n", "more_body": True})
        self._is_answered = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def split_lines(request: Request, max_bytes: int, idle_ms: float) -> AsyncIterator[bytes | None]:
    """The lines of a body while it comes; None for a line of more than ``max_bytes``, whose rest is skipped.

    Raises Refusal: ``body_timeout`` if nothing comes for ``idle_ms``, ``client_closed`` if the client leaves.
    """
    held, is_too_long = bytearray(), False
    chunks = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(idle_ms / 1000):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        except TimeoutError as error:
            raise Refusal("body_timeout", f"Nothing has come for {idle_ms:g} ms; send lines sooner.") from error
        except ClientDisconnect as error:
            raise Refusal("client_closed", CLIENT_LEFT) from error
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            held += part
            yield None if is_too_long or len(held) > max_bytes else bytes(held)
            held, is_too_long = bytearray(), False
        held += rest
        if len(held) > max_bytes:
            held, is_too_long = bytearray(), True
    if held or is_too_long:
        yield None if is_too_long else bytes(held)
