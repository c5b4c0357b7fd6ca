"""The base of every record that callers see."""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from groundwire.runtime.decode import decode_json
from groundwire.runtime.errors import InvalidRequest

R = TypeVar("R", bound="Record")

Probability: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Milliseconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
"""Above 0, up to about twelve days."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
"""1 or more."""


class Record(msgspec.Struct, frozen=True):
    """Base of the records: a JSON form, and back."""

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read ``to_json``'s form; InvalidRequest names the field that does not fit."""
        return decode_json(text, cls, lambda reason: InvalidRequest(f"Not a {cls.__name__}: {reason}."))


def check_record(value: Any, kind: type[R]) -> R:
    """``value`` when it is a ``kind`` whose fields have the types and ranges of their annotations.

    msgspec checks what it decodes and nothing that is constructed. InvalidRequest names the field and what is allowed.
    """
    if not isinstance(value, kind):
        raise InvalidRequest(f"{kind.__name__.lower()} is {type(value).__name__}; pass an instance of {kind.__name__}.")
    try:
        checked: R = _check_cached(value)
        return checked
    except TypeError:  # a field holds something that has no hash
        return _check(value)


def _check(value: R) -> R:
    kind = type(value)
    try:
        with _LOCK:
            return msgspec.convert(msgspec.to_builtins(value), kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(_explain(value, str(error))) from error


def _explain(value: Record, error: str) -> str:
    """What msgspec says about a field, with the field's name, what was given, and the allowed words."""
    name, location = type(value).__name__, _LOCATION.search(error)
    if location is None:
        return f"{name} is not usable: {error}."
    given: Any = value
    allowed: tuple[Any, ...] = ()
    for field in location[1].split("."):
        if isinstance(given, msgspec.Struct):
            hint = get_type_hints(type(given)).get(field)
            allowed = get_args(hint) if get_origin(hint) is Literal else ()
        given = getattr(given, field, given)
    reason = f"use one of {', '.join(map(str, allowed))}" if allowed else error[: location.start()]
    return f"{name}.{location[1]} is {given!r}; {reason}."


_LOCATION = re.compile(r" - at `\$\.([\w.]+)[^`]*`$")


_LOCK = threading.Lock()
"""msgspec reads a type's annotations at its first use, and crashes when two threads do so at the same time."""
_check_cached = lru_cache(64)(_check)
"""The same options come with request after request."""
