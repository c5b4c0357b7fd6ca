"""Decodes JSON that others wrote: every mistake is one kind of error, with its reason."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

MAX_TEXT = 1 << 26
"""Bytes of a line, or characters of an entry of an array, at most: enough for the largest knowledge that an engine
reads, every character escaped."""
MAX_VALUES = 1 << 23
"""Values in one of them, at most, counted by the signs that come before or between values, also within strings. Each
takes some 60 bytes of memory, however short it is written."""
_CHUNK = 1 << 16
_SPACE = re.compile(r"[ \t\n\r]*")


class MalformedText(ValueError):
    """What is wrong with a text, in words that fit after "line 3:"."""


def decode_json(text: str | bytes) -> Any:
    """Decode strict JSON; MalformedText for anything else, a repeated key and bytes that are not UTF-8 among it."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        _check_values(text)
        return json.loads(text, object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except (RecursionError, ValueError) as error:
        raise _explain(error) from error


def _explain(error: RecursionError | ValueError) -> MalformedText:
    if isinstance(error, MalformedText):
        return error
    if isinstance(error, UnicodeDecodeError):
        return MalformedText(f"not UTF-8 at byte {error.start + 1}")
    if isinstance(error, RecursionError):
        return MalformedText("not JSON that can be read: nested too deeply")
    return MalformedText(f"not JSON: {error}")


def _check_values(text: str) -> None:
    if len(text) > MAX_VALUES and sum(map(text.count, "[{,")) > MAX_VALUES:
        raise MalformedText(f"it has more than {MAX_VALUES:,} values")


class ArrayReader:
    """The entries of a JSON array, one after another, from a stream; no more than one entry is held."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self._decode_bytes = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decode = json.JSONDecoder(object_pairs_hook=_build_object, parse_constant=_refuse_constant).raw_decode
        self._text = ""
        self._at = 0
        self._is_complete = False

    def __iter__(self) -> Iterator[Any]:
        """The entries; MalformedText where they are not JSON, or one is too large, says so in terms of the entry."""
        number = 1
        try:
            self._expect("[")
            while number > 1 or self._peek() != "]":
                yield self._read_entry()
                if self._peek() == "]":
                    break
                self._expect(",")
                number += 1
            self._expect("]")
            if self._peek():
                raise MalformedText("there is more after its end")
        except (RecursionError, ValueError) as error:
            raise MalformedText(f"entry {number}: {_explain(error)}") from error

    def _read_entry(self) -> Any:
        self._peek()
        while True:
            _check_values(self._text)
            try:
                entry, end = self._decode(self._text, self._at)
            except (MalformedText, RecursionError):
                raise
            except ValueError:
                if not self._fill():
                    raise
            else:
                if end < len(self._text) or not self._fill():  # a number may go on
                    self._at = end
                    return entry

    def _peek(self) -> str:
        """The next sign that is not a space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._text) or not self._fill():
                return self._text[self._at : self._at + 1]

    def _expect(self, expected: str) -> None:
        if (character := self._peek()) != expected:
            raise MalformedText(f"not JSON: {expected!r} is expected, not {character or 'the end'!r}")
        self._at += 1

    def _fill(self) -> bool:
        """Read on, as much as is held, so that an entry is tried few times; False at the end."""
        if self._is_complete:
            return False
        held = self._text[self._at :]
        if len(held) > MAX_TEXT:
            raise MalformedText(f"it is longer than {MAX_TEXT:,} characters")
        part = self._stream.read(max(_CHUNK, len(held)))
        self._is_complete = not part
        self._text, self._at = held + self._decode_bytes(part, final=not part), 0
        return True


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        seen = set[str]()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise MalformedText(f"the key {repeated!r} is there more than once; keep one of them")
    return built


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedText(f"not JSON: {name} is no JSON number")
