"""No sentence of the knowledge with another row's, fare's or person's value is cited (bench/quality/owners.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import CitationsExplanation

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "bench" / "quality" / "owners.jsonl").read_text().splitlines()
]
CITED_RIGHT = 12
"""Right answers whose last sentence is cited, as before values had owners."""


def test_another_s_value_is_not_cited() -> None:
    cited: dict[str, list[str]] = {"right": [], "wrong": []}
    with Engine.load() as engine:
        for side in cited:
            items = [{"response": row[side], "knowledge": row["knowledge"], "history": row["history"]} for row in ROWS]
            for row, score in zip(ROWS, engine.score_many(items, metrics=["citations"]), strict=True):
                explanation = score.metrics["citations"].explanation
                assert isinstance(explanation, CitationsExplanation)
                if explanation.sentences[-1].candidates[0].support >= explanation.min_support:
                    cited[side].append(row["id"])
    assert cited["wrong"] == []
    assert len(cited["right"]) >= CITED_RIGHT
