"""Reads requests from JSON Lines or CSV, line by line, with the problem of each line that is not usable."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec

from groundwire.runtime.errors import InvalidRequest


class Line(NamedTuple):
    """One line of input: its number, from 1, and either its fields or its problem."""

    number: int
    row: dict[str, Any] | None
    problem: str = ""


NEEDED = frozenset({"response", "knowledge"})
"""Columns that a CSV of responses must have, by default."""


@contextmanager
def read_lines(source: Path, needed: Set[str] = NEEDED) -> Iterator[Iterator[Line]]:
    """Open a file (``-`` is standard input) and yield its lines.

    ``.csv`` is read as CSV with a header, every other file as JSON Lines. ``needed`` are the columns that a CSV must
    have. Raises InvalidRequest if the file cannot be read or a column is missing.
    """
    try:
        file: TextIO = (
            sys.stdin if str(source) == "-" else source.open(encoding="utf-8", errors="surrogateescape", newline="")
        )
    except OSError as error:
        raise InvalidRequest(f"{source} cannot be read: {error.strerror}.") from error
    try:
        yield _csv(file, needed) if source.suffix.lower() == ".csv" else _jsonl(file)
    finally:
        if file is not sys.stdin:
            file.close()


def _jsonl(file: TextIO) -> Iterator[Line]:
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            row = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            yield Line(number, None, f"not JSON: {error}")
            continue
        yield Line(number, row) if isinstance(row, dict) else Line(number, None, "not a JSON object")


def _csv(file: TextIO, needed: Set[str]) -> Iterator[Line]:
    reader = csv.DictReader(file)
    absent = needed - set(reader.fieldnames or ())
    if absent:
        raise InvalidRequest(
            f"The CSV has no column {' and no column '.join(sorted(absent))}; it has {reader.fieldnames}."
        )
    for row in reader:
        fields: dict[str, Any] = {name: value for name, value in row.items() if name is not None and value is not None}
        # A CSV cell contains one utterance per line, oldest first.
        fields["history"] = [turn for turn in (row.get("history") or "").splitlines() if turn.strip()]
        yield Line(reader.line_num, fields)
