"""Our own formats: JSON Lines and CSV with the fields of a Row, and the names that normalised sets give them.

A line is ``{"response": …, "knowledge": "…" or ["…", …]}`` with, where people said so, ``label`` (1 consistent, 0 not),
``grade`` and ``verifiable``, and with ``id``, ``history``, ``system``, ``context`` and ``source`` where known. A line
with ``consistent`` and ``inconsistent`` instead of ``response`` is two rows of one context. Other fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from .examples import Row
from .source import Format, Items, RowError, Source, choice, record, rows, texts

JOINT = " + "
"""Between the names of several systems that gave the very same response, which is then one row."""


class Line(msgspec.Struct, frozen=True):
    """One line; every field may be missing, ``to_rows`` says which may not."""

    id: str | int | None = None
    response: str | None = None
    consistent: str | None = None
    inconsistent: str | None = None
    knowledge: str | list[str] | None = None
    history: list[str] | None = None
    label: int | bool | None = None
    grade: float | None = None
    uses_knowledge: float | None = None
    """Another name of the grade, as ``correctness``."""
    correctness: float | None = None
    verifiable: bool | None = None
    begin_label: str | None = None
    """A label of BEGIN; "Generic" says that nothing can be verified."""
    system: str | None = None
    models: list[str] | None = None
    """Several systems that gave the same response."""
    context: str | int | None = None
    context_id: str | int | None = None
    source: str | None = None
    retriever: str | None = None
    """Another name of the source, as ``subsets``."""
    subsets: list[str] | None = None


def to_rows(number: int, line: Line) -> Iterator[Row]:
    """One row, or two of a pair; RowError when a field is missing or its value is not allowed."""
    if line.knowledge is None:
        raise RowError("no knowledge")
    if line.label not in (None, 0, 1):
        raise RowError(f"label is {line.label}; allowed are 1 (consistent), 0 (inconsistent) and null")
    knowledge = (line.knowledge,) if isinstance(line.knowledge, str) else tuple(line.knowledge)
    name = str(number + 1 if line.id is None else line.id)
    given = next((one for one in (line.context, line.context_id) if one is not None), None)
    row = Row(
        id=name,
        response=line.response or "",
        knowledge=texts(*knowledge),
        history=tuple(line.history or ()),
        label=None if line.label is None else int(line.label),
        grade=next((one for one in (line.grade, line.uses_knowledge, line.correctness) if one is not None), None),
        verifiable=False if (line.begin_label or "").lower() == "generic" else line.verifiable,
        system=line.system or JOINT.join(line.models or ()),
        context="" if given is None else str(given),
        source=line.source or line.retriever or JOINT.join(line.subsets or ()),
    )
    if line.response is not None:
        yield row
    elif line.consistent is not None and line.inconsistent is not None:
        for label, response in ((1, line.consistent), (0, line.inconsistent)):
            which = "consistent" if label else "inconsistent"
            yield msgspec.structs.replace(
                row, id=f"{name}-{which}", response=response, label=label, context=row.context or name
            )
    else:
        raise RowError("no response, and no pair of consistent and inconsistent")


def _is_json(source: Source) -> bool:
    return "response" in source.first or {"consistent", "inconsistent"} <= set(source.first)


def read_json(source: Source) -> Items:
    """The rows of JSON Lines, or of one array of the same records."""
    return rows(source.entries(), lambda number, entry: to_rows(number, record(Line, entry)))


NEEDED = ("response", "knowledge")
YES_NO = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "y": True, "n": False}


def _read_csv(source: Source) -> Items:
    return rows(source.table(NEEDED), _from_cells)


def _from_cells(number: int, cells: dict[str, str]) -> Iterator[Row]:
    """A cell of ``history`` holds one utterance per line, oldest first, as ``groundwire score`` has it."""
    fields: dict[str, Any] = {name: cells[name] for name in NEEDED}
    for name in ("id", "system", "context", "source"):
        if value := cells.get(name, "").strip():
            fields[name] = value
    if value := cells.get("label", "").strip():
        fields["label"] = choice("label", value, {"1": 1, "0": 0, "1.0": 1, "0.0": 0})
    if value := cells.get("grade", "").strip():
        try:
            fields["grade"] = float(value)
        except ValueError as error:
            raise RowError(f"grade is {value!r}; allowed are numbers") from error
    if value := cells.get("verifiable", "").strip():
        fields["verifiable"] = choice("verifiable", value, YES_NO)
    fields["history"] = [turn for turn in cells.get("history", "").splitlines() if turn.strip()]
    return to_rows(number, record(Line, fields))


JSONL = Format("JSON Lines with response, knowledge and perhaps label, grade, history, …", _is_json, read_json)
CSV = Format("the same as CSV with a header", lambda source: source.has(NEEDED), _read_csv)
