"""Reads JSON that comes from outside into typed records: whatever is wrong with it is one error of the tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from ..errors import BundleError

T = TypeVar("T")
SCHEMA = 3
"""The schema of manifests and calibrations, which changes with the meaning of a field."""


class _Versioned(msgspec.Struct):
    schema: int


def decode_json(
    raw: bytes | str,
    kind: type[T] | msgspec.json.Decoder[T],
    say: Callable[[str], Exception],
) -> T:
    """The JSON text ``raw`` as ``kind``, a type or a ready decoder of it.

    Raises what ``say`` makes of the reason: a syntax error, a field that does not fit, bytes that are not UTF-8, or
    brackets nested too deep.

    >>> decode_json(b'{"a": [1]}', dict[str, list[int]], ValueError)
    {'a': [1]}
    """
    try:
        if isinstance(kind, msgspec.json.Decoder):
            return kind.decode(raw)
        return msgspec.json.decode(raw, type=kind)
    except RecursionError as error:
        raise say("brackets are nested too deep") from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise say(str(error)) from error


def decode_versioned(raw: bytes, kind: type[T], path: Path, say: Callable[[str], Exception]) -> T:
    """The JSON text of a file of ``SCHEMA``, as ``decode_json`` reads it; BundleError when it has another schema."""
    schema = decode_json(raw, _Versioned, say).schema
    if schema != SCHEMA:
        raise BundleError(
            f"{path} has schema {schema}; this version of Groundwire reads {SCHEMA}. "
            "Install the version that wrote it, or write it again with this version."
        )
    return decode_json(raw, kind, say)
