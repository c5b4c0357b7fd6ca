"""A server of OpenAI's chat protocol that answers every chat with one text."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

BASE = {"id": "c", "created": 1, "model": "m"}
ERROR = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


class ChatServer:
    """Answers with ``text``, a letter per chunk; the model of a request says what goes wrong.

    ``busy`` is 429, ``broken`` ends before the end of a stream, ``error`` has an error there, ``mute`` is no JSON,
    ``list`` no completion, ``made`` is 201, ``slow`` waits before each chunk.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        """Chunks of all streams."""
        self.has_left = threading.Event()
        """A client has left a stream before its end."""
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._list_models),
            ]
        )

    async def _list_models(self, request: Request) -> Response:
        self.headers.append(dict(request.headers))
        return JSONResponse({"object": "list", "data": [{"id": "m", "object": "model"}]})

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        model = body["model"]
        if model == "busy":
            return JSONResponse(ERROR, 429, {"retry-after": "7", "x-ratelimit-remaining-requests": "0", "server": "s"})
        if model == "mute":
            return Response("no JSON")
        if model == "list":
            return JSONResponse({"object": "list"})
        if body.get("stream"):
            return StreamingResponse(self._write_events(model), media_type="text/event-stream")
        message = {"role": "assistant", "content": self.text, "reasoning": "unchecked"}
        choices = [
            {"index": index, "message": message, "finish_reason": "stop", "logprobs": None}
            for index in range(body.get("n") or 1)
        ]
        answer = BASE | {"object": "chat.completion", "choices": choices, "usage": USAGE}
        return JSONResponse(answer, 201 if model == "made" else 200)

    async def _write_events(self, model: str) -> AsyncIterator[str]:
        deltas = [{"role": "assistant", "content": ""}, *({"content": letter} for letter in self.text)]
        try:
            for delta in deltas:
                yield self._write(delta, None)
                self.sent += 1
                await asyncio.sleep(0.01 if model == "slow" else 0)
        except asyncio.CancelledError:
            self.has_left.set()
            raise
        if model == "broken":
            return
        if model == "error":
            yield f"data: {json.dumps(ERROR | BASE)}\n\n"
            return
        yield self._write({}, "stop")
        yield f": a comment\n\ndata: {json.dumps(BASE | {'choices': [], 'usage': USAGE})}\n\n"
        yield "data: [DONE]\n\n"

    def _write(self, delta: dict[str, Any], reason: str | None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {json.dumps(BASE | {'object': 'chat.completion.chunk', 'choices': [choice]})}\r\n\r\n"


@contextlib.contextmanager
def listen(app: ASGIApp) -> Iterator[str]:
    """Run an application on a free port of this machine; the address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        (listener,) = server.servers[0].sockets
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
