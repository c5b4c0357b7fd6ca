"""Groundwire's own formats: JSON Lines and CSV with the fields of an Example, under these or other common names.

A line is ``{"response": …, "knowledge": "…" or ["…", …]}`` with, where labelled, ``label`` (1 consistent, 0 not, or
"unverifiable"), ``grade``, ``verifiable``, ``hallucination`` (true or false), ``unsupported`` (``[{"start": 11, "end":
14}]``, characters of the response) and ``evidence`` (``[{"passage": 0, "start": 0, "end": 20}]``, what supports the
response, in characters of a passage), and with ``id``, ``history``, ``system``, ``context``, ``dialogue``, ``source``
and ``language`` where known. A line with ``consistent`` and ``inconsistent`` instead of ``response`` is two examples of
one context. Other fields are ignored. ``interfaces/files/columns.py`` has the other names of response, knowledge and
history, and reads ``messages``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from groundwire.engine.extend import list_passages
from groundwire.engine.schema.explanations import PassageRange
from groundwire.files.columns import ALIASES, PROMPT, AmbiguousColumns, find_columns, read_passages, rename_fields
from groundwire.files.json_text import MalformedText
from groundwire.runtime.arguments import read_table
from groundwire.runtime.errors import InvalidRequest

from .examples import Example
from .source import (
    ALLOWED,
    ExampleError,
    Format,
    Items,
    Source,
    convert_entries,
    convert_record,
    parse_choice,
    strip_texts,
)

JOINT = " + "
"""Separates the names of several systems that gave the same response, which is one example."""


class CharacterRange(msgspec.Struct, frozen=True):
    """Characters of the response; other fields are ignored."""

    start: int
    end: int


class ExampleLine(msgspec.Struct, frozen=True):
    """One line of JSON; ``build_examples`` says which fields are required."""

    id: str | int | None = None
    response: str | None = None
    consistent: str | None = None
    inconsistent: str | None = None
    knowledge: Any = None
    """As ``Engine.score`` takes it: a text, a JSON object, or a list of these."""
    history: list[str] | None = None
    label: int | float | bool | str | None = None
    """1 or 0, or a word of ``LABELS``."""
    grade: float | None = None
    uses_knowledge: float | None = None
    """Another name of ``grade``, like ``correctness``."""
    correctness: float | None = None
    verifiable: bool | None = None
    hallucination: bool | None = None
    """Whether it says what the knowledge does not, right or wrong."""
    unsupported: list[CharacterRange] | None = None
    """Of ``response``; an empty list says that all of it is supported."""
    evidence: list[PassageRange] | None = None
    """Of ``knowledge``; an empty list says that none of it supports the response."""
    begin_label: str | None = None
    """A label of BEGIN; "Generic" says that nothing can be verified."""
    system: str | None = None
    models: list[str] | None = None
    """Several systems that gave the same response."""
    context: str | int | None = None
    context_id: str | int | None = None
    dialogue: str | int | None = None
    language: str | None = None
    source: str | None = None
    retriever: str | None = None
    """Another name of ``source``, like ``subsets``."""
    subsets: list[str] | None = None


def build_examples(number: int, line: ExampleLine) -> Iterator[Example]:
    """One example, or two of a pair; ExampleError when a field is missing or its value is not allowed."""
    if line.knowledge is None:
        raise ExampleError(f"no knowledge{ALLOWED}{_list_names('knowledge')}")
    unverifiable = isinstance(line.label, str) and line.label.strip().lower() == UNVERIFIABLE
    label = None if unverifiable else read_label(line.label)
    unverifiable = unverifiable or (line.begin_label or "").lower() == "generic"
    try:
        knowledge = list_passages(line.knowledge)
    except InvalidRequest as error:
        raise ExampleError(str(error)) from error
    evidence = None if line.evidence is None else tuple(_place(part, knowledge) for part in line.evidence)
    name = str(number + 1 if line.id is None else line.id)
    contexts = (line.context, line.context_id)
    grades = (line.grade, line.uses_knowledge, line.correctness)
    context = next((value for value in contexts if value is not None), None)
    example = Example(
        id=name,
        response=line.response or "",
        knowledge=strip_texts(*knowledge),
        history=tuple(line.history or ()),
        label=label,
        grade=next((value for value in grades if value is not None), None),
        verifiable=False if unverifiable else line.verifiable,
        hallucinated=line.hallucination,
        system=line.system or JOINT.join(line.models or ()),
        context="" if context is None else str(context),
        dialogue="" if line.dialogue is None else str(line.dialogue),
        source=line.source or line.retriever or JOINT.join(line.subsets or ()),
        language=line.language or "",
    )
    if line.response is not None:
        unsupported = _read_ranges(line.unsupported, line.response)
        yield msgspec.structs.replace(example, unsupported=unsupported, evidence=evidence)
    elif line.consistent is not None and line.inconsistent is not None:
        for label, response in ((1, line.consistent), (0, line.inconsistent)):
            which = "consistent" if label else "inconsistent"
            yield msgspec.structs.replace(
                example, id=f"{name}-{which}", response=response, label=label, context=example.context or name
            )
    else:
        raise ExampleError(
            f"no response{ALLOWED}{_list_names('response')}, messages, and a pair of consistent and inconsistent"
        )


def make_examples(rows: Iterable[Example | Mapping[str, Any]]) -> list[Example]:
    """The examples of rows in memory.

    Args:
        rows: Examples, or mappings with the fields of a line of JSON.

    Returns:
        The examples, in order.

    Raises:
        InvalidRequest: A row lacks a field, or has a value that is not allowed, or two have one id.
    """
    examples: list[Example] = []
    for number, row in enumerate(read_table(rows)):
        if isinstance(row, Example):
            examples.append(row)
            continue
        try:
            examples += build_examples(number, convert_record(ExampleLine, rename_fields(dict(row), {})))
        except (ExampleError, MalformedText, TypeError, ValueError) as error:
            raise InvalidRequest(f"Row {number} cannot be used: {error}.") from error
    ids = Counter(example.id for example in examples)
    if repeated := next((name for name, count in ids.items() if count > 1), None):
        raise InvalidRequest(f"{ids[repeated]} rows have the id {repeated!r}; give each an id of its own, or none.")
    return examples


def _list_names(field: str) -> str:
    return ", ".join((field, *ALIASES[field]))


def _read_ranges(ranges: list[CharacterRange] | None, response: str) -> tuple[tuple[int, int], ...] | None:
    if ranges is None:
        return None
    for part in ranges:
        if not 0 <= part.start < part.end <= len(response):
            raise ExampleError(
                f"unsupported has the characters {part.start} to {part.end}; the response has {len(response)}"
            )
    return tuple((part.start, part.end) for part in ranges)


def _place(part: PassageRange, knowledge: Sequence[str]) -> PassageRange:
    """A range in the passage as the example has it, without spaces at its ends."""
    if not 0 <= part.passage < len(knowledge):
        raise ExampleError(f"evidence names passage {part.passage}; the knowledge has {len(knowledge)}, counted from 0")
    passage = knowledge[part.passage]
    if not 0 <= part.start < part.end <= len(passage):
        raise ExampleError(
            f"evidence has the characters {part.start} to {part.end}; passage {part.passage} has {len(passage)}"
        )
    indent = len(passage) - len(passage.lstrip())
    return PassageRange(part.passage, max(0, part.start - indent), part.end - indent)


CONSISTENT = ("consistent", "faithful", "supported", "grounded", "factual", "true", "pass", "yes", "y", "1", "1.0")
INCONSISTENT = (
    *("inconsistent", "unfaithful", "unsupported", "not supported", "ungrounded", "hallucinated", "hallucination"),
    *("non-factual", "false", "fail", "no", "n", "0", "0.0"),
)
UNVERIFIABLE = "unverifiable"
"""A label of a response that states nothing to check: it is neither of the two, and ``verifiable`` is false."""
LABELS = dict.fromkeys(CONSISTENT, 1) | dict.fromkeys(INCONSISTENT, 0)


def read_label(value: float | bool | str | None) -> int | None:
    """1 for consistent, 0 for inconsistent; None for null and an empty text. ExampleError for anything else."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        return parse_choice("label", value.replace("_", " "), LABELS)
    if value not in (0, 1):
        raise ExampleError(f"label is {value}; allowed are 1 (consistent), 0 (inconsistent), null, and their words")
    return int(value)


def _rename(row: dict[str, Any], source: Source) -> dict[str, Any]:
    try:
        renamed = rename_fields(row, source.columns)
    except MalformedText as error:
        raise ExampleError(str(error)) from error
    spans = row.get("labels")
    if PROMPT in row and isinstance(spans, list):  # LettuceDetect's data: the unsupported parts of the answer
        renamed = {"unsupported": spans, "label": int(not spans)} | renamed
    return renamed


def _sniff_json(source: Source) -> bool:
    try:
        first = source.first and rename_fields(source.first, source.columns)
    except MalformedText:
        return True
    return (
        {"response", "knowledge"} <= set(first)
        or {"consistent", "inconsistent"} <= set(first)
        or ("response" in source.first)
    )


def read_json(source: Source) -> Items:
    """The examples of JSON Lines, or of one array of the same records."""

    def convert(number: int, entry: Any) -> Iterator[Example]:
        row = _rename(entry, source) if isinstance(entry, dict) else entry
        return _add_scores(build_examples(number, convert_record(ExampleLine, row)), entry, source)

    return convert_entries(source.entries(), convert)


def _add_scores(examples: Iterator[Example], row: Mapping[str, Any], source: Source) -> Iterator[Example]:
    """The examples of a row with the numbers of its score columns; an empty cell adds nothing."""
    cells = [(name, row.get(name)) for name in source.score_columns]
    scores = tuple((name, _read_score(name, value)) for name, value in cells if value not in (None, ""))
    for example in examples:
        yield msgspec.structs.replace(example, scores=scores)


def _read_score(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ExampleError(f"{name} is {value!r}; allowed are numbers, and nothing")
    return number


NEEDED = ("response", "knowledge")
YES_NO = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "y": True, "n": False}


def _find_needed(source: Source) -> list[str]:
    """The columns of response and knowledge; their own names where there are none."""
    try:
        where = find_columns(source.header(), source.columns)
    except AmbiguousColumns as error:
        raise InvalidRequest(f"{source.path} has no clear columns: {error}.") from error
    return [where.get(name, name) for name in NEEDED]


def _sniff_csv(source: Source) -> bool:
    return not source.is_json and source.has(_find_needed(source))


def _read_csv(source: Source) -> Items:
    def convert(number: int, cells: dict[str, str]) -> Iterator[Example]:
        return _add_scores(_read_cells(number, _rename(cells, source)), cells, source)

    return convert_entries(source.table(_find_needed(source)), convert)


def _read_cells(number: int, cells: dict[str, Any]) -> Iterator[Example]:
    """The examples of one row.

    The cell ``history`` holds one utterance per line, oldest first, as in ``groundwire score``.
    """
    try:
        fields: dict[str, Any] = {"response": cells["response"], "knowledge": read_passages(cells["knowledge"])}
    except MalformedText as error:
        raise ExampleError(f"knowledge: {error}") from error
    for name in ("id", "label", "system", "context", "source", "language"):
        if value := cells.get(name, "").strip():
            fields[name] = value
    if value := cells.get("grade", "").strip():
        try:
            fields["grade"] = float(value)
        except ValueError as error:
            raise ExampleError(f"grade is {value!r}; allowed are numbers") from error
    if value := cells.get("verifiable", "").strip():
        fields["verifiable"] = parse_choice("verifiable", value, YES_NO)
    history = cells.get("history", "")
    fields["history"] = [
        turn for turn in (history.splitlines() if isinstance(history, str) else history) if turn.strip()
    ]
    return build_examples(number, convert_record(ExampleLine, fields))


JSONL = Format("JSON Lines with response, knowledge and perhaps label, grade, history, …", _sniff_json, read_json)
CSV = Format("the same as a table with a header, divided by commas, semicolons or tabs", _sniff_csv, _read_csv)
