"""What the papers print: the tables of Q² (EMNLP 2021), PMI-Faith (EMNLP Findings 2023), Conv-FEVER (2021) and
Neural Path Hunter (EMNLP 2021).

The figures are in ``published.json``, in the papers' own units and rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from groundwire.engine.schema.base import Record

PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "q2": "Honovich et al. 2021: Q²",
        "pmi-faith": "Nandwani et al. 2023: Pointwise Mutual Information Based Metric and Decoding Strategy",
        "conv-fever": "Santhanam et al. 2021: Rome was built in 1776",
        "nph": "Dziri et al. 2021: Neural Path Hunter",
    }
)
"""By ``PublishedTable.paper``."""


class PublishedColumn(Record, frozen=True):
    """One column of a table."""

    name: str
    digits: int
    """Decimals that its values are shown with."""
    unit: str = ""
    """"%" for percentages, which are numbers up to 100."""


class PublishedRow(Record, frozen=True):
    """One row: a value for every column, None where the paper has none."""

    name: str
    values: tuple[float | None, ...]


class PublishedTable(Record, frozen=True):
    """One table of a paper."""

    id: str
    """What ``groundwire tables`` calls it: "q2-3"."""
    paper: str
    number: int
    """In the paper."""
    title: str
    columns: tuple[PublishedColumn, ...]
    notes: tuple[str, ...]
    """What its figures are measured from, and what cannot be measured, or only with something else."""
    rows: tuple[PublishedRow, ...]

    def __post_init__(self) -> None:
        if wrong := [row.name for row in self.rows if len(row.values) != len(self.columns)]:
            raise ValueError(f"{self.id}: {wrong[0]!r} has not one value per column")


class PublishedFigure(Record, frozen=True):
    """One published number."""

    paper: str
    table: int
    row: str
    column: str
    value: float


def _load() -> Mapping[str, PublishedTable]:
    raw = Path(__file__).with_name("published.json").read_bytes()
    return MappingProxyType({table.id: table for table in msgspec.json.decode(raw, type=list[PublishedTable])})


TABLES = _load()
"""By id, in the order of the papers."""


def iterate_figures() -> Iterator[PublishedFigure]:
    """Every published number."""
    for table in TABLES.values():
        for row in table.rows:
            for column, value in zip(table.columns, row.values, strict=True):
                if value is not None:
                    yield PublishedFigure(table.paper, table.number, row.name, column.name, value)
