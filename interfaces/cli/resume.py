"""Continues an interrupted run: which lines of the input have a result already, and whether it is theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console

from groundwire.files.results_file import Entry, ResultsFile
from groundwire.runtime.errors import InvalidRequest

from . import display
from .output import JsonStream

DONE_BEFORE = "done before"
"""How a line is counted that an earlier run has the result of."""


class LineEntry(Entry, Protocol):
    """The fields of a results line that continuing a run needs, as a msgspec struct."""

    @property
    def line(self) -> int:
        """Number of the input line, from 1."""
        ...

    @property
    def key(self) -> str:
        """Digest of the request."""
        ...

    @property
    def is_final(self) -> bool:
        """Whether the line is not processed again."""
        ...


E = TypeVar("E", bound=LineEntry)


class Resume:
    """The lines of ``source`` that an output has final results of."""

    def __init__(self, output: ResultsFile[E] | JsonStream[E] | None, source: Path, console: Console) -> None:
        """Print how many lines are done, if the output is a file with results."""
        self._output = output
        self._source = source
        self._keys: dict[int, str] = {}
        unfinished: set[int] = set()
        for entry in output.entries if output is not None else ():
            if entry.is_final:
                self._keys[entry.line] = entry.key
            else:
                unfinished.add(entry.line)
        if isinstance(output, ResultsFile):
            display.print_continued(console, output.path, len(self._keys), len(unfinished - self._keys.keys()))

    def check(self, signature: str) -> None:
        """Raise InvalidRequest if the results were made with other settings."""
        if self._output is not None:
            self._output.check(signature)

    def is_done(self, number: int, key: str) -> bool:
        """Whether a line has a final result; InvalidRequest if it is the result of another text."""
        if number not in self._keys:
            return False
        if self._keys[number] != key:
            assert isinstance(self._output, ResultsFile)
            raise InvalidRequest(
                f"Line {number} of {self._source} is not the one that {self._output.path} has a result of: the input "
                "has changed. Choose another --out, or remove the file."
            )
        return True
