"""Reads chats with tool calls, in the forms of OpenAI, Anthropic and LangChain: dialogue, instructions, tool log.

A message is a JSON object, or an object of LangChain with the same fields.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from groundwire.runtime.texts.unread import is_blank

from .knowledge import UNREADABLE, CallStatus, ToolCall

USER, ASSISTANT, SYSTEM = "user", "assistant", "system"
_ROLES = {"human": USER, "ai": ASSISTANT, "AIMessageChunk": ASSISTANT, "developer": SYSTEM, "function": "tool"}
"""Other names of roles."""
_KNOWN = frozenset({USER, ASSISTANT, SYSTEM, "tool", *_ROLES})
_ITEMS = frozenset({"function_call", "function_call_output"})
"""Types of the items of OpenAI's responses that are no messages."""

ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "params", "kwargs")
"""What the arguments of a call are called: by OpenAI, by LangChain, by Anthropic, and by others."""


class ChatLog(NamedTuple):
    """What a chat has said and done."""

    history: tuple[tuple[str, str], ...]
    """The utterances of ``user`` and ``assistant``, oldest first: role and text."""
    instructions: tuple[str, ...]
    """The texts of system and developer messages."""
    calls: tuple[ToolCall, ...]
    """The tool log, in the order of the calls."""
    others: tuple[Any, ...]
    """What is no message."""
    knowledge: tuple[Any, ...]
    """The instructions, the calls and what is no message, in the order in which they came."""


def is_message(value: Any) -> bool:
    """Whether a value is a message of a chat, or an item of OpenAI's responses."""
    role = _find_role(value)
    if role in _ITEMS:
        return _get(value, "call_id") is not None
    return role in _KNOWN and any(_get(value, name) is not None for name in ("content", "tool_calls", "function_call"))


def _find_role(value: Any) -> str:
    """The role of a message; empty for what is none. A record with a type is no message for that alone."""
    role = _get(value, "role")
    if not role and not (isinstance(value, Mapping) and value.get("tool_calls") is value.get("call_id") is None):
        role = _get(value, "type")
    return role if isinstance(role, str) else ""


def read_chat(messages: Iterable[Any]) -> ChatLog:
    """Return what a chat has said and done.

    Args:
        messages: The messages, oldest first. A call and its result become one ``ToolCall``.

    Returns:
        The dialogue, the instructions and the tool log. A call without a result is pending.
    """
    history: list[tuple[str, str]] = []
    instructions: list[str] = []
    others: list[Any] = []
    log = _CallLog()
    positions: list[tuple[list[Any], int]] = []
    for message in messages:
        counts = (len(others), len(instructions), len(log.calls))
        if is_message(message):
            role = _find_role(message)
            role = _ROLES.get(role, role)
            for call in _list_calls(message):
                log.add(call)
            for id_, name, result, status in _list_results(message, role):
                log.answer(id_, name, result, status)
            text = "" if role == "tool" else read_text(_get(message, "content"))
            if role in (USER, ASSISTANT) and not is_blank(text):
                history.append((role, text))
            elif role == SYSTEM and not is_blank(text):
                instructions.append(text)
        else:
            others.append(message)
        grown: tuple[list[Any], ...] = (others, instructions, log.calls)
        for items, count in zip(grown, counts, strict=True):
            positions += [(items, index) for index in range(count, len(items))]
    knowledge = tuple(items[index] for items, index in positions)  # read last: results are written into earlier calls
    return ChatLog(tuple(history), tuple(instructions), tuple(log.calls), tuple(others), knowledge)


def read_text(content: Any) -> str:
    """Return the text of a message's content: a string, or parts; a part may be a text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = [part if isinstance(part, str) else _get(part, "text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def _get(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return None
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _list_calls(message: Any) -> list[ToolCall]:
    """The calls that a message of the assistant makes."""
    made = _get(message, "tool_calls")
    calls = [*made] if isinstance(made, list | tuple) else []
    if _get(message, "type") == "function_call":
        calls.append(message)
    elif isinstance(function := _get(message, "function_call"), Mapping):
        calls.append(function)
    content = _get(message, "content")
    if not calls and isinstance(content, list | tuple):  # LangChain has Anthropic's parts beside its own calls
        calls += [part for part in content if _get(part, "type") == "tool_use"]
    return [call for call in map(read_tool_call, calls) if call is not None]


def read_tool_call(value: Any) -> ToolCall | None:
    """Return a call in the form of OpenAI, Anthropic or LangChain; None for anything else."""
    function = _get(value, "function") or _get(value, "custom") or value
    name = _get(function, "name")
    if not isinstance(name, str):
        return None
    candidates = (_get(function, key) for key in ARGUMENT_KEYS)
    arguments: Any = next((candidate for candidate in candidates if candidate is not None), {})
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments or "{}")
        except UNREADABLE:
            arguments = {"arguments": arguments}
    if not isinstance(arguments, Mapping):
        arguments = {"arguments": arguments}
    return ToolCall(name=name, arguments=dict(arguments), id=_read_id(value, "call_id") or _read_id(value, "id"))


def _list_results(message: Any, role: str) -> list[tuple[str, str, Any, CallStatus | None]]:
    """The results that a message brings: the call's id, the tool's name, the result, and a status that is named."""
    content = _get(message, "content")
    if role == "tool":
        status: CallStatus | None = "failed" if _get(message, "status") == "error" else None
        name = _get(message, "name")
        named = name if isinstance(name, str) else ""
        return [(_read_id(message, "tool_call_id"), named, _read_content(content), status)]
    if role == "function_call_output":
        return [(_read_id(message, "call_id"), "", _read_content(_get(message, "output")), None)]
    parts = content if isinstance(content, list | tuple) else ()
    return [
        (
            _read_id(part, "tool_use_id"),
            "",
            _read_content(_get(part, "content")),
            "failed" if _get(part, "is_error") else None,
        )
        for part in parts
        if _get(part, "type") == "tool_result"
    ]


def _read_id(value: Any, name: str) -> str:
    id_ = _get(value, name)
    return str(id_) if isinstance(id_, str | int) else ""


def _read_content(content: Any) -> Any:
    """A result: the text of its parts, or JSON."""
    if isinstance(content, list | tuple) and all(isinstance(_get(part, "type"), str) for part in content):
        return read_text(content)
    return "" if content is None else content


class _CallLog:
    """The calls of a chat, and which of them wait for a result."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self._waiting = defaultdict[tuple[str, str], deque[int]](deque)
        """Calls without a result, oldest first: by id, by name, and all; those with one are left out when met."""

    def add(self, call: ToolCall) -> None:
        """Add a call."""
        if call.result is None:
            for key in (("id", call.id), ("name", call.name), ("", "")):
                self._waiting[key].append(len(self.calls))
        self.calls.append(call)

    def answer(self, id_: str, name: str, result: Any, status: CallStatus | None) -> None:
        """Write a result into its call; a result without a call is a call of its own."""
        waiting = self._waiting[("id", id_) if id_ else ("name", name) if name else ("", "")]
        while waiting and self.calls[waiting[0]].result is not None:
            waiting.popleft()
        if waiting:
            index = waiting[0]
            self.calls[index] = msgspec.structs.replace(self.calls[index], result=result, status=status)
        else:
            self.add(ToolCall(name=name, result=result, status=status, id=id_))
