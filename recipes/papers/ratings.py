"""Tables of people's ratings: PMI-Faith's table 7, and tables 2, 6 and 7 of the Neural Path Hunter paper.

They are measured on a file of ratings, a line for each rated response: the row of the table that gave it, and the
columns that the raters agreed on, as in ``{"system": "Greedy", "ratings": ["Ex", "Fluency"]}``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from groundwire.runtime.errors import InvalidRequest

from .published import TABLES
from .runs import Measured, ScoredRun

RATED = ("pmi-7", "nph-2", "nph-6", "nph-7")


class _RatingLine(msgspec.Struct, frozen=True):
    """A line of a file of ratings; other fields are ignored."""

    system: str
    ratings: frozenset[str]


def measure_ratings(table: str, runs: Sequence[ScoredRun]) -> Measured:
    """The share of each row's responses to which the raters gave a column."""
    measured, published = Measured(), TABLES[table]
    columns = [column.name for column in published.columns]
    lines = [line for run in runs for line in _read_ratings(run, columns)]
    for row in published.rows:
        of_row = [line.ratings for line in lines if line.system == row.name]
        for column in published.columns:
            if of_row:
                share = sum(column.name in ratings for ratings in of_row) / len(of_row)
                measured.put(row.name, column.name, 100 * share if column.unit == "%" else share)
    if others := sorted({line.system for line in lines} - {row.name for row in published.rows}):
        measured.note(f"Systems that are no row of the table: {', '.join(others)}.")
    return measured


def _read_ratings(run: ScoredRun, columns: Sequence[str]) -> list[_RatingLine]:
    if run.file is None:
        return []
    try:
        lines = msgspec.json.Decoder(_RatingLine).decode_lines(run.file.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(
            f"{run.file} cannot be read: {error}. Give lines as "
            f'{{"system": ROW, "ratings": [COLUMN, …]}}; columns are {", ".join(columns)}.'
        ) from error
    if unknown := sorted({rating for line in lines for rating in line.ratings} - set(columns)):
        raise InvalidRequest(f"{run.file}: {unknown[0]!r} is no column of the table; it has {', '.join(columns)}.")
    return lines
