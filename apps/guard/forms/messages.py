"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from groundwire.engine import InvalidRequest
from groundwire.engine.schema.chats import ASSISTANT, SYSTEM

from ..chat import FILTERED
from .base import (
    SEPARATOR,
    ChatForm,
    Json,
    copy_verdict,
    get_object,
    list_objects,
    make_call,
    read_text,
    read_top,
    read_usage,
)


class MessagesForm(ChatForm):
    """``/v1/messages`` of Anthropic: the text is the first block, the calls follow."""

    path = "messages"

    def __init__(self) -> None:
        """Begin."""
        self._top: Json = {}
        """Fields of the answer that is streamed."""
        self._calls: dict[Any, int] = {}
        """The number of a call by its block's."""
        self._inputs: dict[int, Any] = {}
        """Inputs of calls that came at once, by the call's number."""
        self._written: list[str] = []
        """The types of the blocks that are written; the last is open."""
        self._has_text = False
        """Whether a text has come."""
        self._is_apart = False
        """Whether the last block that has come is not a text: texts beside each other are one, cut for citations."""

    def read_request(self, body: Mapping[str, Any]) -> Json:
        """Return the messages, with ``system`` before them, and the tools."""
        system = [{"role": SYSTEM, "content": body["system"]}] if body.get("system") else []
        return {"messages": [*system, *body["messages"]], "tools": body.get("tools")}

    def read_answer(self, answer: Json) -> Json:
        """Return the texts and calls of a message."""
        blocks = list_objects(answer, "content")
        text, is_apart = "", False
        for block in blocks:
            if block.get("type") == "text":
                text += (SEPARATOR if text and is_apart else "") + read_text(block, "text")
            is_apart = block.get("type") != "text"
        calls = [make_call(block) for block in blocks if block.get("type") == "tool_use"]
        message = {"role": ASSISTANT, "content": text or None, "tool_calls": calls or None}
        choice = {"index": 0, "message": message, "finish_reason": answer.get("stop_reason")}
        return read_top(answer, "id", "model") | {"choices": [choice]}

    def write_answer(self, completion: Json) -> Json:
        """Return a message."""
        (choice,) = completion["choices"]
        message = choice["message"]
        texts = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        blocks = [_write_tool_use(call) for call in message.get("tool_calls") or ()]
        return self._make_message(completion) | {
            "content": [*texts, *blocks],
            "stop_reason": _write_stop(choice),
            **copy_verdict(choice),
        }

    def _make_message(self, top: Mapping[str, Any]) -> Json:
        return {
            "id": top.get("id"),
            "type": "message",
            "role": ASSISTANT,
            "model": top.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": top.get("usage") or {},
        }

    def read_event(self, event: Json) -> Json | None:
        """Return what an event has of text, calls and the end."""
        delta: Json = {}
        reason = None
        index, part = event.get("index"), get_object(event, "delta")
        index = index if isinstance(index, int) else None
        match event.get("type"):
            case "message_start":
                self._top = read_top(get_object(event, "message"), "id", "model")
                delta = {"role": ASSISTANT}
            case "content_block_start" if index is not None:
                block = get_object(event, "content_block")
                if block.get("type") == "text":
                    text = read_text(block, "text")
                    delta = {"content": (SEPARATOR if self._has_text and self._is_apart else "") + text}
                    self._has_text = True
                elif block.get("type") == "tool_use":
                    number = self._calls[index] = len(self._calls)
                    if block.get("input"):
                        self._inputs[number] = block["input"]
                    delta = {"tool_calls": [make_call({**block, "input": ""}) | {"index": number}]}
                self._is_apart = block.get("type") != "text"
            case "content_block_delta" if part.get("type") == "text_delta":
                delta = {"content": read_text(part, "text")}
            case "content_block_delta" if part.get("type") == "input_json_delta" and index in self._calls:
                arguments = read_text(part, "partial_json")
                if arguments:
                    self._inputs.pop(self._calls[index], None)
                delta = {"tool_calls": [{"index": self._calls[index], "function": {"arguments": arguments}}]}
            case "message_delta":
                self._top["usage"] = self._top.get("usage", {}) | read_usage(event)
                reason = part.get("stop_reason") or "end_turn"
                inputs = [(number, msgspec.json.encode(value).decode()) for number, value in self._inputs.items()]
                delta = {
                    "tool_calls": [{"index": number, "function": {"arguments": value}} for number, value in inputs]
                }
        if not delta and reason is None:
            return None
        return self._top | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    def write_chunk(self, chunk: Json) -> Iterator[Json]:
        """Yield the events of a message, block after block."""
        for choice in chunk["choices"]:
            if not self._written:
                yield {"type": "message_start", "message": self._make_message(chunk)}
                self._written.append("")
            delta = choice["delta"]
            if delta.get("content"):
                if self._written[-1] != "text":
                    yield from self._open({"type": "text", "text": ""})
                yield self._make_delta({"type": "text_delta", "text": delta["content"]})
            for call in delta.get("tool_calls") or ():
                block = _write_tool_use(call)
                yield from self._open(block | {"input": {}})
                yield self._make_delta(
                    {"type": "input_json_delta", "partial_json": msgspec.json.encode(block["input"]).decode()}
                )
            if choice["finish_reason"] is not None:
                yield from self._close()
                yield {
                    "type": "message_delta",
                    "delta": {"stop_reason": _write_stop(choice), "stop_sequence": None},
                    "usage": chunk.get("usage") or {},
                    **copy_verdict(choice),
                }
                yield {"type": "message_stop"}

    def _open(self, block: Json) -> Iterator[Json]:
        yield from self._close()
        self._written.append(block["type"])
        yield {"type": "content_block_start", "index": len(self._written) - 2, "content_block": block}

    def _close(self) -> Iterator[Json]:
        if len(self._written) > 1:
            yield {"type": "content_block_stop", "index": len(self._written) - 2}

    def _make_delta(self, delta: Json) -> Json:
        return {"type": "content_block_delta", "index": len(self._written) - 2, "delta": delta}

    def write_error(self, error: Json) -> Json:
        """Return an event ``error``."""
        return {"type": "error", "error": {"type": error["error"]["code"], "message": error["error"]["message"]}}

    def is_last(self, event: Mapping[str, Any]) -> bool:
        """Whether it is ``message_stop``."""
        return event.get("type") == "message_stop"


def _write_stop(choice: Json) -> str | None:
    reason: str | None = choice["finish_reason"]
    return "refusal" if reason == FILTERED else reason


def _write_tool_use(call: Mapping[str, Any]) -> Json:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments or "{}")
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"The input of the call {call.get('id')!r:.100} is not JSON.") from error
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments}
