"""A file of results that a stopped run goes on with: one JSON line each, appended and flushed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Generic, Protocol, TextIO, TypeVar

import msgspec

from groundwire.runtime.errors import InvalidRequest


class Entry(Protocol):
    """A line of the file, a msgspec struct, or as much of it as its reader needs; the first field is the line's own."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def made_with(self) -> str:
        """The signature of what it was computed with."""
        ...


E = TypeVar("E", bound=Entry)


class ResultsFile(Generic[E]):
    """The results that stand in a file already, and a way to add others.

    ``kind`` is the msgspec type of a line; fields it does not name are not read. A line that a killed run left half
    written is cut off. Raises InvalidRequest when the file holds something else, and leaves it as it is.
    """

    def __init__(self, path: Path, kind: type[E]) -> None:
        self.path = path
        self.entries = self._read(kind)
        self._file: TextIO | None = None

    def check(self, signature: str) -> None:
        """Raise InvalidRequest when an entry was made with other settings: results of two settings are never mixed."""
        for entry in self.entries:
            if entry.made_with != signature:
                raise InvalidRequest(
                    f"{self.path} was made with other settings ({entry.made_with}); now they are {signature}. "
                    "Choose another --out, or remove the file."
                )

    def append(self, line: msgspec.Struct) -> None:
        """Add one result; it is on disk when this returns."""
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        self._file.write(msgspec.json.encode(line).decode() + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file, if anything was written."""
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
        whole = raw[: raw.rfind(b"\n") + 1]
        decoder: msgspec.json.Decoder[E] = msgspec.json.Decoder(kind)
        try:
            # Not splitlines(): a text may hold other separators that JSON leaves as they are.
            found = [decoder.decode(text) for text in whole.split(b"\n") if text]
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"{self.path} is not a file of results ({error}); choose another name.") from error
        rest = raw[len(whole) :]
        if rest:
            # Only what looks like the beginning of one of our lines is cut off, not a file that never was ours.
            begins = b'{"' + kind.__struct_fields__[0].encode() + b'":'
            if not (rest.startswith(begins) or begins.startswith(rest)):
                raise InvalidRequest(f"{self.path} is not a file of results; choose another name.")
            with self.path.open("rb+") as file:
                file.truncate(len(whole))
        return found
