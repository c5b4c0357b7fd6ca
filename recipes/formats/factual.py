"""The CSV files of "Rome was built in 1776" (alexa/factual-consistency-analysis-of-dialogs).

``factual_dataset_crowd/gt.csv``, ``knn.csv``, ``dpr.csv`` and ``factual_dataset_expert.csv`` have the same columns. A
response has a label only where it is verifiable; it is consistent from an average correctness of 0.5 on (the paper's
§5). ``hallucinated`` is the crowd's answer to another question: whether it says what the knowledge does not.
``source`` is the file's name, which says where the knowledge came from; ``system`` is model and decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.datasets.source import (
    ExampleError,
    Format,
    Items,
    Source,
    convert_entries,
    parse_choice,
    strip_texts,
)

CORRECTNESS, HALLUCINATION, VERIFIABLE = "Avg Factual Correctness", "Hallucination", "Verifiable"
COLUMNS = ("model_type", "decoding", "context", "knowledge", "response", CORRECTNESS, HALLUCINATION, VERIFIABLE)
YES_NO: dict[str, bool | None] = {"yes": True, "no": False, "y": True, "n": False, "": None}
CONSISTENT_FROM = 0.5


def _read(source: Source) -> Items:
    part = "expert" if "expert" in source.stem else source.stem

    def convert(index: int, cells: dict[str, str]) -> Iterator[Example]:
        verifiable = parse_choice(VERIFIABLE, cells[VERIFIABLE], {"y": True, "n": False})
        grade = parse_number(CORRECTNESS, cells[CORRECTNESS]) if verifiable else None
        dialogue = cells.get("conv_index", "").strip()
        yield Example(
            id=str(index),
            response=cells["response"],
            knowledge=strip_texts(cells["knowledge"]),
            history=_split_turns(cells["context"]),
            label=None if grade is None else int(grade >= CONSISTENT_FROM),
            grade=grade,
            verifiable=verifiable,
            hallucinated=parse_choice(HALLUCINATION, cells[HALLUCINATION], YES_NO) if verifiable else None,
            system=f"{cells['model_type']}/{cells['decoding']}",
            context=f"{part}-{dialogue}" if dialogue else "",
            source=part,
        )

    return convert_entries(source.table(COLUMNS), convert)


def _split_turns(context: str) -> tuple[str, ...]:
    """The utterances of ``A: …<br>B: …<br>``."""
    return strip_texts(*(re.sub(r"^\s*[A-Z]:\s", "", turn) for turn in context.split("<br>")))


def parse_number(name: str, value: str) -> float | None:
    """A cell as a number from 0 to 1; None for an empty cell, ExampleError for anything else."""
    if not value.strip():
        return None
    try:
        parsed = float(value)
    except ValueError as error:
        raise ExampleError(f"{name} is {value!r}; allowed are numbers from 0 to 1") from error
    if not 0.0 <= parsed <= 1.0:
        raise ExampleError(f"{name} is {value}; allowed are numbers from 0 to 1")
    return parsed


FACTUAL = Format(
    "CSV of factual-consistency-analysis-of-dialogs: gt.csv, knn.csv, dpr.csv, factual_dataset_expert.csv",
    lambda source: source.has(COLUMNS),
    _read,
)
