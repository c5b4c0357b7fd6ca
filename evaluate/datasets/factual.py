"""The CSV files of "Rome was built in 1776" (alexa/factual-consistency-analysis-of-dialogs).

``factual_dataset_crowd/gt.csv``, ``knn.csv``, ``dpr.csv`` and ``factual_dataset_expert.csv`` have the same columns. A
response is judged only where it is verifiable; it is consistent from an average correctness of 0.5 on (the paper's §5).
The file's name says where the knowledge came from and becomes ``source``; ``system`` is model and decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .examples import Row
from .source import Format, Items, Source, choice, number, rows, texts

CORRECTNESS, VERIFIABLE = "Avg Factual Correctness", "Verifiable"
COLUMNS = ("model_type", "decoding", "context", "knowledge", "response", CORRECTNESS, "Hallucination", VERIFIABLE)
CONSISTENT_FROM = 0.5


def _read(source: Source) -> Items:
    part = "expert" if "expert" in source.stem else source.stem

    def convert(index: int, cells: dict[str, str]) -> Iterator[Row]:
        verifiable = choice(VERIFIABLE, cells[VERIFIABLE], {"y": True, "n": False})
        grade = number(CORRECTNESS, cells[CORRECTNESS]) if verifiable else None
        dialogue = cells.get("conv_index", "").strip()
        yield Row(
            id=str(index),
            response=cells["response"],
            knowledge=texts(cells["knowledge"]),
            history=_turns(cells["context"]),
            label=None if grade is None else int(grade >= CONSISTENT_FROM),
            grade=grade,
            verifiable=verifiable,
            system=f"{cells['model_type']}/{cells['decoding']}",
            context=f"{part}-{dialogue}" if dialogue else "",
            source=part,
        )

    return rows(source.table(COLUMNS), convert)


def _turns(context: str) -> tuple[str, ...]:
    """``A: …<br>B: …<br>`` as utterances."""
    return texts(*(re.sub(r"^\s*[A-Z]:\s", "", turn) for turn in context.split("<br>")))


FACTUAL = Format(
    "CSV of factual-consistency-analysis-of-dialogs: gt.csv, knn.csv, dpr.csv, factual_dataset_expert.csv",
    lambda source: source.has(COLUMNS),
    _read,
)
