"""Reads triples from files, with the problem of every line that has none."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

import msgspec

from groundwire.runtime.bundles.decode import decode_json
from groundwire.runtime.errors import InvalidRequest

MAX_LINE = 1 << 20
"""Bytes of a line, at most; a longer line is a problem and is not read into memory."""
HEADERS = frozenset(
    (("subject", "predicate", "object"), ("subject", "relation", "object"), ("head", "relation", "tail"))
)
"""Column names that may be the first line of a tab-separated file."""


class MalformedLine(ValueError):
    """What is wrong with one line."""


Fields: TypeAlias = tuple[str, str, str]


class RowBlock(NamedTuple):
    """The triples of a part of a file."""

    lines: Sequence[int]
    """The line number of each row, from 1."""
    rows: Sequence[Fields]
    broken: Sequence[tuple[int, str]]
    """Lines without a triple: line number and problem."""


TripleReader: TypeAlias = Callable[[Path], Iterator[RowBlock]]


class _Record(msgspec.Struct, frozen=True):
    subject: str
    predicate: str
    object: str | int


class _Metadata(msgspec.Struct, frozen=True):
    path: list[Any] | None = None
    """Score, triples, and the path as a sentence."""


class _Turn(msgspec.Struct, frozen=True):
    metadata: _Metadata | None = None


def read_tsv(path: Path) -> Iterator[RowBlock]:
    """Read lines of ``subject TAB predicate TAB object``.

    A first line of column names, empty lines and ``# …`` without tabs are skipped. OpenDialKG's
    ``opendialkg_triples.txt`` is such a file. Quoting is not supported: a quotation mark is a part of a name.
    """
    return _read_blocks(path, _parse_tsv_block, _parse_tsv_line)


def read_jsonl(path: Path) -> Iterator[RowBlock]:
    """Read lines of ``["subject", "predicate", "object"]`` or ``{"subject": …, "predicate": …, "object": …}``.

    An object may be a whole number, such as a year. Empty lines are skipped.
    """
    return _read_blocks(path, _parse_jsonl_block, _parse_jsonl_line)


def read_opendialkg_csv(path: Path) -> Iterator[RowBlock]:
    """Read the triples of the paths that the speakers in ``opendialkg.csv`` chose, in the order of the dialogues."""
    with _open(path) as stream:
        table = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
        try:
            header: list[str] = []
            with suppress(csv.Error):  # a cell of more than 131,072 characters, after a stray quotation mark
                header = next(table, [])
            if "Messages" not in header:
                raise InvalidRequest(
                    f"{path} has no column 'Messages' in its first line, so it is not opendialkg.csv. "
                    "Put triples into a .tsv, .txt or .jsonl file."
                )
            while (block := _read_dialogue(table, header.index("Messages"))) is not None:
                yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidRequest(
                f"{path} is damaged after line {table.line_num}: {error}. Download it again."
            ) from error


def choose_reader(path: Path) -> TripleReader:
    """Return the reader for a file name; InvalidRequest for an unknown suffix."""
    suffix = "".join(path.suffixes[-2:-1] if path.suffix.lower() == ".gz" else path.suffixes[-1:]).lower()
    readers: dict[str, TripleReader] = {
        ".tsv": read_tsv,
        ".txt": read_tsv,
        ".jsonl": read_jsonl,
        ".csv": read_opendialkg_csv,
    }
    try:
        return readers[suffix]
    except KeyError:
        raise InvalidRequest(
            f"{path} has no suffix that says its format; allowed are {', '.join(readers)}, each also with .gz. "
            "Rename it, or use KnowledgeGraph.from_tsv, from_jsonl or from_opendialkg."
        ) from None


def _parse_tsv_block(block: bytes) -> list[Fields] | None:
    """The triples of a block if every line has one; None otherwise."""
    lines = block.replace(b"\r\n", b"\n").decode().removesuffix("\n").split("\n")
    rows = [line.split("\t") for line in lines]
    return cast("list[Fields]", rows) if set(map(len, rows)) == {3} else None


def _parse_tsv_line(line: str, number: int) -> Fields | None:
    fields = line.split("\t")
    if len(fields) == 3:
        if number == 1 and tuple(field.strip().lower() for field in fields) in HEADERS:
            return None
        return fields[0], fields[1], fields[2]
    if len(fields) == 1 and (line.startswith("#") or not line.strip()):
        return None
    count = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
    raise MalformedLine(f"{count}; a triple is subject, predicate and object, with tabs between them")


_plain_triple = msgspec.json.Decoder(Fields)
_triple = msgspec.json.Decoder(tuple[str, str, str | int] | _Record)


def _parse_jsonl_block(block: bytes) -> list[Fields] | None:
    # Only for blocks of arrays of strings; every other block is parsed line by line.
    return _plain_triple.decode_lines(block)


def _say_triple(reason: str) -> MalformedLine:
    return MalformedLine(f"not a JSON array or object of subject, predicate and object: {reason}")


def _parse_jsonl_line(line: str, number: int) -> Fields | None:
    if not line.strip():
        return None
    decoded = decode_json(line, _triple, _say_triple)
    subject, predicate, object_ = decoded if isinstance(decoded, tuple) else msgspec.structs.astuple(decoded)
    return subject, predicate, str(object_)


def _read_blocks(
    path: Path, parse_block: Callable[[bytes], list[Fields] | None], parse_line: Callable[[str, int], Fields | None]
) -> Iterator[RowBlock]:
    """The triples of a file of lines, a megabyte at a time.

    A block is parsed at once, which takes a third of the time; if that fails, it is parsed line by line.
    """
    number = 1
    for block, too_long in _split_file(path):
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        if too_long:
            yield RowBlock((), (), [(number, f"the line is longer than {MAX_LINE:,} bytes")])
            number += 1
            continue
        rows = None
        if number > 1:
            try:
                rows = parse_block(block)
            except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
                rows = None
        if rows is not None and len(rows) == count:
            yield RowBlock(range(number, number + count), rows, ())
        else:
            yield _parse_lines(block, number, parse_line)
        number += count


def _parse_lines(block: bytes, first: int, parse_line: Callable[[str, int], Fields | None]) -> RowBlock:
    lines: list[int] = []
    rows: list[Fields] = []
    broken: list[tuple[int, str]] = []
    for number, raw in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
        try:
            row = parse_line(raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r"), number)
        except UnicodeDecodeError as error:
            broken.append((number, f"not UTF-8 at byte {error.start + 1}"))
        except MalformedLine as error:
            broken.append((number, str(error)))
        else:
            if row is not None:
                lines.append(number)
                rows.append(row)
    return RowBlock(lines, rows, broken)


def _split_file(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks of complete lines with False; for a line that is too long only its beginning, with True."""
    with _open(path) as stream:
        rest, skipping, lines_read = b"", False, 0
        try:
            while data := stream.read(MAX_LINE):
                lines_read += data.count(b"\n")
                if skipping:
                    _, newline, data = data.partition(b"\n")
                    if not newline:
                        continue
                    skipping = False
                head, newline, tail = data.rpartition(b"\n")
                if newline:
                    yield rest + head + newline, False
                    rest = tail
                else:
                    rest += tail
                if len(rest) > MAX_LINE:
                    yield rest[:1], True
                    rest, skipping = b"", True
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidRequest(
                f"{path} is damaged after line {lines_read}: {error}. Download or compress it again."
            ) from error
        if rest:
            yield rest, False


def _read_dialogue(table: Iterator[list[str]], column: int) -> RowBlock | None:
    """The triples of the next row of ``opendialkg.csv``; None at the end."""
    rows: list[Fields] = []
    broken: list[str] = []
    try:
        cells = next(table)
        if cells and len(cells) <= column:
            raise MalformedLine(f"{len(cells)} cells; the messages are in cell {column + 1}")
        turns = decode_json(cells[column], list[_Turn], _say_messages) if cells else []
    except StopIteration:
        return None
    except (csv.Error, MalformedLine) as error:
        turns = []
        broken.append(str(error))
    for turn in turns:
        if turn.metadata is not None and turn.metadata.path is not None:
            try:
                rows += msgspec.convert(turn.metadata.path[1:2], tuple[list[Fields]])[0]
            except msgspec.ValidationError as error:
                broken.append(f"a path without a list of triples as its second element: {error}")
    line: int = table.line_num  # type: ignore[attr-defined]
    return RowBlock([line] * len(rows), rows, [(line, what) for what in broken])


def _say_messages(reason: str) -> MalformedLine:
    return MalformedLine(f"Messages is not a JSON list of messages: {reason}")


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed if it begins like gzip, whatever its name."""
    try:
        plain = path.open("rb")
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from error
    with plain:
        if plain.peek(2)[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=plain) as unpacked:
                yield cast("BinaryIO", io.BufferedReader(unpacked, MAX_LINE))
        else:
            yield plain
