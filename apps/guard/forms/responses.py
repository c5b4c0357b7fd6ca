"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from groundwire.engine.schema.chats import ASSISTANT, SYSTEM, USER

from ..chat import FILTERED, Word
from .base import (
    SEPARATOR,
    ChatForm,
    Json,
    copy_verdict,
    get_object,
    get_type,
    list_objects,
    make_call,
    read_text,
    read_top,
)

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls among the items of a response, and the fields of their arguments."""


class ResponsesForm(ChatForm):
    """``/v1/responses`` of OpenAI: the text is one message, the calls follow."""

    path = "responses"

    def __init__(self) -> None:
        """Begin."""
        self._top: Json = {}
        """Fields of the answer that is streamed."""
        self._details: Any = None
        """Why the answer is incomplete."""
        self._texts: set[tuple[Any, Any]] = set()
        """The texts of which something has come, by the places of item and part."""
        self._calls = 0
        """Calls that have come."""
        self._count = 0
        """Events that are written."""
        self._text = ""
        """The text that is written."""
        self._refusal = ""

    def read_request(self, body: Mapping[str, Any]) -> Json:
        """Return the items of the input, with ``instructions`` before them, and the tools."""
        asked = body["input"]
        messages = [{"role": USER, "content": asked}] if isinstance(asked, str) else list(asked)
        instructions = [{"role": SYSTEM, "content": body["instructions"]}] if body.get("instructions") else []
        return {"messages": [*instructions, *messages], "tools": body.get("tools")}

    def read_answer(self, answer: Json) -> Json:
        """Return the texts and calls of a response."""
        items = list_objects(answer, "output")
        parts = [part for item in items if item.get("type") == "message" for part in list_objects(item, "content")]
        texts = [read_text(part, "text") for part in parts if part.get("type") == "output_text"]
        refusals = [read_text(part, "refusal") for part in parts if part.get("type") == "refusal"]
        message = {
            "role": ASSISTANT,
            "content": SEPARATOR.join(texts) or None,
            "tool_calls": [make_call(item) for item in items if get_type(item) in _CALLS] or None,
            "refusal": SEPARATOR.join(refusals) or None,
        }
        self._details = _read_details(answer)
        choice = {"index": 0, "message": message, "finish_reason": answer.get("status") or "completed"}
        return _read_response_top(answer) | {"choices": [choice]}

    def write_answer(self, completion: Json) -> Json:
        """Return a response."""
        (choice,) = completion["choices"]
        message = choice["message"]
        self._text, self._refusal = message.get("content") or "", message.get("refusal") or ""
        return self._make_response(completion, choice, message.get("tool_calls") or ())

    def _make_response(self, top: Json, choice: Json | None = None, calls: Sequence[Json] = ()) -> Json:
        """A response: without a choice its beginning."""
        reason = "in_progress" if choice is None else choice["finish_reason"]
        return {
            "id": top.get("id"),
            "object": "response",
            "created_at": top.get("created"),
            "model": top.get("model"),
            "status": "incomplete" if reason == FILTERED else reason,
            "incomplete_details": {"reason": FILTERED} if reason == FILTERED else self._details,
            "error": None,
            "output": [] if choice is None else [*self._list_messages(top), *map(_write_call, calls)],
            "usage": top.get("usage"),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **({} if choice is None else copy_verdict(choice)),
        }

    def _list_messages(self, top: Json) -> list[Json]:
        """The message, if it has a text or a refusal."""
        refusals = [{"type": "refusal", "refusal": self._refusal}] if self._refusal else []
        parts = [*([_make_part(self._text)] if self._text else ()), *refusals]
        return [self._make_message(top) | {"content": parts}] if parts else []

    def _make_message(self, top: Json) -> Json:
        ids = {"type": "message", "id": f"msg_{top.get('id')}"}
        return {**ids, "role": ASSISTANT, "status": "completed", "content": []}

    def read_event(self, event: Json) -> Json | None:
        """Return what an event has of text, calls and the end; of calls, what is whole."""
        delta: Json = {}
        reason = None
        kind, item = event.get("type"), get_object(event, "item")
        part_place = str(event.get("output_index")), str(event.get("content_index"))
        match kind:
            case "response.created":
                self._top = _read_response_top(get_object(event, "response"))
                delta = {"role": ASSISTANT}
            case "response.output_text.delta":
                is_apart = bool(self._texts) and part_place not in self._texts
                delta = {"content": (SEPARATOR if is_apart else "") + read_text(event, "delta")}
                self._texts.add(part_place)
            case "response.output_text.done" if part_place not in self._texts:  # no part of it has come
                delta = {"content": (SEPARATOR if self._texts else "") + read_text(event, "text")}
                self._texts.add(part_place)
            case "response.refusal.delta":
                delta = {"refusal": read_text(event, "delta")}
            case "response.output_item.done" if get_type(item) in _CALLS:
                self._calls += 1
                delta = {"tool_calls": [make_call(item) | {"index": self._calls - 1}]}
            case "response.completed" | "response.incomplete":
                response = get_object(event, "response")
                self._top |= _read_response_top(response)
                self._details = _read_details(response)
                if not (self._texts or self._calls) and isinstance(response.get("output"), list):
                    (choice,) = self.read_answer(response)["choices"]  # nothing of it has come
                    delta = {name: value for name, value in choice["message"].items() if value is not None}
                reason = response.get("status") or kind.removeprefix("response.")
        if not delta and reason is None:
            return None
        return self._top | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    def write_chunk(self, chunk: Json) -> Iterator[Json]:
        """Yield the events of a response: its message, then its calls."""
        for choice in chunk["choices"]:
            yield from map(self._number, self._write_choice(chunk, choice))

    def _write_choice(self, chunk: Json, choice: Json) -> Iterator[Json]:
        delta = choice["delta"]
        part_place = {"item_id": f"msg_{chunk.get('id')}", "output_index": 0, "content_index": 0}
        if self._count == 0:
            yield {"type": "response.created", "response": self._make_response(chunk)}
        self._refusal += delta.get("refusal") or ""
        if delta.get("content"):
            if not self._text:
                item = self._make_message(chunk) | {"status": "in_progress"}
                yield {"type": "response.output_item.added", "output_index": 0, "item": item}
                yield {"type": "response.content_part.added", **part_place, "part": _make_part("")}
            self._text += delta["content"]
            yield {"type": "response.output_text.delta", **part_place, "delta": delta["content"], "logprobs": []}
        if choice["finish_reason"] is None:
            return
        calls = delta.get("tool_calls") or ()
        response = self._make_response(chunk, choice, calls)
        if self._text:
            yield {"type": "response.output_text.done", **part_place, "text": self._text, "logprobs": []}
            yield {"type": "response.content_part.done", **part_place, "part": _make_part(self._text)}
        for index, item in enumerate(response["output"]):
            field = _CALLS.get(item["type"])
            if field is not None:
                call = {"item_id": item["id"], "output_index": index, "name": item["name"]}
                yield {"type": "response.output_item.added", "output_index": index, "item": item | {field: ""}}
                yield {"type": f"response.{item['type']}_{field}.delta", **call, "delta": item[field]}
                yield {"type": f"response.{item['type']}_{field}.done", **call, field: item[field]}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": f"response.{response['status']}", "response": response}

    def _number(self, event: Json) -> Json:
        self._count += 1
        return event | {"sequence_number": self._count - 1}

    def write_error(self, error: Json) -> Json:
        """Return an event ``error``."""
        fields = {name: error["error"].get(name) for name in ("code", "message", "param")}
        return self._number({"type": "error", **fields})

    def find_error(self, event: Mapping[str, Any]) -> Json | None:
        """Return an event ``error``, or one for a response that has failed."""
        error = get_object(event, "response").get("error") if event.get("type") == "response.failed" else event
        if error is event and event.get("type") != "error":
            return None
        return self.write_error({"error": error if isinstance(error, Mapping) else {"message": "It has failed."}})

    def is_last(self, event: Mapping[str, Any]) -> bool:
        """Whether the response is complete with it, or ends before it is."""
        return event.get("type") in ("response.completed", "response.incomplete")


def _make_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _write_call(call: Mapping[str, Any]) -> Json:
    """A call of a completion, as an item of a response."""
    kind = "function_call" if "function" in call else "custom_tool_call"
    function, name = call.get("function") or call.get("custom") or {}, _CALLS[kind]
    ids = {"id": f"fc_{call.get('id')}", "call_id": call.get("id")}
    return {"type": kind, **ids, "name": function.get("name"), name: function.get(name) or "", "status": "completed"}


def _read_response_top(answer: Mapping[str, Any]) -> Json:
    return read_top(answer, "id", "model", "service_tier") | {"created": answer.get("created_at")}


def _read_details(answer: Mapping[str, Any]) -> Json | None:
    """Why an answer is incomplete, as far as it is a name."""
    try:
        return {"reason": msgspec.convert(get_object(answer, "incomplete_details").get("reason"), Word)}
    except msgspec.ValidationError:
        return None
