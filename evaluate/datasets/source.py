"""A file of labelled responses as the loaders see it: its text, its records and where each of them stands."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from groundwire.runtime.errors import InvalidRequest

from .examples import Row


class Found(NamedTuple):
    """A row and where it stands: "line 12", "entry 3"."""

    where: str
    row: Row


class Broken(NamedTuple):
    """A place that should hold a row, and what is wrong with it."""

    where: str
    why: str


Items: TypeAlias = Iterator[Found | Broken]


class Format(NamedTuple):
    """One layout of files."""

    about: str
    """What it is, for the list of formats."""
    sniff: Callable[[Source], bool]
    """Whether a file looks like it, by its name, its columns or its first record."""
    read: Callable[[Source], Items]
    """Every row of the file, or what is wrong in its place; nothing is left out without saying so here."""


class RowError(ValueError):
    """What is wrong with one row; ``rows`` puts the place in front of it."""


T = TypeVar("T")

if TYPE_CHECKING:
    from _csv import Reader as Cells


class Source:
    """A file, read whole; the sets of the field have at most some hundred thousand rows."""

    def __init__(self, path: Path) -> None:
        """Read ``path`` as UTF-8, with or without a byte order mark; InvalidRequest when that is impossible."""
        try:
            self.text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise InvalidRequest(f"{path} is not UTF-8 (line {line}); convert it first.") from error
        if not self.text.strip():
            raise InvalidRequest(f"{path} is empty; give a file of labelled responses.")
        self.path = path
        self.stem = path.stem.lower()

    @cached_property
    def is_json(self) -> bool:
        """Whether it starts like a JSON array or like JSON Lines."""
        return self.text.lstrip()[0] in "[{"

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first record of a JSON file; empty when there is none that can be read."""
        if not self.is_json:
            return {}
        try:
            entry = next((entry for _, entry in self.entries() if not isinstance(entry, RowError)), None)
        except InvalidRequest:
            return {}
        return entry if isinstance(entry, dict) else {}

    def entries(self) -> Iterator[tuple[str, Any]]:
        """The entries of a JSON array or the lines of JSON Lines, with their places; a RowError in place of a bad line.

        InvalidRequest when the array itself is damaged: then nothing behind the damage can be read.
        """
        if self.text.lstrip()[0] == "[":
            for number, entry in enumerate(self._array, 1):
                yield f"entry {number}", entry
            return
        for number, line in enumerate(self.text.split("\n"), 1):
            if line.strip():
                try:
                    yield f"line {number}", msgspec.json.decode(line)
                except msgspec.DecodeError as error:
                    yield f"line {number}", RowError(f"not JSON: {error}")

    @cached_property
    def _array(self) -> list[Any]:
        try:
            entries: list[Any] = msgspec.json.decode(self.text)
        except msgspec.DecodeError as error:
            at = re.search(r"byte (\d+)", str(error))
            line = self.text.encode()[: int(at[1])].count(b"\n") + 1 if at else self.text.count("\n") + 1
            raise InvalidRequest(f"{self.path} is not JSON (line {line}): {error}. Mend the file.") from error
        return entries

    def header(self, delimiter: str = ",") -> tuple[str, ...]:
        """The columns that the first line names; empty when it cannot be read as a table's."""
        try:
            return tuple(next(self._cells(delimiter), ()))
        except csv.Error:
            return ()

    def has(self, columns: Iterable[str], delimiter: str = ",") -> bool:
        """Whether it is a table with these columns."""
        return not self.is_json and set(columns) <= set(self.header(delimiter))

    def _cells(self, delimiter: str) -> Cells:
        text = io.StringIO(self.text, newline="")
        if delimiter == "\t":
            return csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
        return csv.reader(text, delimiter=delimiter, strict=True)

    def table(self, columns: Sequence[str], delimiter: str = ",") -> Iterator[tuple[str, dict[str, str] | RowError]]:
        """The rows of a table by column, with the line each starts on; a RowError in place of a bad row.

        Cells of a comma-separated table may be quoted and then hold line breaks; those of a tab-separated one may not,
        and a quote in them is a quote. InvalidRequest when one of ``columns`` is missing.
        """
        names = self.header(delimiter)
        if absent := [column for column in columns if column not in names]:
            raise InvalidRequest(
                f"{self.path} has no column {' and no column '.join(map(repr, absent))}; "
                f"it has {', '.join(map(repr, names))}."
            )
        if twice := [column for column in columns if names.count(column) > 1]:
            raise InvalidRequest(f"{self.path} names the column {twice[0]!r} twice; keep one of them.")
        cells = self._cells(delimiter)
        next(cells)
        while True:
            line = f"line {cells.line_num + 1}"
            try:
                row = next(cells)
            except StopIteration:
                return
            except csv.Error as error:  # from here on no one can say where a row ends
                yield line, RowError(f"not a row of a table ({error}); what follows was not read")
                return
            if row and len(row) != len(names):
                yield line, RowError(f"{len(row)} cells, but the first line names {len(names)} columns")
            elif row:
                yield line, dict(zip(names, row, strict=True))


def rows(entries: Iterable[tuple[str, T | RowError]], convert: Callable[[int, T], Iterable[Row]]) -> Items:
    """Convert every entry, counted from 0, into its rows; a RowError from either becomes a Broken in its place."""
    for number, (where, entry) in enumerate(entries):
        if isinstance(entry, RowError):
            yield Broken(where, str(entry))
            continue
        try:
            for row in convert(number, entry):
                yield Found(where, row)
        except RowError as error:
            yield Broken(where, str(error))


def record(kind: type[T], entry: Any) -> T:
    """``entry`` as a typed record; RowError names the field that does not fit."""
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        raise RowError(str(error)) from error


def choice(name: str, value: str, allowed: dict[str, T]) -> T:
    """What ``value`` stands for, whatever the case of its letters; RowError names what is allowed."""
    try:
        return allowed[value.strip().lower()]
    except KeyError as error:
        raise RowError(f"{name} is {value!r}; allowed are {', '.join(map(repr, allowed))}") from error


def number(name: str, value: str) -> float | None:
    """A cell as a number from 0 to 1; None for an empty cell, RowError for anything else."""
    if not value.strip():
        return None
    try:
        found = float(value)
    except ValueError as error:
        raise RowError(f"{name} is {value!r}; allowed are numbers from 0 to 1") from error
    if not 0.0 <= found <= 1.0:
        raise RowError(f"{name} is {value}; allowed are numbers from 0 to 1")
    return found


def texts(*given: str) -> tuple[str, ...]:
    """The texts that hold a word, without the blanks around them."""
    return tuple(text.strip() for text in given if text.strip())
