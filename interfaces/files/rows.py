"""Splits a table into rows; a broken row costs its first line and nothing else."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from .json_text import MalformedText


class Row(NamedTuple):
    """A row of a table: the line it starts on, from 1, and either its cells or its problem."""

    line: int
    cells: list[str]
    problem: str = ""


DELIMITERS = ",;\t"


def find_delimiter(header: str) -> str:
    """The comma, semicolon or tab that divides a header into most columns; the comma among equals.

    >>> find_delimiter("response;knowledge;note, if any")
    ';'
    """
    return max(DELIMITERS, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), ())))


def split_rows(lines: Iterable[str | None], delimiter: str | None = None, max_cell: int = 1 << 30) -> Iterator[Row]:
    """The rows of a table; None is a line that was too long to be kept.

    Cells may be quoted and then hold line breaks, but for a ``delimiter`` that is given and a tab: a quotation mark is
    then itself. ``delimiter`` None is found in the first line (``find_delimiter``). After a row that cannot be read,
    such as one with a quotation mark that is never closed, reading goes on at its second line. Empty lines are
    skipped.
    """
    source, again = iter(lines), deque[str | None]()
    line = 1
    quoting: Literal[0, 3] = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    if delimiter is None:
        for text in source:
            again.append(text)
            if text is None or text.strip():
                break
        delimiter = find_delimiter((again and again[-1]) or "")
    before = csv.field_size_limit(max_cell)
    try:
        while True:
            read: list[str | None] = []
            reader = csv.reader(_feed(source, again, read), delimiter=delimiter, quoting=quoting, strict=True)
            try:
                cells = next(reader)
            except StopIteration:
                return
            except (csv.Error, MalformedText) as error:
                yield Row(line, [], f"not a row of a table: {error}")
                again.extendleft(reversed(read[1:]))
                line += 1
            else:
                if cells:
                    yield Row(line, cells)
                line += len(read)
    finally:
        csv.field_size_limit(before)


def check_header(header: Iterable[str], used: Iterable[str]) -> str:
    """What is wrong with a header whose columns ``used`` are read; empty for nothing."""
    names = list(header)
    repeated = [name for name in used if names.count(name) > 1]
    return f"the column {repeated[0]!r} is there more than once; keep one of them" if repeated else ""


def _feed(source: Iterator[str | None], again: deque[str | None], read: list[str | None]) -> Iterator[str]:
    """Yield the next lines, those to be read ``again`` first, and note them in ``read``."""
    while True:
        try:
            line = again.popleft() if again else next(source)
        except StopIteration:
            return
        read.append(line)
        if line is None:
            raise MalformedText("the line is too long")
        yield line
