"""Reads the JSON files of a dialogue set as typed records."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TypeVar

import msgspec

from groundwire.runtime.errors import InvalidRequest

T = TypeVar("T")


def read_records(path: Path, kind: type[T], what: str) -> T:
    """A JSON file, perhaps compressed by gzip, as a record; InvalidRequest says what it is not, and why."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return msgspec.json.decode(file.read(), type=kind)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read ({error.strerror or error}); give {what}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, EOFError) as error:
        raise InvalidRequest(f"{path} is not {what}: {error}.") from error


def strip_all(texts: list[str]) -> tuple[str, ...]:
    """The texts that hold a word, each once, in order, without the white space around them."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))
