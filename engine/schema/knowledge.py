"""Items of knowledge: a text, a passage with its title and source, a tool call with its result, or a JSON object.

An item is read as one text. A JSON object becomes lines of keys and values, with a line for each record of a list, so
that a value stays beside the record and the key that it belongs to. Units and currencies that keys name are written
after the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from groundwire.runtime.arguments import name_values
from groundwire.runtime.errors import InvalidRequest

from .base import Record

CallStatus: TypeAlias = Literal["succeeded", "failed", "pending"]
"""What came of a call; a pending call was accepted, and is not done."""
STATUSES: tuple[CallStatus, ...] = ("succeeded", "failed", "pending")


class Passage(Record, frozen=True, kw_only=True):
    """A text with what is known about it."""

    text: str
    title: str = ""
    """Read before the text; empty for none."""
    source: str = ""
    """Where the text is from, such as a URL; it is not read."""


class ToolCall(Record, frozen=True, kw_only=True):
    """A call of a tool, and what it returned."""

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    result: Any = None
    """Any JSON, or the text of JSON; None for no result."""
    status: CallStatus | None = None
    """None reads it of the result (``find_status``)."""
    id: str = ""
    """What the result names the call by; it is not read."""


KnowledgeItem: TypeAlias = str | Passage | ToolCall | Mapping[str, Any]
"""An item of knowledge. A JSON object with the fields of a ``Passage`` or of a ``ToolCall`` is one."""
_CALL_FIELDS = frozenset(ToolCall.__struct_fields__)
_PASSAGE_FIELDS = frozenset(Passage.__struct_fields__)
_ERRORS = ("error", "errors", "is_error", "isError", "error_code")
_SUCCESS = ("success", "ok")
_ERROR_TEXT = re.compile(
    r"\s*(?:(?:[\w.]*(?:error|exception)|failed|failure)\b[^\w]|traceback\b|tool execution failed)", re.I
)
"""How a text begins that a tool gives in place of a result."""
UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)
"""What the decoder of JSON raises for a text: it is none, is nested too deeply, or has lone surrogates."""


def is_call(value: Mapping[Any, Any]) -> bool:
    """Whether a JSON object is a tool call: it has a name and arguments, and no other fields than a ``ToolCall``."""
    return (
        isinstance(value.get("arguments"), Mapping)
        and isinstance(value.get("name"), str)
        and set(value) <= _CALL_FIELDS
    )


def read_call(value: Any, name: str = "call") -> ToolCall:
    """Return a tool call.

    Args:
        value: A ``ToolCall``, or a JSON object with its fields.
        name: What messages call it.

    Returns:
        The call.

    Raises:
        InvalidRequest: It is neither, or a field is of another type.
    """
    if isinstance(value, ToolCall):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass a ToolCall, or an object with its fields.")
    if not set(value) <= _CALL_FIELDS or "name" not in value:
        raise InvalidRequest(
            f"{name} has the fields {', '.join(map(str, value)) or 'none'}; a call has a name, and may have "
            f"{', '.join(field for field in ToolCall.__struct_fields__ if field != 'name')}."
        )
    try:
        return msgspec.convert(dict(value), ToolCall)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{name} cannot be used: {error}{name_values(ToolCall, str(error))}.") from error


def find_status(call: ToolCall) -> CallStatus:
    """Return what came of a call: its status, else what its result says.

    Without a result it is pending; with an error in the place of a result (a field, a text that begins as one, a
    ``status_code`` of HTTP from 400 on) it has failed.

    >>> find_status(ToolCall(name="refund", result={"error": "closed"}))
    'failed'
    """
    if call.status is not None:
        return call.status
    result = read_result(call.result)
    if result is None:
        return "pending"
    if isinstance(result, str):
        return "failed" if _ERROR_TEXT.match(result) else "succeeded"
    if not isinstance(result, Mapping):
        return "succeeded"
    code = result.get("status_code", result.get("statusCode"))
    has_error = result.get("status") == "error" or (isinstance(code, int) and 400 <= code < 600)
    has_failed = any(result.get(key) for key in _ERRORS) or any(result.get(key) is False for key in _SUCCESS)
    return "failed" if has_error or has_failed else "succeeded"


def read_result(result: Any) -> Any:
    """Return a result as JSON; a text that is no JSON object or list stays a text."""
    if isinstance(result, str) and result.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(result)
        except UNREADABLE:
            return result
    return result


def write_item(item: Any, name: str) -> Any:
    """Return the text that is read of an item of knowledge; anything that is none as it is.

    Args:
        item: The item.
        name: What messages call it.

    Returns:
        A text, for an item that can be used.

    Raises:
        InvalidRequest: A field of a passage or a call is of another type.
    """
    if isinstance(item, Mapping):
        if is_call(item):
            item = read_call(item, name)
        elif isinstance(item.get("text"), str) and set(item) <= _PASSAGE_FIELDS:
            item = _read_passage(item, name)
    if isinstance(item, ToolCall):
        return format_call(item)
    if isinstance(item, Passage):
        return f"{item.title}\n{item.text}" if item.title else item.text
    return format_record(item) if isinstance(item, Mapping) else item


def _read_passage(value: Mapping[str, Any], name: str) -> Passage:
    try:
        return msgspec.convert({key: text for key, text in value.items() if text is not None}, Passage)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{name} cannot be used: {error}.") from error


def format_call(call: ToolCall) -> str:
    """Return a call as lines: the tool, its arguments, its status if it has not succeeded, and its result.

    >>> print(format_call(ToolCall(name="find", arguments={"city": "Bonn"}, result=[{"name": "Inn", "walk_m": 90}])))
    tool: find
    city: Bonn
    result 1: name: Inn, walk: 90 m
    """
    status, result = find_status(call), read_result(call.result)
    parts = [f"tool: {call.name}" if call.name else "", format_record(call.arguments)]
    if status != "succeeded":
        parts.append(f"status: {status}")
    head = "\n".join(filter(None, parts))
    if isinstance(result, str):
        return "\n\n".join(filter(None, (head, result)))
    body = "" if result is None else format_record({"result": "none" if result == [] else result})
    return "\n".join(filter(None, (head, body)))


_LINE = re.compile(r"[\w.-][\w .-]{0,59}: ")


def is_record(text: str) -> bool:
    """Return whether a text is JSON, or nothing but lines of keys and values."""
    lines = text.splitlines()
    return text.lstrip().startswith(("{", "[")) or (bool(lines) and all(map(_LINE.match, lines)))


CURRENCIES: Mapping[str, str] = MappingProxyType(
    {
        "eur": "EUR",
        "usd": "USD",
        "gbp": "GBP",
        "chf": "CHF",
        "pence": "pence",
        "cents": "cents",
        "euros": "EUR",
        "dollars": "USD",
        "pounds": "GBP",
    }
)
UNITS: Mapping[str, str] = MappingProxyType(
    {
        **{unit: unit for unit in ("m", "km", "cm", "mm", "kg", "g", "mg", "ml", "ms", "litres", "miles")},
        **{unit: unit for unit in ("seconds", "minutes", "hours", "days")},
        "min": "minutes",
        "mins": "minutes",
        "sec": "seconds",
        "secs": "seconds",
        "c": "°C",
        "celsius": "°C",
        "f": "°F",
        "percent": "%",
        "pct": "%",
        "kwh": "kWh",
        "kw": "kW",
        "mb": "MB",
        "gb": "GB",
        "tb": "TB",
    }
)
"""The units that the last word of a key names."""
_MONEY = re.compile(
    r"price|cost|fee|fare|total|amount|paid|balance|refund|rate_per|excess|deposit|charge|rent|salary|premium|credit|"
    r"debit|net|gross|tariff|due_amount|claimed|budget|discount|value|fine|tip|tax|per_night|per_day|per_month"
)


def format_record(record: Mapping[Any, Any]) -> str:
    """Return an action or a tool result of an agent, a JSON object, as lines of keys and values.

    Args:
        record: Keys with values; objects inside it are written one below the other, and each object of a list in a line
            of its own.

    >>> print(format_record({"tool": "order", "result": {"id": 17, "items": ["pen", "ink"], "paid": True}}))
    tool: order
    result id: 17
    result items: pen, ink
    result paid: true
    >>> print(format_record({"inns": [{"name": "Lido", "price_per_night": 59, "currency": "EUR"}]}))
    inns 1: name: Lido, price per night: 59 EUR, currency: EUR
    """
    return "\n".join(f"{key}: {value}".rstrip() for key, value in _list_values(record, "", _find_currency(record, "")))


def _list_values(record: Mapping[Any, Any], before: str, currency: str) -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        name, unit = split_key(str(key), value, currency)
        name = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from _list_values(value, f"{name} ", _find_currency(value, currency))
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value, 1):
                yield f"{name} {number}", _format_line(item, currency)
        elif isinstance(value, list | tuple):
            yield name, ", ".join(_format_value(item, unit) for item in value)
        else:
            yield name, _format_value(value, unit)


def _format_line(item: Any, currency: str) -> str:
    """An item of a list in one line."""
    if not isinstance(item, Mapping):
        return _format_value(item, "")
    return ", ".join(f"{key}: {value}" for key, value in _list_values(item, "", _find_currency(item, currency)))


def _find_currency(record: Mapping[Any, Any], inherited: str) -> str:
    """The currency that a record names; else the one of the record around it."""
    currency = record.get("currency", record.get("currency_code"))
    return currency if isinstance(currency, str) and re.fullmatch(r"[A-Z]{3}", currency) else inherited


def split_key(key: str, value: Any, currency: str = "") -> tuple[str, str]:
    """Return the words of a key, and the unit or currency that it gives its numbers.

    >>> split_key("distance_to_beach_m", 350), split_key("price", 59, "EUR"), split_key("paid", True, "EUR")
    (('distance to beach', 'm'), ('price', 'EUR'), ('paid', ''))
    """
    *words, last = key.split("_")
    numbers = value if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
        return key.replace("_", " "), ""
    unit = CURRENCIES.get(last.lower()) or UNITS.get(last.lower(), "")
    if unit and words:
        return " ".join(words), unit
    if unit and last.lower() in CURRENCIES:
        return last, unit
    return key.replace("_", " "), currency if currency and _MONEY.search(key.lower()) else ""


def _format_value(value: Any, unit: str = "") -> str:
    if value is None:
        return "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text}{unit}" if unit == "%" else f"{text} {unit}" if unit else text


def list_records(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a result that have values of their own, from the outermost on."""
    if isinstance(value, Mapping):
        if any(not isinstance(item, Mapping | list | tuple) for item in value.values()):
            yield value
        for item in value.values():
            yield from list_records(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from list_records(item)
