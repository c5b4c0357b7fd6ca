"""Where a command's results go: a results file, a stream of JSON Lines, or tables on a terminal."""

from __future__ import annotations

import os
import sys
from io import FileIO
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from groundwire.files.results_file import Entry, ResultsFile, translate_write_errors

from .options import refuse_value

E = TypeVar("E", bound=Entry)
STDOUT = "standard output"
MIN_WIDTH = 40
"""Columns of a table, at least, however narrow the terminal is."""


class JsonStream(Generic[E]):
    """JSON Lines in UTF-8 to standard output, a pipe or a device, with the methods of a results file."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[E] = []
        self._name = STDOUT if path is None else str(path)
        with translate_write_errors(self._name):
            self._file: FileIO | None = None if path is None else path.open("wb", buffering=0)

    def check(self, signature: str) -> None:
        """A stream has no results of other settings."""

    def append(self, line: msgspec.Struct) -> None:
        """Write one result; OutputError when it cannot be written."""
        raw = memoryview(msgspec.json.encode(line) + b"\n")
        with translate_write_errors(self._name):
            if self._file is None:
                sys.stdout.flush()
                sys.stdout.buffer.write(raw)
                sys.stdout.buffer.flush()
                return
            while raw:
                raw = raw[self._file.write(raw) :]

    def close(self) -> None:
        """Close the pipe or device."""
        if self._file is not None:
            self._file.close()


def open_output(
    out: Path | None, kind: type[E], source: Path | None, json: bool | None
) -> ResultsFile[E] | JsonStream[E] | None:
    """The place of the results; None for tables.

    ``-``, pipes and devices are streams, a later run continues any other file. Without a file, ``json``
    decides, and if it is None, whether standard output is a terminal.
    """
    if out is None:
        return None if prints_tables(json) else JsonStream()
    if str(out) == "-" or _is_stdout(out):
        return JsonStream()
    with translate_write_errors(out):
        is_stream = out.exists() and not out.is_file() and not out.is_dir()
    if is_stream:
        return JsonStream(out)
    with refuse_value("--out"):
        return ResultsFile(out, kind, source)


def prints_tables(json: bool | None) -> bool:
    """Whether results are printed as tables: on a terminal, unless --json or --table says otherwise."""
    return sys.stdout.isatty() if json is None else not json


def print_json(record: msgspec.Struct) -> None:
    """Print one record as a line of JSON."""
    JsonStream[Entry]().append(record)


def _is_stdout(path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # the file does not exist, or standard output is none
        return False


MAX_CELL = 12
"""Characters to which a narrow column is widened, at most."""


class RowTable:
    """A table that is printed row by row, so that an interrupted command leaves the rows so far.

    ``columns`` are the titles, each with its width in characters, or 0 for an equal share of what is left. A column
    with a width becomes as wide as its cell in the first row, up to ``MAX_CELL``.
    """

    def __init__(self, console: Console, columns: dict[str, int]) -> None:
        self._console = console
        self._columns = dict(columns)
        self._has_header = False

    def add_row(self, *cells: str | Text) -> None:
        """Print a row; strings are markup. OutputError when it cannot be printed."""
        if not self._has_header:
            for (title, width), cell in zip(self._columns.items(), cells, strict=True):
                text = Text.from_markup(cell) if isinstance(cell, str) else cell
                widest = max(map(len, text.plain.splitlines()), default=0)
                self._columns[title] = width and max(width, min(widest, MAX_CELL))
        table = Table(
            show_header=not self._has_header, show_edge=False, expand=True, width=max(self._console.width, MIN_WIDTH)
        )
        for title, width in self._columns.items():
            table.add_column(title, width=width or None, ratio=None if width else 1, overflow="fold")
        table.add_row(*cells)
        with translate_write_errors(STDOUT):
            if self._has_header:
                self._console.print(Rule(style="dim"))
            self._console.print(table)
        self._has_header = True
