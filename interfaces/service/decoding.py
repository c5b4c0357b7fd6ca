"""Decodes request bodies into typed records; every mistake is a Refusal with the path of the wrong field."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from groundwire.runtime.arguments import suggest

from .problems import Refusal

T = TypeVar("T")
_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")
_FIELD_NAME = re.compile(r"(?:required|unknown) field `(?P<name>[^`]*)`")


def decode(body: bytes | str, decoder: msgspec.json.Decoder[T]) -> T:
    """The record in a body: Refusal ``malformed`` if it is no JSON, ``invalid`` if a field does not fit."""
    try:
        return decoder.decode(body)
    except RecursionError as error:
        raise Refusal("malformed", "The body is nested too deeply; pass flat records.") from error
    except msgspec.ValidationError as error:
        reason, path = split_path(str(error))
        raise Refusal("invalid", f"{reason}{_name_fields(reason, path, decoder.type)}.", path) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Refusal("malformed", f"The body is not JSON: {error}.") from error


def split_path(message: str) -> tuple[str, str]:
    """A message of msgspec apart from the path that it ends with, to which a missing or unknown field is added.

    >>> split_path("Expected `str`, got `int` - at `$.knowledge[0]`")
    ('Expected `str`, got `int`', '$.knowledge[0]')
    >>> split_path("Object missing required field `response`")
    ('Object missing required field `response`', '$.response')
    """
    match = _PATH.search(message)
    reason, path = (message[: match.start()], match["path"]) if match else (message, "$")
    name = _FIELD_NAME.search(reason)
    return reason, f"{path}.{name['name']}" if name else path


def _name_fields(reason: str, path: str, record: Any) -> str:
    """For an unknown field of the body itself: the nearest name, and those that there are."""
    name = _FIELD_NAME.search(reason)
    is_struct = isinstance(record, type) and issubclass(record, msgspec.Struct)
    if name is None or "unknown" not in reason or path != f"$.{name['name']}" or not is_struct:
        return ""
    known = [field.encode_name for field in msgspec.structs.fields(record)]
    return f"{suggest(name['name'], known)}; allowed are {', '.join(known)}"
