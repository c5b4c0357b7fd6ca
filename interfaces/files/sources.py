"""Opens input files: plain or gzip, a file or standard input, with one error for all that can go wrong."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from groundwire.runtime.bundles.decode import decode_json
from groundwire.runtime.errors import InvalidRequest

from .json_text import MAX_TEXT

OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or another ZIP archive; save it as CSV (UTF-8), or unpack it",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV (UTF-8)",
    b"ARROW1": "Arrow; save it as Parquet, as in pandas.read_feather(FILE).to_parquet(OUT)",
    b"\xff\xff\xff\xff": "Arrow; give the folder that save_to_disk wrote, or save it as Parquet, as in "
    "datasets.Dataset.from_file(FILE).to_parquet(OUT)",
    b"PAR1": "Parquet; let its name end in .parquet",
}
"""By the first bytes of a file that is not text: its format, and what to do."""


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file for reading, ``-`` for standard input, decompressed if it begins like gzip, whatever its name.

    InvalidRequest if it cannot be opened; read it under ``translate_read_errors``.
    """
    with contextlib.ExitStack() as stack:
        with translate_read_errors(path):
            stream: io.BufferedReader[Any]
            if str(path) == "-" and isinstance(sys.stdin.buffer, io.BufferedReader):
                stream = sys.stdin.buffer
            elif str(path) == "-":
                # Not for a real standard input: a second buffer would wait until it is full, not for a line.
                stream = io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))
                stack.callback(stream.detach)
            else:
                stream = stack.enter_context(path.open("rb"))
            beginning = stream.peek(8)
            if beginning[:2] == b"\x1f\x8b":
                unpacked = stack.enter_context(gzip.GzipFile(fileobj=cast("BinaryIO", stream)))
                # It has the methods of a BufferedReader, and gives what precedes damage before it raises.
                stream = cast("io.BufferedReader[Any]", unpacked)
                beginning = stream.peek(8)
        for magic, remedy in OTHER_FORMATS.items():
            if beginning.startswith(magic):
                raise InvalidRequest(f"{path} is {remedy}.")
        if beginning[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise InvalidRequest(f"{path} is UTF-16; save it as UTF-8.")
        yield stream


@contextlib.contextmanager
def translate_read_errors(path: Path) -> Iterator[None]:
    """Raise what happens while ``path`` is read as InvalidRequest."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidRequest(f"{path} is damaged: {error}. Compress or copy it again.") from error
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror or error}.") from error


def split_lines(stream: io.BufferedReader[Any]) -> Iterator[bytes | None]:
    """The lines with their ends, without a byte order mark; None for a line longer than ``MAX_TEXT``."""
    first = True
    while line := stream.readline(MAX_TEXT + 1):
        if first:
            line, first = line.removeprefix(codecs.BOM_UTF8), False
        if len(line) <= MAX_TEXT:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_TEXT)
        yield None


def strip_gzip(path: Path) -> str:
    """The suffix of a file's name, without gzip's, in small letters.

    >>> strip_gzip(Path("rows.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def list_text_files(path: Path) -> list[Path]:
    """Return the files of JSON of a folder by name; none of a dataset or of a folder with Parquet files."""
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if any(file.suffix == ".parquet" or file.name in ("state.json", "dataset_dict.json") for file in files):
        return []
    return [file for file in files if strip_gzip(file) in (".json", ".jsonl", ".ndjson")]


def read_folder(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a folder: a dataset that Hugging Face ``datasets`` saved with ``save_to_disk``, or Parquet files by
    name; InvalidRequest for another folder, without the extra ``parquet``, or for a damaged file."""
    state = path / "state.json"
    if state.is_file():
        with translate_read_errors(path):
            listed = decode_json(state.read_bytes(), _DatasetState, lambda reason: _explain_damage(state, reason))
        for file in listed.data_files:
            yield from _read_arrow(path / Path(file.filename).name)
        return
    if (path / "dataset_dict.json").is_file():
        raise InvalidRequest(f"{path} has several splits; choose one of its folders, such as {path / 'test'}.")
    files = sorted(file for file in path.iterdir() if file.suffix == ".parquet")
    if not files:
        raise InvalidRequest(
            f"{path} is a folder without files of JSON (.json, .jsonl) or Parquet, and no dataset of Hugging Face "
            "datasets."
        )
    for part in files:
        yield from read_parquet(part)


class _DataFile(msgspec.Struct):
    filename: str


class _DatasetState(msgspec.Struct):
    data_files: list[_DataFile] = msgspec.field(name="_data_files")


def _explain_damage(path: Path, reason: object) -> InvalidRequest:
    return InvalidRequest(f"{path} cannot be read: {reason}. Save the dataset again.")


def _read_arrow(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of Hugging Face ``datasets``, which is a stream of Arrow's."""
    try:
        import pyarrow
    except ImportError as error:
        raise InvalidRequest(f"{path} is Arrow; to read it, run: pip install 'groundwire[parquet]'") from error
    try:
        with (
            translate_read_errors(path),
            pyarrow.memory_map(str(path)) as file,
            pyarrow.ipc.open_stream(file) as stream,
        ):
            for batch in stream:
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise _explain_damage(path, error) from error


def read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, one after another; InvalidRequest without the extra or for a damaged file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidRequest(f"{path} is Parquet; to read it, run: pip install 'groundwire[parquet]'") from error
    try:
        with translate_read_errors(path), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} cannot be read as Parquet: {error}.") from error
