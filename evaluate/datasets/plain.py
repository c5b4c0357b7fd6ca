"""Groundwire's own formats: JSON Lines and CSV with the fields of an Example, under these or other common names.

A line is ``{"response": …, "knowledge": "…" or ["…", …]}`` with, where labelled, ``label`` (1 consistent, 0 not),
``grade`` and ``verifiable``, and with ``id``, ``history``, ``system``, ``context`` and ``source`` where known. A line
with ``consistent`` and ``inconsistent`` instead of ``response`` is two examples of one context. Other fields are
ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from .examples import Example
from .source import ExampleError, Format, Items, Source, convert_entries, convert_record, parse_choice, strip_texts

JOINT = " + "
"""Separates the names of several systems that gave the same response, which is one example."""


class Line(msgspec.Struct, frozen=True):
    """One line of JSON; ``build_examples`` says which fields are required."""

    id: str | int | None = None
    response: str | None = None
    consistent: str | None = None
    inconsistent: str | None = None
    knowledge: str | list[str] | None = None
    history: list[str] | None = None
    label: int | bool | None = None
    grade: float | None = None
    uses_knowledge: float | None = None
    """Another name of ``grade``, like ``correctness``."""
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
    """Another name of ``source``, like ``subsets``."""
    subsets: list[str] | None = None


def build_examples(number: int, line: Line) -> Iterator[Example]:
    """One example, or two of a pair; ExampleError when a field is missing or its value is not allowed."""
    if line.knowledge is None:
        raise ExampleError("no knowledge")
    if line.label not in (None, 0, 1):
        raise ExampleError(f"label is {line.label}; allowed are 1 (consistent), 0 (inconsistent) and null")
    knowledge = (line.knowledge,) if isinstance(line.knowledge, str) else tuple(line.knowledge)
    name = str(number + 1 if line.id is None else line.id)
    contexts = (line.context, line.context_id)
    grades = (line.grade, line.uses_knowledge, line.correctness)
    context = next((value for value in contexts if value is not None), None)
    example = Example(
        id=name,
        response=line.response or "",
        knowledge=strip_texts(*knowledge),
        history=tuple(line.history or ()),
        label=None if line.label is None else int(line.label),
        grade=next((value for value in grades if value is not None), None),
        verifiable=False if (line.begin_label or "").lower() == "generic" else line.verifiable,
        system=line.system or JOINT.join(line.models or ()),
        context="" if context is None else str(context),
        source=line.source or line.retriever or JOINT.join(line.subsets or ()),
    )
    if line.response is not None:
        yield example
    elif line.consistent is not None and line.inconsistent is not None:
        for label, response in ((1, line.consistent), (0, line.inconsistent)):
            which = "consistent" if label else "inconsistent"
            yield msgspec.structs.replace(
                example, id=f"{name}-{which}", response=response, label=label, context=example.context or name
            )
    else:
        raise ExampleError("no response, and no pair of consistent and inconsistent")


def _sniff_json(source: Source) -> bool:
    return "response" in source.first or {"consistent", "inconsistent"} <= set(source.first)


def read_json(source: Source) -> Items:
    """The examples of JSON Lines, or of one array of the same records."""
    return convert_entries(source.entries(), lambda number, entry: build_examples(number, convert_record(Line, entry)))


NEEDED = ("response", "knowledge")
YES_NO = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "y": True, "n": False}


def _read_csv(source: Source) -> Items:
    return convert_entries(source.table(NEEDED), _read_cells)


def _read_cells(number: int, cells: dict[str, str]) -> Iterator[Example]:
    """The examples of one row.

    The cell ``history`` holds one utterance per line, oldest first, as in ``groundwire score``.
    """
    fields: dict[str, Any] = {name: cells[name] for name in NEEDED}
    for name in ("id", "system", "context", "source"):
        if value := cells.get(name, "").strip():
            fields[name] = value
    if value := cells.get("label", "").strip():
        fields["label"] = parse_choice("label", value, {"1": 1, "0": 0, "1.0": 1, "0.0": 0})
    if value := cells.get("grade", "").strip():
        try:
            fields["grade"] = float(value)
        except ValueError as error:
            raise ExampleError(f"grade is {value!r}; allowed are numbers") from error
    if value := cells.get("verifiable", "").strip():
        fields["verifiable"] = parse_choice("verifiable", value, YES_NO)
    fields["history"] = [turn for turn in cells.get("history", "").splitlines() if turn.strip()]
    return build_examples(number, convert_record(Line, fields))


JSONL = Format("JSON Lines with response, knowledge and perhaps label, grade, history, …", _sniff_json, read_json)
CSV = Format("the same as CSV with a header", lambda source: source.has(NEEDED), _read_csv)
