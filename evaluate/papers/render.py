"""A table of a paper with measured figures beside the published ones, for the terminal and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import rich.table
from rich.markup import escape

from groundwire.engine.schema.base import Record
from groundwire.runtime.errors import InvalidRequest

from . import conv_fever, pmi_faith, q2
from .published import PAPERS, TABLES, Column
from .runs import Measured, Run

Measure = Callable[[Sequence[Run]], Measured]
NOT_RUN = "–"
REMARK = "- Here: "
"""Before a remark in Markdown, which tells it from a note."""


def _begin(measure: Measure) -> Measure:
    return lambda runs: pmi_faith.sources(runs, measure(runs))


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "q2-2": q2.table_2,
        "q2-3": q2.table_3,
        "q2-4": q2.table_4,
        "q2-5": q2.table_5,
        "q2-6": q2.table_6,
        "q2-7": q2.table_7,
        "q2-8": q2.table_8,
        "q2-9": q2.table_9,
        "pmi-1": _begin(pmi_faith.table_1),
        "pmi-2": _begin(pmi_faith.table_2),
        "pmi-3": _begin(pmi_faith.table_3),
        "pmi-9": pmi_faith.table_9,
        "conv-fever-5": conv_fever.table_5,
        "conv-fever-7": conv_fever.table_7,
        **{f"conv-fever-{number}": partial(conv_fever.crowd, number) for number in conv_fever.CROWD},
    }
)
"""How each table is measured."""
COMPARING = {"q2-7": q2.SMALLER, "q2-8": q2.SMALLER, "q2-9": tuple(q2.ABLATIONS)}
"""The tables whose runs differ in models or options, and what those runs are called; the first needs no name."""


class Cell(Record, frozen=True):
    """A published number and the measured one."""

    published: float
    measured: float | None = None
    """None when it was not measured."""


class Row(Record, frozen=True):
    """A row of cells, one per column."""

    name: str
    cells: tuple[Cell, ...]


class Table(Record, frozen=True):
    """A table of a paper, with what was measured of it."""

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    """Of the table as published, and of what it is measured from."""
    remarks: tuple[str, ...] = ()
    """Of the measurement: other rows than the paper's, rows that did not score."""

    def markdown(self) -> str:
        """The table as GitHub's Markdown, title and notes included."""
        head = ["published / measured", *(column.name for column in self.columns)]
        lines = [f"**{self.title}**", "", _line(head), _line(["---"] + ["---:"] * len(self.columns))]
        lines += [_line([row.name, *self._texts(row)]) for row in self.rows]
        lines += ["", *(f"- {note}" for note in self.notes), *(REMARK + remark for remark in self.remarks)]
        return "\n".join(lines) + "\n"

    def rich(self) -> rich.table.Table:
        """The table for a terminal."""
        drawn = rich.table.Table(
            title=escape(self.title),
            caption=escape("\n".join((*self.notes, *(f"Here: {remark}" for remark in self.remarks)))),
            title_justify="left",
            caption_justify="left",
        )
        drawn.add_column("published / measured", style="bold")
        for column in self.columns:
            drawn.add_column(escape(column.name), justify="right")
        for row in self.rows:
            drawn.add_row(escape(row.name), *self._texts(row))
        return drawn

    def _texts(self, row: Row) -> list[str]:
        return [
            f"{_text(cell.published, column)} / {_text(cell.measured, column)}"
            for cell, column in zip(row.cells, self.columns, strict=True)
        ]


def render(table: str, runs: Sequence[Run] = ()) -> Table:
    """The table ``q2-2`` to ``conv-fever-12``, measured on ``runs``; without runs its measured cells are empty.

    Of several runs that have a cell, the first counts. InvalidRequest for a table or a run's variant that is none.
    """
    if table not in TABLES:
        raise InvalidRequest(f"There is no table {table!r}; tables are {', '.join(TABLES)}.")
    allowed = [name.lower() for name in COMPARING.get(table, ())]
    if wrong := [run.name for run in runs if run.name and run.name.lower() not in allowed]:
        variants = ", ".join(COMPARING.get(table, ())) or "none; give the directory alone"
        raise InvalidRequest(f"{wrong[0]!r} is no variant of table {table}; its variants are {variants}.")
    published = TABLES[table]
    found = MEASURES[table](runs)
    rows = tuple(
        Row(
            row.name,
            tuple(
                Cell(value, found.cells.get((row.name, column.name)))
                for column, value in zip(published.columns, row.values, strict=True)
            ),
        )
        for row in published.rows
    )
    title = f"{PAPERS[published.paper]}, table {published.number}. {published.title}"
    return Table(table, title, published.columns, rows, published.notes, tuple(found.notes))


BEGIN, END = "<!-- table {} -->", "<!-- end -->"


def fill(text: str) -> str:
    """A Markdown text in which the tables between ``<!-- table ID -->`` and ``<!-- end -->`` are as published.

    Measured figures and remarks that stand there already are kept, so that a table which ``groundwire tables
    --markdown`` made may be pasted in.
    """
    pattern = re.compile(BEGIN.format("([a-z0-9-]+)") + "(.*?)" + END, re.DOTALL)
    return pattern.sub(
        lambda found: f"{BEGIN.format(found[1])}\n{_with(render(found[1]), found[2]).markdown()}{END}", text
    )


def _with(table: Table, text: str) -> Table:
    """``table`` with what ``text``, a table of ``markdown``, has measured."""
    lines = text.splitlines()
    cells = {line.split(" | ")[0].removeprefix("| "): _measured(line) for line in lines if line.startswith("| ")}
    rows = tuple(
        Row(row.name, tuple(map(_replaced, row.cells, cells.get(row.name) or [None] * len(row.cells))))
        for row in table.rows
    )
    remarks = tuple(line.removeprefix(REMARK) for line in lines if line.startswith(REMARK))
    return Table(table.id, table.title, table.columns, rows, table.notes, remarks)


def _measured(line: str) -> list[float | None]:
    halves = [cell.rpartition(" / ")[2].strip(" |%") for cell in line.split(" | ")[1:]]
    return [float(half) if re.fullmatch(r"-?[0-9.]+", half) else None for half in halves]


def _replaced(cell: Cell, measured: float | None) -> Cell:
    return Cell(cell.published, measured)


def _text(value: float | None, column: Column) -> str:
    return NOT_RUN if value is None else f"{value:.{column.digits}f}{column.unit}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
