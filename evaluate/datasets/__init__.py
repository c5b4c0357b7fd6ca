"""Datasets: labelled sets in Groundwire's own formats and, with groundwire-recipes, in their authors'."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from groundwire.runtime.errors import InvalidRequest

from .examples import Example
from .plain import CSV, JSONL, make_examples
from .source import ALLOWED, Broken, Format, LeftOut, Source

OWN = {"jsonl": JSONL, "csv": CSV}
Rows: TypeAlias = str | Path | Sequence[Example | Mapping[str, Any]]
"""A file of labelled responses; or examples, or mappings with the fields of a line of JSON."""
MAX_BROKEN = 0.1
"""Share of broken examples, at most, that are left out: a label that is not known would else leave a class out."""
MAX_SHOWN = 20
"""Broken examples that an error message spells out; it counts the others."""


def list_formats() -> Mapping[str, Format]:
    """The formats by name, in the order in which a file is tried: the papers', if installed, and then ``OWN``."""
    if find_spec("groundwire.recipes") is None:
        return OWN
    return {**import_module("groundwire.recipes.formats").FORMATS, **OWN}


def read_rows(rows: Rows) -> list[Example]:
    """The examples of a file, as ``read_dataset`` reads it, or of rows in memory, as ``make_examples``."""
    return read_dataset(rows) if isinstance(rows, str | Path) else make_examples(rows)


def read_dataset(
    path: str | Path,
    format: str | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    score_columns: Sequence[str] = (),
    leave_out: Callable[[str, LeftOut], None] | None = None,
) -> list[Example]:
    """The examples of a labelled set, in the order of the file.

    ``format`` is a name of ``list_formats``; None finds it from the file's columns or first record. ``columns``, field
    by name, are for files of Groundwire's own formats in which response, knowledge, … have other names, and so are
    ``score_columns``, the columns with scores of other tools. Broken examples are left out, and ``leave_out`` is called
    with one message that names the line of each and what is wrong there, and with the lines. Without it, and where they
    are more than a tenth, they raise InvalidRequest with that message: what is left is another set, with other figures.
    InvalidRequest also for a file that cannot be read or holds no example, for an unknown format, for a score column
    without a number, and for two examples with the same id. The engine decides whether the texts of an example can be
    scored (an empty response, no knowledge): status ``invalid``.
    """
    available = list_formats()
    if format is not None and format not in available:
        raise InvalidRequest(f"Unknown format {format!r}. {_describe_formats()}")
    path = Path(path)
    source = Source(path, columns, score_columns)
    formats = OWN if columns or score_columns else available
    name = format or next((name for name, candidate in formats.items() if candidate.sniff(source)), None)
    if name is None:
        raise InvalidRequest(
            f"{path} is in no known format: {_describe_source(source)}. If its fields have other names, say so: "
            f"--columns response=NAME,knowledge=NAME,label=NAME. {_describe_formats()}"
        )
    examples: list[Example] = []
    broken: list[Broken] = []
    where: dict[str, str] = {}
    for item in available[name].read(source):
        if isinstance(item, Broken):
            broken.append(item)
        elif item.example.id in where:
            broken.append(Broken(item.where, f"id {item.example.id!r} was given in {where[item.example.id]} already"))
        else:
            where[item.example.id] = item.where
            examples.append(item.example)
    if broken:
        lines = list(_describe_broken(broken[:MAX_SHOWN]))
        if len(broken) > MAX_SHOWN:
            lines.append(f"  and {len(broken) - MAX_SHOWN} more")
        count = f"{len(broken)} broken example{'s' if len(broken) > 1 else ''}"
        listed = "\n".join(lines)
        if leave_out is None or len(broken) > MAX_BROKEN * (len(broken) + len(examples)):
            raise InvalidRequest(f"{path} (format {name}) has {count}, so none was read; fix or remove them:\n{listed}")
        left_out = LeftOut(len(broken), tuple(item.where for item in broken[:MAX_SHOWN]))
        leave_out(f"{path} (format {name}) has {count}, left out; the figures are of the others:\n{listed}", left_out)
    if not examples:
        raise InvalidRequest(f"{path} (format {name}) holds no examples.")
    present = {column for example in examples for column, _ in example.scores}
    if absent := [column for column in score_columns if column not in present]:
        raise InvalidRequest(f"No row of {path} has a number in the column {' or '.join(absent)}; check the names.")
    return examples


def _describe_broken(broken: Sequence[Broken]) -> Iterator[str]:
    """A line for each broken example; what is allowed in a field is listed once."""
    listed = set()
    for item in broken:
        problem, divider, allowed = item.why.partition(ALLOWED)
        yield f"  {item.where}: {problem if allowed in listed else item.why}"
        if divider:
            listed.add(allowed)


def _describe_formats() -> str:
    formats = list_formats()
    listed = "Formats are:\n" + "\n".join(f"  {name}: {reader.about}" for name, reader in formats.items())
    missing = "" if len(formats) > len(OWN) else "\nThe formats of the papers' sets are in groundwire-recipes."
    return listed + missing


def _describe_source(source: Source) -> str:
    if source.first:
        return f"its first record has the fields {', '.join(source.first)}"
    if source.is_json:
        return "it begins like JSON, but its first record cannot be read"
    return f"its first line names the columns {', '.join(source.header())}"[:400]


__all__ = ["Format", "LeftOut", "Rows", "list_formats", "read_dataset", "read_rows"]
