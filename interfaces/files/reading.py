"""Reads requests from JSON Lines, JSON, CSV or Parquet, one by one, with the problem of each that is not usable."""

from __future__ import annotations

import codecs
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundwire.runtime.errors import GroundwireError, InvalidRequest

from .columns import AmbiguousColumns, UnknownColumns, find_columns, read_passages, rename_fields, suggest_columns
from .json_text import MAX_TEXT, ArrayReader, MalformedText, decode_json
from .rows import check_header, split_rows
from .sources import (
    list_text_files,
    open_source,
    read_folder,
    read_parquet,
    split_lines,
    strip_gzip,
    translate_read_errors,
)

T = TypeVar("T")


class Line(NamedTuple):
    """One request of the input: its number, and either its fields or its problem.

    The number, from 1, is its line in JSON Lines, its first line in CSV, and of the entry elsewhere.
    """

    number: int
    row: dict[str, Any] | None
    problem: str = ""
    source: str = ""
    """Its file and its number there, if a folder was read."""


NEEDED = frozenset({"response", "knowledge"})
"""Columns that a table of responses must have, by default. Triples are knowledge too."""
LINES_BEFORE_COLUMN = 100
"""Lines that may come before the first line that has a field which ``needed`` or ``columns`` names."""

UNREADABLE_LINES = 10
"""Number of unreadable first lines after which the file counts as another format."""


class UntilError(Iterator[T]):
    """Items that end where their source raises, so that what is in flight is finished first; see ``raise_error``."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._error: GroundwireError | None = None

    def __next__(self) -> T:
        if self._error is not None:
            raise StopIteration
        try:
            return next(self._items)
        except GroundwireError as error:
            self._error = error
            raise StopIteration from error

    def raise_error(self) -> None:
        """Raise the error that ended the items, if one did."""
        if self._error is not None:
            raise self._error


@contextmanager
def read_lines(
    source: Path, needed: Set[str] = NEEDED, columns: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Iterator[Line]]:
    """Open a file (``-`` is standard input) and yield its requests.

    ``.csv`` and ``.tsv`` are tables with a header (``find_delimiter``), ``.parquet`` and folders (``read_folder``) need
    the extra ``parquet``, and every other file is JSON Lines, one JSON array, or one object if its name ends in .json;
    standard input that does not begin like JSON is a table. A folder may have files of JSON, which are read by name
    (``list_text_files``). Each may be compressed by gzip. ``needed`` are the columns that a table must have,
    ``columns`` their names where these are neither Groundwire's own nor an alias. A line that cannot be read is a
    problem, and the others go on. Raises UnknownColumns if the header of a table lacks one of these columns, or if no
    line among the first hundred has it; and InvalidRequest, also while lines are read, if the file cannot be read, or
    none of its first lines; ``UntilError`` puts that off.
    """
    if source.is_dir() and (files := list_text_files(source)):
        yield _check_columns(_read_files(files, needed, columns), needed, columns)
        return
    if strip_gzip(source) == ".parquet" or source.is_dir():
        rows = enumerate(read_folder(source) if source.is_dir() else read_parquet(source), 1)
        yield _check_columns((check_row(number, row, columns) for number, row in rows), needed, columns)
        return
    with open_source(source) as stream:
        lines = _translate(source, _read_stream(source, stream, needed, columns))
        yield _check_columns(lines, needed, columns)


def _read_files(files: Sequence[Path], needed: Set[str], columns: Mapping[str, str]) -> Iterator[Line]:
    """The requests of several files, numbered through; without an id of their own they have the file's name."""
    numbers = itertools.count(1)
    for file in files:
        with open_source(file) as stream:
            for line in _translate(file, _read_stream(file, stream, needed, columns)):
                source = f"{file.name}:{line.number}"
                row = None if line.row is None else {"id": source, **line.row}
                yield Line(next(numbers), row, line.problem, source)


def _check_columns(lines: Iterator[Line], needed: Set[str], columns: Mapping[str, str]) -> Iterator[Line]:
    """The same lines; UnknownColumns when none of the first ones has a field of ``needed`` or of ``columns``.

    One line is read ahead, and more only while a field has not been seen.
    """
    absent, seen, first = {*needed, *columns}, dict[str, None](), list[Line]()
    for line in itertools.islice(lines, LINES_BEFORE_COLUMN):
        first.append(line)
        if line.row is not None:
            seen |= dict.fromkeys(line.row)
            absent -= line.row.keys() | ({"knowledge"} - columns.keys() if "triples" in line.row else set())
        if not absent:
            break
    if absent and any(line.row is not None for line in first):
        names = " and no line has ".join(columns.get(field, field) for field in sorted(absent))
        some = f"the first {LINES_BEFORE_COLUMN} lines" if len(first) == LINES_BEFORE_COLUMN else "the input"
        raise UnknownColumns(
            f"No line has {names}; other fields of {some} are {', '.join(map(str, seen)) or 'none'}. "
            f"{suggest_columns(absent, columns)}"
        )
    if len(first) >= UNREADABLE_LINES and all(line.row is None for line in first):
        raise InvalidRequest(
            f"None of the first {len(first)} lines can be read (line {first[0].number}: {first[0].problem}). Give "
            "JSON Lines, one JSON array, a table (.csv, .tsv) or Parquet."
        )
    return itertools.chain(first, lines)


def _translate(source: Path, lines: Iterator[Line]) -> Iterator[Line]:
    with translate_read_errors(source):
        yield from lines


def _read_stream(
    source: Path, stream: io.BufferedReader[Any], needed: Set[str], columns: Mapping[str, str]
) -> Iterator[Line]:
    suffix = strip_gzip(source)
    beginning = stream.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    is_table = suffix in (".csv", ".tsv") or (str(source) == "-" and beginning not in (b"", b"{", b"["))
    if is_table:
        yield from _read_table(stream, needed, columns)
    elif beginning == b"[":
        yield from _read_array(source, stream, columns)
    elif suffix == ".json" and (row := _read_object(stream, columns)):
        yield row
    else:
        yield from _read_json_lines(stream, columns)


def _read_object(stream: io.BufferedReader[Any], columns: Mapping[str, str]) -> Line | None:
    """The one object of a file, which may have several lines; None for other files, which begin again."""
    if not stream.seekable():
        return None
    text = stream.read(MAX_TEXT + 1)
    line = _decode_row(1, columns, decode_json, text.removeprefix(codecs.BOM_UTF8))
    stream.seek(0)
    return None if line.row is None or len(text) > MAX_TEXT else line


def _read_json_lines(stream: io.BufferedReader[Any], columns: Mapping[str, str]) -> Iterator[Line]:
    for number, text in enumerate(split_lines(stream), 1):
        if text is None or text.strip():
            yield decode_line(number, text, columns)


def decode_line(number: int, text: bytes | None, columns: Mapping[str, str]) -> Line:
    """The request of a line of ``split_lines``, or its problem."""
    if text is None:
        return Line(number, None, f"the line is longer than {MAX_TEXT:,} bytes")
    return _decode_row(number, columns, decode_json, text)


def _read_array(source: Path, stream: io.BufferedReader[Any], columns: Mapping[str, str]) -> Iterator[Line]:
    try:
        for number, entry in enumerate(ArrayReader(stream), 1):
            yield check_row(number, entry, columns)
    except MalformedText as error:
        raise InvalidRequest(
            f"{source} begins with '[' and is no JSON array: {error}. Fix it, or write one object per line."
        ) from error


def _read_table(stream: io.BufferedReader[Any], needed: Set[str], columns: Mapping[str, str]) -> Iterator[Line]:
    texts = (None if line is None else line.decode("utf-8", "surrogateescape") for line in split_lines(stream))
    rows = split_rows(texts, max_cell=MAX_TEXT)
    first = next(rows, None)
    if first is None:
        return
    header = first.cells
    try:
        where = find_columns(header, columns)
    except AmbiguousColumns as error:
        raise InvalidRequest(f"The table has no clear columns: {error}.") from error
    used = {name: where.get(name, name) for name in (*needed, *where)}
    absent = {name for name in (*needed, *columns) if used.get(name, columns.get(name)) not in header}
    if "triples" in header and "knowledge" not in columns:
        absent.discard("knowledge")
    if absent or first.problem:
        names = " and no column ".join(columns.get(field, field) for field in sorted(absent))
        raise UnknownColumns(
            f"The table has no column {names}; it has {', '.join(header)}. "
            f"{first.problem or suggest_columns(absent, columns)}"
        )
    if problem := check_header(header, used.values()):
        raise InvalidRequest(f"The table cannot be read: {problem}.")
    for row in rows:
        problem = row.problem
        if not problem and len(row.cells) != len(header):
            problem = f"{len(row.cells)} cells, but the first line names {len(header)} columns"
        if problem:
            yield Line(row.line, None, problem)
        else:
            yield _decode_row(row.line, columns, _parse_cells, header, row.cells, where)


def _parse_cells(header: list[str], cells: list[str], where: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a row: the history has one utterance per line, and several passages or triples are JSON."""
    try:
        "".join(cells).encode()
    except UnicodeEncodeError as error:
        raise MalformedText("not UTF-8") from error
    fields: dict[str, Any] = dict(zip(header, cells, strict=True))
    history = where.get("history", "history")
    fields[history] = [turn for turn in fields.get(history, "").splitlines() if turn.strip()]
    knowledge = where.get("knowledge", "knowledge")
    if knowledge in fields:
        fields[knowledge] = read_passages(fields[knowledge])
    triples = where.get("triples", "triples")
    if triples in fields:
        fields[triples] = decode_json(fields[triples]) if fields[triples].strip() else []
    return fields


def _decode_row(number: int, columns: Mapping[str, str], decode: Callable[..., Any], *arguments: Any) -> Line:
    """The line whose fields ``decode`` makes of what is given."""
    try:
        row = decode(*arguments)
    except MalformedText as error:
        return Line(number, None, str(error))
    return check_row(number, row, columns)


def check_row(number: int, row: Any, columns: Mapping[str, str]) -> Line:
    """The row of an entry: the line with its fields under Groundwire's names, or with its problem."""
    if not isinstance(row, dict):
        return Line(number, None, "not a JSON object")
    try:
        row = rename_fields(row, columns)
        msgspec.json.encode(row.get("id"))
    except MalformedText as error:
        return Line(number, None, str(error))
    except (UnicodeEncodeError, msgspec.MsgspecError) as error:
        return Line(number, None, f"the id cannot be written as JSON: {error}")
    return Line(number, row)
