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

from . import conv_fever, decoding, nph, pmi_faith, q2, ratings
from .published import PAPERS, TABLES, PublishedColumn
from .runs import Measured, ScoredRun

Measure = Callable[[Sequence[ScoredRun]], Measured]
NOT_RUN = "–"
REMARK = "- Here: "
"""Begins a remark in Markdown and marks it off from a note."""


def _note_sources(measure: Measure) -> Measure:
    return lambda runs: pmi_faith.note_sources(runs, measure(runs))


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "q2-2": q2.measure_q2_table_2,
        "q2-3": q2.measure_q2_table_3,
        "q2-4": q2.measure_q2_table_4,
        "q2-5": q2.measure_q2_table_5,
        "q2-6": q2.measure_q2_table_6,
        "q2-7": q2.measure_q2_table_7,
        "q2-8": q2.measure_q2_table_8,
        "q2-9": q2.measure_q2_table_9,
        "q2-10": q2.measure_q2_table_10,
        "q2-11": q2.measure_q2_table_11,
        "pmi-1": _note_sources(pmi_faith.measure_pmi_table_1),
        "pmi-2": _note_sources(pmi_faith.measure_pmi_table_2),
        "pmi-3": _note_sources(pmi_faith.measure_pmi_table_3),
        "pmi-4": decoding.measure_pmi_table_4,
        "pmi-5": decoding.measure_pmi_table_5,
        "pmi-9": pmi_faith.measure_pmi_table_9,
        "conv-fever-2": conv_fever.measure_conv_fever_table_2,
        "conv-fever-5": conv_fever.measure_conv_fever_table_5,
        "conv-fever-7": conv_fever.measure_conv_fever_table_7,
        **{f"conv-fever-{number}": partial(conv_fever.measure_crowd_table, number) for number in conv_fever.CROWD},
        "nph-3": nph.measure_nph_table_3,
        "nph-4": nph.measure_nph_table_4,
        "nph-5": nph.measure_nph_table_5,
        **{table: partial(ratings.measure_ratings, table) for table in ratings.RATED},
    }
)
"""The function that measures each table."""
COMPARING = {
    "q2-7": q2.SMALLER,
    "q2-8": q2.SMALLER,
    "q2-9": tuple(q2.ABLATIONS),
    "q2-10": q2.KNOWLEDGE,
    "pmi-4": decoding.DATASETS,
    **nph.VARIANTS,
}
"""Tables whose runs differ in models or options, with the names of those runs; the first one may be left out."""


class Cell(Record, frozen=True):
    """A published number and the measured one."""

    published: float | None
    """None where the paper has none."""
    measured: float | None = None
    """None when it was not measured."""


class TableRow(Record, frozen=True):
    """A row of cells, one per column."""

    name: str
    cells: tuple[Cell, ...]


class PaperTable(Record, frozen=True):
    """A table of a paper with published and measured cells."""

    id: str
    title: str
    columns: tuple[PublishedColumn, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...]
    """On the published table, and on what it is measured from."""
    remarks: tuple[str, ...] = ()
    """On the measurement: other examples than the paper's, examples that did not score."""

    @property
    def is_measured(self) -> bool:
        """Whether any cell has a measured number."""
        return any(cell.measured is not None for row in self.rows for cell in row.cells)

    def markdown(self) -> str:
        """The table as GitHub's Markdown, title and notes included."""
        head = ["published / measured", *(column.name for column in self.columns)]
        lines = [f"**{self.title}**", "", _format_line(head), _format_line(["---"] + ["---:"] * len(self.columns))]
        lines += [_format_line([row.name, *self._format_cells(row)]) for row in self.rows]
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
            drawn.add_row(escape(row.name), *self._format_cells(row))
        return drawn

    def _format_cells(self, row: TableRow) -> list[str]:
        return [
            f"{_format_value(cell.published, column)} / {_format_value(cell.measured, column)}"
            for cell, column in zip(row.cells, self.columns, strict=True)
        ]


def render_table(table: str, runs: Sequence[ScoredRun] = ()) -> PaperTable:
    """The table ``q2-2`` to ``nph-7``, measured on ``runs``; without runs its measured cells are empty.

    Where several runs have a cell, the first counts. InvalidRequest for an unknown table or variant.
    """
    if table not in TABLES:
        raise InvalidRequest(f"There is no table {table!r}; tables are {', '.join(TABLES)}.")
    allowed = [name.lower() for name in COMPARING.get(table, ())]
    if wrong := [run.name for run in runs if run.name and run.name.lower() not in allowed]:
        variants = ", ".join(COMPARING.get(table, ())) or "none; give the directory alone"
        raise InvalidRequest(f"{wrong[0]!r} is not a variant of table {table}; its variants are {variants}.")
    published = TABLES[table]
    measured = MEASURES[table](runs)
    rows = tuple(
        TableRow(
            row.name,
            tuple(
                Cell(value, measured.cells.get((row.name, column.name)))
                for column, value in zip(published.columns, row.values, strict=True)
            ),
        )
        for row in published.rows
    )
    title = f"{PAPERS[published.paper]}, table {published.number}. {published.title}"
    return PaperTable(table, title, published.columns, rows, published.notes, tuple(measured.notes))


BEGIN, END = "<!-- table {} -->", "<!-- end -->"


def fill_tables(text: str) -> str:
    """A Markdown text in which the tables between ``<!-- table ID -->`` and ``<!-- end -->`` are as published.

    Measured figures and remarks already in the text are kept, so that output of ``groundwire tables --markdown`` may be
    pasted in.
    """
    pattern = re.compile(BEGIN.format("([a-z0-9-]+)") + "(.*?)" + END, re.DOTALL)
    return pattern.sub(
        lambda match: f"{BEGIN.format(match[1])}\n{_keep_measured(render_table(match[1]), match[2]).markdown()}{END}",
        text,
    )


def _keep_measured(table: PaperTable, text: str) -> PaperTable:
    """``table`` with the measured cells of ``text``, a table of ``markdown``."""
    lines = text.splitlines()
    cells = {line.split(" | ")[0].removeprefix("| "): _parse_measured(line) for line in lines if line.startswith("| ")}
    rows = tuple(
        TableRow(row.name, tuple(map(_replace_measured, row.cells, cells.get(row.name) or [None] * len(row.cells))))
        for row in table.rows
    )
    remarks = tuple(line.removeprefix(REMARK) for line in lines if line.startswith(REMARK))
    return PaperTable(table.id, table.title, table.columns, rows, table.notes, remarks)


def _parse_measured(line: str) -> list[float | None]:
    halves = [cell.rpartition(" / ")[2].strip(" |%") for cell in line.split(" | ")[1:]]
    return [float(half) if re.fullmatch(r"-?[0-9.]+", half) else None for half in halves]


def _replace_measured(cell: Cell, measured: float | None) -> Cell:
    return Cell(cell.published, measured)


def _format_value(value: float | None, column: PublishedColumn) -> str:
    return NOT_RUN if value is None else f"{value:.{column.digits}f}{column.unit}"


def _format_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
