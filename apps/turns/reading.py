"""Reads the calls that an assistant is about to make, strictly: what a client would read otherwise is not checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from groundwire.engine import InvalidRequest, ToolCall
from groundwire.engine.schema.chats import ARGUMENT_KEYS, read_tool_call
from groundwire.engine.schema.knowledge import UNREADABLE

_FIELDS = frozenset(("id", "call_id", "index", "name", "type", "function", "custom", "status", "result", "namespace"))
"""Fields of a call that are no arguments."""


def read_made_call(call: Any, name: str) -> tuple[ToolCall, str]:
    """Return a call that is about to be made, and why its arguments cannot be read.

    Args:
        call: A ``ToolCall``, or a call in the form of OpenAI, Anthropic or LangChain.
        name: What messages call it.

    Returns:
        The call, and an empty text; or the call without arguments, and the reason: their text is not a JSON object with
        each key once. Clients take the first or the last of equal keys, and repair what was cut.

    Raises:
        InvalidRequest: It has no name, its arguments have a name that is not known, or two.
    """
    if isinstance(call, ToolCall):
        return call, ""
    read = read_tool_call(call)
    if read is None:
        raise InvalidRequest(f"{name} has no name; pass a ToolCall, or a call of OpenAI, Anthropic or LangChain.")
    inner = next((part for key in ("function", "custom") if (part := _get(call, key))), call)
    keys = [key for key in ARGUMENT_KEYS if _get(inner, key) is not None]
    others = sorted(set(map(str, inner)) - _FIELDS - set(ARGUMENT_KEYS)) if isinstance(inner, Mapping) else []
    if len(keys) > 1 or (not keys and others):
        allowed = ", ".join(ARGUMENT_KEYS)
        raise InvalidRequest(
            f"{name} has the fields {', '.join(keys or others)}; pass its arguments as one of {allowed}."
        )
    arguments = _get(inner, keys[0]) if keys else None
    is_text = isinstance(arguments, str) and keys[0] != "input"  # the input of a custom tool is a text
    if (is_text and _is_object(arguments or "{}")) or arguments is None or isinstance(arguments, Mapping):
        return read, ""
    if isinstance(arguments, str) and not is_text:
        return read, ""
    return ToolCall(name=read.name, id=read.id), f"{name} has arguments that are no JSON object with each key once."


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object that everybody reads alike."""
    try:
        msgspec.json.decode(text, type=dict)
        json.loads(text, object_pairs_hook=_refuse_repeated)
    except (*UNREADABLE, ValueError):
        return False
    return True


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A key is repeated.")
    return fields
