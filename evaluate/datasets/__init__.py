"""Labelled sets, in our own formats and in those their authors publish.

A format is a file of this package and a line of ``FORMATS``: whether a file looks like it, and how its rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from groundwire.runtime.errors import InvalidRequest

from .begin import BEGIN
from .dnli import DNLI
from .examples import Row
from .factual import FACTUAL
from .faithdial import FAITHDIAL
from .opendialkg import OPENDIALKG
from .plain import CSV, JSONL
from .q2 import Q2
from .source import Broken, Format, Source
from .usr import USR, USR_Q2

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "q2": Q2,
        "begin": BEGIN,
        "factual": FACTUAL,
        "usr": USR,
        "usr-q2": USR_Q2,
        "dnli": DNLI,
        "opendialkg": OPENDIALKG,
        "faithdial": FAITHDIAL,
        "jsonl": JSONL,
        "csv": CSV,
    }
)
"""By name, in the order in which a file is tried: the authors' formats are the more particular ones."""
SHOWN = 20
"""Broken rows that an error spells out; it counts the others."""


def read(path: str | Path, format: str | None = None) -> list[Row]:
    """The rows of a labelled set, in the order of the file.

    ``format`` is a name of ``FORMATS``; None finds it from the file's columns or first record. A row is never dropped:
    broken ones raise one InvalidRequest that names the line of each and what is wrong there, because figures of what is
    left would be those of another set, and because a user mends a file in one go. InvalidRequest also for a file that
    cannot be read or holds no row, for an unknown format, and for two rows of one id. Whether the texts of a row can be
    scored (an empty response, no knowledge) is for the engine to say, as status ``invalid``.
    """
    if format is not None and format not in FORMATS:
        raise InvalidRequest(f"Unknown format {format!r}. {_formats()}")
    path = Path(path)
    source = Source(path)
    name = format or next((name for name, one in FORMATS.items() if one.sniff(source)), None)
    if name is None:
        raise InvalidRequest(f"{path} is in no known format: {_looks(source)}. {_formats()}")
    found: list[Row] = []
    broken: list[Broken] = []
    places: dict[str, str] = {}
    for item in FORMATS[name].read(source):
        if isinstance(item, Broken):
            broken.append(item)
        elif item.row.id in places:
            broken.append(Broken(item.where, f"id {item.row.id!r} was given in {places[item.row.id]} already"))
        else:
            places[item.row.id] = item.where
            found.append(item.row)
    if broken:
        lines = [f"  {one.where}: {one.why}" for one in broken[:SHOWN]]
        if len(broken) > SHOWN:
            lines.append(f"  and {len(broken) - SHOWN} more")
        count = f"{len(broken)} broken row{'s' if len(broken) > 1 else ''}"
        raise InvalidRequest(
            f"{path} (format {name}) has {count}, so none was read; mend or remove them:\n" + "\n".join(lines)
        )
    if not found:
        raise InvalidRequest(f"{path} (format {name}) holds no rows.")
    return found


def _formats() -> str:
    return "Formats are:\n" + "\n".join(f"  {name}: {one.about}" for name, one in FORMATS.items())


def _looks(source: Source) -> str:
    if source.first:
        return f"its first record has the fields {', '.join(source.first)}"
    if source.is_json:
        return "it begins like JSON, but its first record cannot be read"
    columns = source.header("\t") if "\t" in source.text.split("\n", 1)[0] else source.header()
    return f"its first line names the columns {', '.join(columns)}"[:400]


__all__ = ["FORMATS", "Format", "read"]
