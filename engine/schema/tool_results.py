"""Actions and tool results of an agent as text that models read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def format_record(record: Mapping[Any, Any]) -> str:
    """Return an action or a tool result of an agent, a JSON object, as lines of keys and values.

    Args:
        record: Keys with values; lists and objects inside it are written one below the other.

    >>> print(format_record({"tool": "order", "result": {"id": 17, "items": ["pen", "ink"], "paid": True}}))
    tool: order
    result id: 17
    result items: pen, ink
    result paid: true
    """
    return "\n".join(f"{key}: {value}" for key, value in _list_values(record, ""))


def _list_values(record: Mapping[Any, Any], before: str) -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        name = f"{before}{str(key).replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _list_values(value, f"{name} ")
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value, 1):
                yield from _list_values(item if isinstance(item, Mapping) else {"": item}, f"{name} {number} ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(_format_value, value))
        else:
            yield name, _format_value(value)


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
