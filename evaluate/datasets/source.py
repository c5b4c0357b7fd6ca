"""The file of a dataset: its text, its records, and the line or entry of each."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from groundwire.engine.schema.base import Record
from groundwire.files.json_text import MalformedText, decode_json
from groundwire.files.rows import Row, check_header, split_rows
from groundwire.files.sources import open_source, read_parquet, strip_gzip, translate_read_errors
from groundwire.runtime.errors import InvalidRequest

from .examples import Example


class LocatedExample(NamedTuple):
    """An example and where the file has it: "line 12", "entry 3"."""

    where: str
    example: Example


class Broken(NamedTuple):
    """A line or entry that should hold an example, and what is wrong with it."""

    where: str
    why: str


class LeftOut(Record, frozen=True):
    """The broken examples of a file that were not read."""

    examples: int
    first: tuple[str, ...]
    """Where the file has the first of them: "line 12", "entry 3"."""


Items: TypeAlias = Iterator[LocatedExample | Broken]


class Format(NamedTuple):
    """A file format."""

    about: str
    """A description for the list of formats."""
    sniff: Callable[[Source], bool]
    """Whether a file looks like it, by its name, its columns or its first record."""
    read: Callable[[Source], Items]
    """Every example of the file, or what is wrong with it; nothing is left out silently."""


class ExampleError(ValueError):
    """What is wrong with one example; ``convert_entries`` adds where it is."""


T = TypeVar("T")
ALLOWED = "; allowed are "
"""Divides what an example has from what it may have."""


class Source:
    """A file, read whole; the sets of the field have at most some hundred thousand examples.

    It is text, with or without a byte order mark, or Parquet, whose rows are read as the entries of a JSON array. Text
    may be compressed by gzip. ``columns`` are the names of fields that are neither Groundwire's own nor an alias;
    ``score_columns`` have the scores of other tools.
    """

    def __init__(
        self, path: Path, columns: Mapping[str, str] = MappingProxyType({}), score_columns: Sequence[str] = ()
    ) -> None:
        """Read ``path``; InvalidRequest when it cannot be read, is empty, or is not UTF-8."""
        self.path = path
        self.columns = columns
        self.score_columns = score_columns
        self.stem = Path(path.name.lower().removesuffix(".gz")).stem
        self._rows: list[dict[str, Any]] | None = None
        self.text = ""
        if strip_gzip(path) == ".parquet":
            self._rows = list(read_parquet(path))
        else:
            self.text = self._read_text()
        if not self._rows and not self.text.strip():
            raise InvalidRequest(f"{path} is empty; give a file of labelled responses.")

    def _read_text(self) -> str:
        with open_source(self.path) as stream, translate_read_errors(self.path):
            raw = stream.read()
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise InvalidRequest(f"{self.path} is not UTF-8 (line {line}); convert it first.") from error

    @cached_property
    def is_json(self) -> bool:
        """Whether it starts like a JSON array or like JSON Lines."""
        return self._rows is not None or self.text.lstrip()[0] in "[{"

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first record of a JSON file; empty when there is none that can be read."""
        if not self.is_json:
            return {}
        try:
            entry = next((entry for _, entry in self.entries() if not isinstance(entry, ExampleError)), None)
        except InvalidRequest:
            return {}
        return entry if isinstance(entry, dict) else {}

    def entries(self) -> Iterator[tuple[str, Any]]:
        """The entries of a JSON array or the lines of JSON Lines, each with where it is; an ExampleError if bad.

        InvalidRequest when the array itself is damaged: then nothing after the damage can be read.
        """
        if self._rows is not None or self.text.lstrip()[0] == "[":
            for number, entry in enumerate(self._array if self._rows is None else self._rows, 1):
                yield f"entry {number}", entry
            return
        for number, line in enumerate(self.text.split("\n"), 1):
            if line.strip():
                try:
                    yield f"line {number}", decode_json(line)
                except MalformedText as error:
                    yield f"line {number}", ExampleError(str(error))

    @cached_property
    def _array(self) -> list[Any]:
        try:
            entries: list[Any] = decode_json(self.text)
        except MalformedText as error:
            raise InvalidRequest(f"{self.path} cannot be read: {error}. Fix the file.") from error
        return entries

    def header(self, delimiter: str | None = None) -> tuple[str, ...]:
        """The columns that the first line names; empty when it cannot be read as a table's."""
        try:
            return tuple(next(self._rows_of_table(delimiter)).cells)
        except StopIteration:
            return ()

    def has(self, columns: Iterable[str], delimiter: str | None = None) -> bool:
        """Whether it is a table with these columns."""
        return not self.is_json and set(columns) <= set(self.header(delimiter))

    def _rows_of_table(self, delimiter: str | None) -> Iterator[Row]:
        return split_rows(io.StringIO(self.text, newline="\n"), delimiter)

    def table(
        self, columns: Sequence[str], delimiter: str | None = None
    ) -> Iterator[tuple[str, dict[str, str] | ExampleError]]:
        """The rows of a table by column (``split_rows``), each with the line it starts on; an ExampleError if bad.

        InvalidRequest when one of ``columns`` is missing.
        """
        names = self.header(delimiter)
        if absent := [column for column in columns if column not in names]:
            raise InvalidRequest(
                f"{self.path} has no column {' and no column '.join(map(repr, absent))}; "
                f"it has {', '.join(map(repr, names))}."
            )
        if problem := check_header(names, columns):
            raise InvalidRequest(f"{self.path} cannot be read: {problem}.")
        rows = self._rows_of_table(delimiter)
        next(rows)
        for row in rows:
            where = f"line {row.line}"
            if row.problem:
                yield where, ExampleError(row.problem)
            elif len(row.cells) != len(names):
                yield where, ExampleError(f"{len(row.cells)} cells, but the first line names {len(names)} columns")
            else:
                yield where, dict(zip(names, row.cells, strict=True))


def convert_entries(
    entries: Iterable[tuple[str, T | ExampleError]], convert: Callable[[int, T], Iterable[Example]]
) -> Items:
    """The examples of every entry, counted from 0; an ExampleError becomes a Broken."""
    for number, (where, entry) in enumerate(entries):
        if isinstance(entry, ExampleError):
            yield Broken(where, str(entry))
            continue
        try:
            for example in convert(number, entry):
                yield LocatedExample(where, example)
        except ExampleError as error:
            yield Broken(where, str(error))


def convert_record(kind: type[T], entry: Any) -> T:
    """``entry`` as a typed record; ExampleError names the field that does not fit."""
    try:
        return msgspec.convert(entry, kind)
    except msgspec.ValidationError as error:
        raise ExampleError(str(error)) from error


def parse_choice(name: str, value: str, allowed: dict[str, T]) -> T:
    """What ``value`` means, whatever the case of its letters; ExampleError names what is allowed."""
    try:
        return allowed[value.strip().lower()]
    except KeyError as error:
        raise ExampleError(f"{name} is {value!r}{ALLOWED}{', '.join(map(repr, allowed))}") from error


def strip_texts(*texts: str) -> tuple[str, ...]:
    """The texts that hold a word, without the white space around them."""
    return tuple(text.strip() for text in texts if text.strip())
