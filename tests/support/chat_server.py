"""A server of three chat protocols that answers every chat with one text, and perhaps calls."""

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
    """Answers with ``text``, a letter per chunk, and the arguments of ``calls``; the model says what goes wrong.

    ``busy`` is 429, ``broken`` ends before the end of a stream, ``error`` has an error there, ``mute`` is no JSON,
    ``list`` no completion, ``made`` is 201, ``slow`` waits before each chunk.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.calls: list[dict[str, Any]] = []
        """Arguments of the calls of a tool ``book``, which come after the text."""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        """Chunks of all streams."""
        self.has_left = threading.Event()
        """A client has left a stream before its end."""
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/responses", self._respond, methods=["POST"]),
                Route("/v1/messages", self._write_message, methods=["POST"]),
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
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "reasoning": "unchecked"}
        if self.calls:
            message["tool_calls"] = [self._make_call(number) for number in range(len(self.calls))]
        choices = [
            {"index": index, "message": message, "finish_reason": "stop", "logprobs": None}
            for index in range(body.get("n") or 1)
        ]
        answer = BASE | {"object": "chat.completion", "choices": choices, "usage": USAGE}
        return JSONResponse(answer, 201 if model == "made" else 200)

    async def _write_events(self, model: str) -> AsyncIterator[str]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": letter} for letter in self.text]
        for number, arguments in enumerate(self.calls):
            first = self._make_call(number) | {"index": number, "function": {"name": "book", "arguments": ""}}
            parts = [{"index": number, "function": {"arguments": letter}} for letter in json.dumps(arguments)]
            deltas += [{"tool_calls": [part]} for part in (first, *parts)]
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

    def _make_call(self, number: int) -> dict[str, Any]:
        function = {"name": "book", "arguments": json.dumps(self.calls[number])}
        return {"id": f"call{number}", "type": "function", "function": function}

    async def _respond(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        base = {"id": "r", "object": "response", "created_at": 1, "model": "m"}
        part = {"type": "output_text", "text": self.text, "annotations": [], "logprobs": [{"token": self.text}]}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": self.text}]}
        calls = [
            {"type": "function_call", "id": f"fc_{number}", "call_id": f"call{number}", "name": "book"}
            | {"arguments": json.dumps(arguments), "status": "completed"}
            for number, arguments in enumerate(self.calls)
        ]
        usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        whole = base | {"status": "completed", "output": [reasoning, message, *calls], "usage": usage}
        if not body.get("stream"):
            return JSONResponse(whole)
        events: list[dict[str, Any]] = [{"type": "response.created", "response": base | {"status": "in_progress"}}]
        place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
        events += [{"type": "response.output_text.delta", **place, "delta": letter} for letter in self.text]
        events.append({"type": "response.output_text.done", **place, "text": self.text})
        for index, call in enumerate(calls, 2):
            events.append({"type": "response.output_item.added", "output_index": index, "item": call})
            events.append({"type": "response.function_call_arguments.delta", "output_index": index, "delta": "{"})
            events.append({"type": "response.output_item.done", "output_index": index, "item": call})
        return self._send_named([*events, {"type": "response.completed", "response": whole}], body["model"])

    async def _write_message(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        base = {"id": "m_1", "type": "message", "role": "assistant", "model": "m"}
        usage = {"input_tokens": 1, "output_tokens": 2, "service_tier": "standard"}
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": self.text, "signature": "s"}]
        blocks += [{"type": "text", "text": self.text}] if self.text else []
        for number, arguments in enumerate(self.calls):
            blocks.append({"type": "tool_use", "id": f"call{number}", "name": "book", "input": arguments})
        reason = "tool_use" if self.calls else "end_turn"
        if not body.get("stream"):
            return JSONResponse(base | {"content": blocks, "stop_reason": reason, "usage": usage})
        events: list[dict[str, Any]] = [{"type": "message_start", "message": base | {"content": [], "usage": usage}}]
        for index, block in enumerate(blocks):
            name = {"thinking": "thinking", "text": "text", "tool_use": "partial_json"}[block["type"]]
            kind = {"partial_json": "input_json_delta"}.get(name, f"{name}_delta")
            written = json.dumps(block["input"]) if name == "partial_json" else block[name]
            empty = {"input": {}} if name == "partial_json" else {name: ""}
            events.append({"type": "content_block_start", "index": index, "content_block": block | empty})
            events += [
                {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: letter}}
                for letter in written
            ]
            events.append({"type": "content_block_stop", "index": index})
        events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}})
        return self._send_named([*events, {"type": "message_stop"}], body["model"])

    def _send_named(self, events: list[dict[str, Any]], model: str) -> Response:
        """Events with names; ``broken`` and ``error`` as for chat completions."""
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}, "message": "Busy."}
        if model in ("broken", "error"):
            events = [*events[:-1], *([error] if model == "error" else ())]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return Response(text, media_type="text/event-stream")

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
