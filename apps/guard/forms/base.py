"""How a protocol of chats is read as OpenAI's chat completions, and written back."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec

from groundwire.engine import InvalidRequest

from ..chat import FIELD

Json: TypeAlias = dict[str, Any]
SEPARATOR = "\n\n"
"""Between two texts of an answer that the protocol keeps apart."""


class ChatForm(abc.ABC):
    """How a protocol writes requests and answers."""

    path: ClassVar[str]
    """The path of the protocol below ``/v1/``."""
    names_events: ClassVar[bool] = True
    """Whether events of a stream have names, and the last one says that it is complete."""

    @abc.abstractmethod
    def read_request(self, body: Mapping[str, Any]) -> Json:
        """Return the messages and tools of a request."""

    @abc.abstractmethod
    def read_answer(self, answer: Json) -> Json:
        """Return an answer as a completion."""

    @abc.abstractmethod
    def write_answer(self, completion: Json) -> Json:
        """Return a checked completion as an answer."""

    @abc.abstractmethod
    def read_event(self, event: Json) -> Json | None:
        """Return an event of a stream as a chunk; None for an event without anything that may leave."""

    @abc.abstractmethod
    def write_chunk(self, chunk: Json) -> Iterator[Json]:
        """Yield the events for a checked chunk."""

    @abc.abstractmethod
    def write_error(self, error: Json) -> Json:
        """Return the last event of a stream that an error ends; ``error`` is the error in OpenAI's form."""

    def find_error(self, event: Mapping[str, Any]) -> Json | None:
        """Return the event that says that the model's stream has failed, as it may leave; None for other events."""
        return {"type": "error", "error": event["error"]} if event.get("error") else None

    def is_last(self, event: Mapping[str, Any]) -> bool:
        """Whether a stream is complete with this event."""
        return False


def make_call(item: Mapping[str, Any]) -> Json:
    """Return a call of a message or of a response in the form of a completion."""
    id_ = item.get("call_id") or item.get("id")
    if item.get("type") == "custom_tool_call":
        return {"id": id_, "type": "custom", "custom": {"name": item.get("name"), "input": item.get("input")}}
    arguments = item.get("arguments", item.get("input"))
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return {"id": id_, "type": "function", "function": {"name": item.get("name"), "arguments": arguments}}


def copy_verdict(choice: Json) -> Json:
    """Return the field with the verdict, if the choice has one."""
    return {FIELD: choice[FIELD]} if FIELD in choice else {}


def read_top(answer: Mapping[str, Any], *names: str) -> Json:
    """Return fields of an answer, with the numbers of its usage."""
    return {name: answer[name] for name in names if name in answer} | {"usage": read_usage(answer)}


def read_usage(answer: Mapping[str, Any]) -> Json:
    """Return the numbers of an answer's usage."""
    usage = get_object(answer, "usage")
    parts = {name: value for name, value in usage.items() if isinstance(value, Mapping)}
    numbers = {name: value for name, value in usage.items() if isinstance(value, int | float)}
    return numbers | {name: read_usage({"usage": value}) for name, value in parts.items()}


def get_type(value: Mapping[str, Any]) -> str:
    """Return the type that an object says it has; empty if it says none."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def get_object(value: Mapping[str, Any], name: str) -> Json:
    """Return the object of a field; empty if there is none."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def list_objects(value: Mapping[str, Any], name: str) -> list[Json]:
    """Return the objects of a field; InvalidRequest if it is no list of them."""
    items = value.get(name)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidRequest(f"The answer has no list of objects {name!r}.")
    return items


def read_text(value: Mapping[str, Any], name: str) -> str:
    """Return the text of a field; InvalidRequest if it is none."""
    text = value.get(name)
    if not isinstance(text, str):
        raise InvalidRequest(f"The answer has {type(text).__name__} in the place of the text {name!r}.")
    return text
