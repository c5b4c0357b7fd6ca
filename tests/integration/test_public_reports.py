"""Answers re-created from public reports about tools of this kind (bench/quality/public_reports.jsonl)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "bench" / "quality" / "public_reports.jsonl").read_text().splitlines()
]
READER = "for the reader to learn: "
MISSED = {
    "xllama-243-2": READER + "“each” gives a total to every part",
    "dismech-9832-2": READER + "“range was >43 micromol/L [>2.5 mg/dL]” in other words is 0.03 below the threshold",
    "home-llm-186-3": READER + "two rooms have each other's temperature",
}
UNMARKED = {"home-llm-186-4": READER + "of two wrong values the first is marked alone"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load() as loaded:
        yield loaded


def list_rows(rows: list[dict[str, Any]], missed: Mapping[str, str] = MISSED) -> list[Any]:
    """The rows, of which those in ``missed`` are known to fail."""
    return [
        pytest.param(
            row,
            id=row["id"],
            marks=[pytest.mark.xfail(reason=missed[row["id"]], strict=True)] if row["id"] in missed else [],
        )
        for row in rows
    ]


@pytest.mark.parametrize("row", list_rows(ROWS))
def test_the_label_is_right(engine: Engine, row: dict[str, Any]) -> None:
    score = engine.score(row["response"], row["knowledge"], history=row["history"])
    assert score.verdict.label == row["label"]


@pytest.mark.parametrize("row", list_rows([row for row in ROWS if row["unsupported"]], MISSED | UNMARKED))
def test_the_wrong_words_are_marked(engine: Engine, row: dict[str, Any]) -> None:
    marks = engine.score(row["response"], row["knowledge"], history=row["history"]).unsupported
    assert all(
        any(mark.start < part["end"] and part["start"] < mark.end for mark in marks) for part in row["unsupported"]
    )
