"""A file of results that an interrupted run can continue: one JSON line per result, appended and flushed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Generic, Protocol, TextIO, TypeVar

import msgspec

from groundwire.runtime.errors import InvalidRequest


class Entry(Protocol):
    """A line of the file as a msgspec struct, with at least its first field; other fields may be left out."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def made_with(self) -> str:
        """The signature of the settings it was computed with."""
        ...


E = TypeVar("E", bound=Entry)


class Signed(msgspec.Struct, frozen=True):
    """The signature of a result, without the rest of its fields."""

    signature: str


class ResultsFile(Generic[E]):
    """The results that a file has already, and a way to append more.

    ``kind`` is the msgspec type of a line; fields it does not name are not read. An incomplete last line, which a
    killed run leaves, is cut off. Raises InvalidRequest if the file is not a file of results, and does not change it.
    """

    def __init__(self, path: Path, kind: type[E]) -> None:
        self.path = path
        self.entries = self._read(kind)
        self._file: TextIO | None = None

    def check(self, signature: str) -> None:
        """Raise InvalidRequest if an entry was made with other settings: results of two settings are never mixed."""
        for entry in self.entries:
            if entry.made_with != signature:
                raise InvalidRequest(
                    f"{self.path} was made with other settings: {entry.made_with}. The settings now are {signature}. "
                    "Choose another --out, or remove the file."
                )

    def append(self, line: msgspec.Struct) -> None:
        """Append one result and flush the file."""
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(msgspec.json.encode(line).decode() + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file if anything was appended."""
        if self._file is not None:
            self._file.close()

    def _read(self, kind: type[E]) -> list[E]:
        if not self.path.exists():
            if not self.path.parent.is_dir():
                raise InvalidRequest(f"{self.path}: the directory {self.path.parent} does not exist; create it.")
            return []
        try:
            raw = self.path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"{self.path} cannot be read: {error.strerror}.") from error
        complete = raw[: raw.rfind(b"\n") + 1]
        decoder: msgspec.json.Decoder[E] = msgspec.json.Decoder(kind)
        try:
            # Not splitlines(): a text may contain other line separators, which JSON does not escape.
            entries = [decoder.decode(text) for text in complete.split(b"\n") if text]
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"{self.path} is not a file of results ({error}); choose another file.") from error
        rest = raw[len(complete) :]
        if rest:
            # Only the beginning of a results line is cut off; any other text means that the file is someone else's.
            prefix = b'{"' + kind.__struct_fields__[0].encode() + b'":'
            if not (rest.startswith(prefix) or prefix.startswith(rest)):
                raise InvalidRequest(f"{self.path} is not a file of results; choose another file.")
            with self.path.open("rb+") as file:
                file.truncate(len(complete))
        return entries
