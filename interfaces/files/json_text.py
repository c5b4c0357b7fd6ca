"""Decodes JSON that others wrote: every mistake is one kind of error, with its reason."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class MalformedText(ValueError):
    """What is wrong with a text, in words that fit after "line 3:"."""


def decode_json(text: str | bytes) -> Any:
    """Decode strict JSON; MalformedText for anything else, a repeated key and bytes that are not UTF-8 among it."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except MalformedText:
        raise
    except UnicodeDecodeError as error:
        raise MalformedText(f"not UTF-8 at byte {error.start + 1}") from error
    except RecursionError as error:
        raise MalformedText("not JSON that can be read: nested too deeply") from error
    except ValueError as error:
        raise MalformedText(f"not JSON: {error}") from error


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise MalformedText(f"the key {repeated!r} is there more than once; keep one of them")
    return built


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedText(f"not JSON: {name} is no JSON number")
