"""Writes written documents as labelled rows: a supported and an unsupported answer of each."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .documents import Document, WrittenAnswer
from .pairs import WrittenPairs, draw_slots, falsify


def write_labelled_rows(split: str, out: Path, names: Collection[str] | None = None, seed: int = 13) -> int:
    """Write the rows of a split as JSON Lines.

    Args:
        split: ``train`` or ``dev``.
        out: The file.
        names: The answers that are written (title and number, "policy: parking-0"), each right one with its wrong one;
            None writes all.
        seed: Of the slots that become wrong.

    Returns:
        How many rows were written.

    Raises:
        ValueError: If the split has not every answer that is named.
    """
    rows = list(iterate_rows(WrittenPairs.read(split).documents, seed))
    if names is not None:
        rows = [row for row in rows if row["id"].rpartition("-")[0] in names]
        if missing := sorted(set(names) - {row["id"].rpartition("-")[0] for row in rows}):
            raise ValueError(
                f"The split {split} has no answer {missing[0]!r}, and {len(missing) - 1} others that are named."
            )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return len(rows)


def iterate_rows(documents: tuple[Document, ...], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of documents as ``groundwire evaluate`` reads them; answers that state nothing are left out."""
    for document in documents:
        rng = random.Random(f"{seed}-{document.title}")
        for number, answer in enumerate(answer for answer in document.answers if not answer.states_nothing):
            response, spans = falsify(answer, draw_slots(answer, rng), rng)
            row = _make_row(document, answer, number)
            yield {**row, "id": f"{row['id']}-1", "response": answer.supported, "label": 1, "unsupported": []}
            yield {
                **row,
                "id": f"{row['id']}-0",
                "response": response,
                "label": 0,
                "unsupported": [asdict(span) for span in spans],
            }


def _make_row(document: Document, answer: WrittenAnswer, number: int) -> dict[str, Any]:
    return {
        "id": f"{document.title}-{number}",
        "kind": document.title.partition(":")[0],
        "knowledge": list(document.passages),
        "history": list(answer.history),
    }
