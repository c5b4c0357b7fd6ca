"""Graphs in files: triples by line, and what is wrong with the lines that hold none."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

import msgspec

from groundwire.runtime.errors import InvalidRequest

MAX_LINE = 1 << 20
"""Bytes of a line; a longer one is a problem, and no memory is taken for it."""
HEADERS = frozenset(
    (("subject", "predicate", "object"), ("subject", "relation", "object"), ("head", "relation", "tail"))
)
"""First lines of tab-separated files that name the columns."""


class Malformed(ValueError):
    """What is wrong with one line."""


Fields: TypeAlias = tuple[str, str, str]


class Block(NamedTuple):
    """The triples of some lines of a file, the number of the line of each from 1, and the lines that hold none."""

    lines: Sequence[int]
    rows: Sequence[Fields]
    broken: Sequence[tuple[int, str]]


Reader: TypeAlias = Callable[[Path], Iterator[Block]]


class _Record(msgspec.Struct, frozen=True):
    subject: str
    predicate: str
    object: str | int


class _Metadata(msgspec.Struct, frozen=True):
    path: list[Any] | None = None
    """Score, triples, and the path as a sentence."""


class _Turn(msgspec.Struct, frozen=True):
    metadata: _Metadata | None = None


def read_tsv(path: Path) -> Iterator[Block]:
    """``subject TAB predicate TAB object``; a first line of column names, empty lines and ``# …`` without tabs pass.

    OpenDialKG's ``opendialkg_triples.txt`` is such a file. Nothing is quoted: a quotation mark is a part of a name.
    """
    return _blocks(path, _tsv_block, _tsv_line)


def read_jsonl(path: Path) -> Iterator[Block]:
    """``["subject", "predicate", "object"]`` or ``{"subject": …, "predicate": …, "object": …}`` in every line.

    An object may be a whole number, such as a year. Empty lines pass.
    """
    return _blocks(path, _jsonl_block, _jsonl_line)


def read_opendialkg_csv(path: Path) -> Iterator[Block]:
    """The triples of the paths that speakers of ``opendialkg.csv`` chose, in the order of the dialogues."""
    with _open(path) as stream:
        table = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
        try:
            header = next(table, [])
            if "Messages" not in header:
                raise InvalidRequest(
                    f"{path} has no column 'Messages' in its first line, so it is not opendialkg.csv. "
                    "Triples belong into a .tsv, .txt or .jsonl file."
                )
            while (block := _table_row(table, header.index("Messages"))) is not None:
                yield block
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidRequest(f"{path} is damaged after line {table.line_num}: {error}. Fetch it again.") from error


def reader_for(path: Path) -> Reader:
    """How to read a file, by its name; InvalidRequest for a name that says nothing."""
    suffix = "".join(path.suffixes[-2:-1] if path.suffix.lower() == ".gz" else path.suffixes[-1:]).lower()
    readers: dict[str, Reader] = {
        ".tsv": read_tsv,
        ".txt": read_tsv,
        ".jsonl": read_jsonl,
        ".csv": read_opendialkg_csv,
    }
    try:
        return readers[suffix]
    except KeyError:
        raise InvalidRequest(
            f"{path} does not say by its name what it holds; allowed are {', '.join(readers)}, each also with .gz. "
            "Rename it, or use KnowledgeGraph.from_tsv, from_jsonl or from_opendialkg."
        ) from None


def _tsv_block(block: bytes) -> list[Fields] | None:
    """The triples of a block in which every line holds one; None if that is not so."""
    lines = block.replace(b"\r\n", b"\n").decode().removesuffix("\n").split("\n")
    rows = [line.split("\t") for line in lines]
    return cast("list[Fields]", rows) if set(map(len, rows)) == {3} else None


def _tsv_line(line: str, number: int) -> Fields | None:
    fields = line.split("\t")
    if len(fields) == 3:
        if number == 1 and tuple(field.strip().lower() for field in fields) in HEADERS:
            return None
        return fields[0], fields[1], fields[2]
    if len(fields) == 1 and (line.startswith("#") or not line.strip()):
        return None
    count = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
    raise Malformed(f"{count}; a triple is subject, predicate and object, with tabs between them")


_plain_triple = msgspec.json.Decoder(Fields)
_triple = msgspec.json.Decoder(tuple[str, str, str | int] | _Record)


def _jsonl_block(block: bytes) -> list[Fields] | None:
    # A block of nothing but arrays of strings; whatever else it may hold is read line by line.
    return _plain_triple.decode_lines(block)


def _jsonl_line(line: str, number: int) -> Fields | None:
    if not line.strip():
        return None
    try:
        found = _triple.decode(line)
    except msgspec.DecodeError as error:
        raise Malformed(f"not a JSON array or object of subject, predicate and object: {error}") from error
    subject, predicate, other = found if isinstance(found, tuple) else msgspec.structs.astuple(found)
    return subject, predicate, str(other)


def _blocks(
    path: Path, of_block: Callable[[bytes], list[Fields] | None], of_line: Callable[[str, int], Fields | None]
) -> Iterator[Block]:
    """The triples of a file of lines, a megabyte at a time.

    A block is read as a whole, which takes a third of the time, and line by line if there is anything special about it.
    """
    number = 1
    for block, too_long in _lines(path):
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        if too_long:
            yield Block((), (), [(number, f"the line is longer than {MAX_LINE:,} bytes")])
            number += 1
            continue
        rows = None
        if number > 1:
            try:
                rows = of_block(block)
            except (UnicodeDecodeError, msgspec.DecodeError):
                rows = None
        if rows is not None and len(rows) == count:
            yield Block(range(number, number + count), rows, ())
        else:
            yield _one_by_one(block, number, of_line)
        number += count


def _one_by_one(block: bytes, first: int, of_line: Callable[[str, int], Fields | None]) -> Block:
    lines: list[int] = []
    rows: list[Fields] = []
    broken: list[tuple[int, str]] = []
    for number, raw in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
        try:
            row = of_line(raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r"), number)
        except UnicodeDecodeError as error:
            broken.append((number, f"not UTF-8 at byte {error.start + 1}"))
        except Malformed as error:
            broken.append((number, str(error)))
        else:
            if row is not None:
                lines.append(number)
                rows.append(row)
    return Block(lines, rows, broken)


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Blocks of whole lines, and the beginning of a line that is too long in place of it (True)."""
    with _open(path) as stream:
        rest, skipping, done = b"", False, 0
        try:
            while data := stream.read(MAX_LINE):
                done += data.count(b"\n")
                if skipping:
                    _, found, data = data.partition(b"\n")
                    if not found:
                        continue
                    skipping = False
                head, found, tail = data.rpartition(b"\n")
                if found:
                    yield rest + head + found, False
                    rest = tail
                else:
                    rest += tail
                if len(rest) > MAX_LINE:
                    yield rest[:1], True
                    rest, skipping = b"", True
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidRequest(f"{path} is damaged behind line {done}: {error}. Fetch or pack it again.") from error
        if rest:
            yield rest, False


def _table_row(table: Iterator[list[str]], column: int) -> Block | None:
    """The triples of the next row; None at the end."""
    rows: list[Fields] = []
    broken: list[str] = []
    try:
        cells = next(table)
        if cells and len(cells) <= column:
            raise Malformed(f"{len(cells)} cells; the messages are in cell {column + 1}")
        turns = msgspec.json.decode(cells[column].encode(), type=list[_Turn]) if cells else []
    except StopIteration:
        return None
    except (csv.Error, Malformed) as error:
        turns = []
        broken.append(str(error))
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        turns = []
        broken.append(f"Messages is not a JSON list of messages: {error}")
    for turn in turns:
        if turn.metadata is not None and turn.metadata.path is not None:
            try:
                rows += msgspec.convert(turn.metadata.path[1:2], tuple[list[Fields]])[0]
            except msgspec.ValidationError as error:
                broken.append(f"a path without a list of triples at its second place: {error}")
    line: int = table.line_num  # type: ignore[attr-defined]
    return Block([line] * len(rows), rows, [(line, what) for what in broken])


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked if it begins as gzip does, whatever its name."""
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
