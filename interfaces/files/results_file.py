"""A file of results that an interrupted run can continue: one JSON line per result, appended and locked."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec

from groundwire.runtime.errors import InvalidRequest, OutputError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there the user must not start two runs into one file
    fcntl = None  # type: ignore[assignment]

SYNC_SECONDS = 1.0
"""A result is on the disk, and survives a power failure, after so many seconds at most."""


class Entry(Protocol):
    """A line of the file as a msgspec struct, with at least its first field; other fields may be left out."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def made_with(self) -> str:
        """The signature of the settings it was computed with."""
        ...


E = TypeVar("E", bound=Entry)


class ResultsFile(Generic[E]):
    """The results that a file has already, and a way to append more.

    ``kind`` is the msgspec type of a line; fields it does not name are not read. Where several lines are results of one
    request, the last one counts. The file is locked until ``close``. Of what a killed run or a crash of the machine
    leaves at the end, an incomplete line and zero bytes, the file is freed: they are cut off after a complete result,
    and without one, where the file may be another program's, it is renamed to ``NAME.bak``.

    Raises InvalidRequest, and changes nothing, if the file is not a file of results, is ``source``, or is locked by
    another run; OutputError if it cannot be opened.
    """

    def __init__(self, path: Path, kind: type[E], source: Path | None = None) -> None:
        self.path = path.resolve()
        with translate_write_errors(path):  # such as a name that is too long
            self._is_new = not self.path.exists()
        if self.path.is_dir():
            raise InvalidRequest(f"{path} is a directory; name a file in it, such as {path / 'results.jsonl'}.")
        if not self.path.parent.is_dir():
            raise InvalidRequest(f"{path}: the directory {self.path.parent} does not exist; create it.")
        if source is not None and not self._is_new and source.exists() and self.path.samefile(source):
            raise InvalidRequest(f"{path} is the input; choose another file for the results.")
        self._kind = kind
        self._file = self._open()
        self._synced = time.monotonic()
        try:
            self.entries: list[E] = self._read()
        except BaseException:
            self._file.close()
            raise

    def check(self, signature: str) -> None:
        """Raise InvalidRequest if an entry was made with other settings: results of two settings are never mixed."""
        for entry in self.entries:
            if entry.made_with != signature:
                raise InvalidRequest(
                    f"{self.path} was made with other settings: {entry.made_with}. The settings now are {signature}. "
                    "Choose another --out, or remove the file."
                )

    def append(self, line: msgspec.Struct) -> None:
        """Append one result; another process can read it when this returns, and the disk has it after a second.

        Raises OutputError when it cannot be written, as on a full disk. The file then ends with the result before, and
        the run can be continued.
        """
        rest = memoryview(msgspec.json.encode(line) + b"\n")
        size = os.fstat(self._file.fileno()).st_size
        with translate_write_errors(self.path):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(size)
                raise
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()

    def close(self) -> None:
        """Write everything to the disk, close the file and unlock it; remove a new file that got no result."""
        if self._file.closed:
            return
        with self._file, translate_write_errors(self.path):
            os.fsync(self._file.fileno())
            if self._is_new and os.fstat(self._file.fileno()).st_size == 0:
                self.path.unlink(missing_ok=True)

    def _open(self) -> FileIO:
        with translate_write_errors(self.path):
            file = self.path.open("ab+", buffering=0)
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise InvalidRequest(
                    f"{self.path} is being written by another run; wait until it ends, or choose another file."
                ) from error
            except OSError:
                pass  # a file system without locks
        return file

    def _read(self) -> list[E]:
        self._file.seek(0)
        try:
            raw = self._file.readall()
        except OSError as error:
            raise InvalidRequest(f"{self.path} cannot be read: {error.strerror}.") from error
        # A file system may enlarge a file before a crash, and never write what belongs there.
        written = raw.rstrip(b"\0")
        end = written.rfind(b"\n") + 1
        entries = _decode_lines(self.path, written[:end], self._kind)
        if end < len(raw):
            self._remove_tail(written[end:], end, has_entries=bool(entries))
        return entries

    def _remove_tail(self, tail: bytes, keep: int, *, has_entries: bool) -> None:
        """Remove what follows the complete lines, if it begins as a line of results does."""
        prefix = b'{"' + self._kind.__struct_fields__[0].encode() + b'":'
        if not (tail.startswith(prefix) or prefix.startswith(tail)):
            raise InvalidRequest(f"{self.path} is not a file of results; choose another file.")
        with translate_write_errors(self.path):
            if has_entries:
                self._file.truncate(keep)
                return
            self.path.rename(_choose_backup(self.path))
        self._file.close()
        self._is_new = True
        self._file = self._open()


def read_results(path: Path, kind: type[E]) -> list[E]:
    """The complete results of a file, which is not changed and may belong to a run that goes on; see ResultsFile.

    Raises InvalidRequest if it cannot be read or is not a file of results.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from error
    return _decode_lines(path, raw[: raw.rfind(b"\n") + 1], kind)


def _decode_lines(path: Path, lines: bytes, kind: type[E]) -> list[E]:
    decoder: msgspec.json.Decoder[E] = msgspec.json.Decoder(kind)
    entries = []
    # Not splitlines(): a text may contain other line separators, which JSON does not escape.
    for number, text in enumerate(lines.split(b"\n"), 1):
        try:
            if text:
                entries.append(decoder.decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(
                f"{path} is not a file of results (line {number}: {error}); choose another file."
            ) from error
    return entries


@contextlib.contextmanager
def translate_write_errors(path: object) -> Iterator[None]:
    """Raise an OSError as OutputError, except that a reader has gone away (BrokenPipeError), which is not a mistake."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}. What is complete is kept: make room or choose "
            "another file, and run the command again."
        ) from error


def _choose_backup(path: Path) -> Path:
    """The first of ``NAME.bak``, ``NAME.bak2``, … that does not exist."""
    number = 1
    while (backup := path.with_name(f"{path.name}.bak{number if number > 1 else ''}")).exists():
        number += 1
    return backup
