"""The base of every record that callers see."""

from __future__ import annotations

from typing import Self

import msgspec

from groundwire.runtime.decode import decode_json
from groundwire.runtime.errors import InvalidRequest


class Record(msgspec.Struct, frozen=True):
    """Base of the records: a JSON form, and back."""

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read ``to_json``'s form; InvalidRequest names the field that does not fit."""
        return decode_json(text, cls, lambda reason: InvalidRequest(f"Not a {cls.__name__}: {reason}."))
