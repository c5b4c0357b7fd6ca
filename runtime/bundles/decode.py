"""Reads JSON that comes from outside into typed records: whatever is wrong with it is one error of the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def decode_json(
    raw: bytes | str,
    kind: type[T] | msgspec.json.Decoder[T],
    say: Callable[[str], Exception],
    upgrade: Callable[[Any], Any] | None = None,
) -> T:
    """The JSON text ``raw`` as ``kind``, a type or a ready decoder of it.

    ``upgrade`` rewrites what an earlier version wrote; it needs a type.

    Raises what ``say`` makes of the reason: a syntax error, a field that does not fit, bytes that are not UTF-8, or
    brackets nested too deep.

    >>> decode_json(b'{"a": [1]}', dict[str, list[int]], ValueError)
    {'a': [1]}
    """
    try:
        if isinstance(kind, msgspec.json.Decoder):
            return kind.decode(raw)
        if upgrade is None:
            return msgspec.json.decode(raw, type=kind)
        return msgspec.convert(upgrade(msgspec.json.decode(raw)), type=kind)
    except RecursionError as error:
        raise say("brackets are nested too deep") from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise say(str(error)) from error
