"""Ten first programs of people who have read the README alone: what they guess works."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import groundwire
from groundwire import Corrector, Engine, Guard, KnowledgeGraph, Options
from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif(
    not {"compact", "reader"} <= set(embedded()), reason="this checkout does not have the embedded bundles"
)
LABELLED = Path(__file__).resolve().parents[2] / "examples" / "labelled.jsonl"
KNOWLEDGE = "The shop opens at 8 every day. Parking is free for two hours."
WRONG, RIGHT = "The shop opens at 9 every day.", "The shop opens at 8 every day."


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", device="cpu") as engine:
        yield engine


def test_a_score_is_read(engine: Engine) -> None:
    score = engine.score(WRONG, KNOWLEDGE, history=["When do you open?"])
    assert score.verdict.label == "inconsistent"
    assert ("9", "8") in [(span.text, span.knowledge_says) for span in score.unsupported]
    assert len(repr(score)) <= 200
    assert json.loads(json.dumps(score.to_dict()))["verdict"]["label"] == "inconsistent"


def test_rows_are_scored_with_a_profile(engine: Engine) -> None:
    rows = [{"response": text, "knowledge": [KNOWLEDGE], "history": []} for text in (WRONG, RIGHT)]
    labels = [score.verdict.label for score in engine.score_many(rows, options=Options(profile="lenient"))]
    assert labels == ["inconsistent", "consistent"]


def test_records_of_tools_are_knowledge(engine: Engine) -> None:
    score = engine.score("Your order has three items.", {"order": 17, "items": 3, "status": "paid"})
    assert score.verdict.label != "unknown"


def test_questions_are_explained(engine: Engine) -> None:
    score = engine.score(WRONG, KNOWLEDGE, metrics=["q2", "nli"])
    explanation = score.explain(groundwire.explanations.Q2Explanation)
    assert explanation is not None
    assert explanation.questions
    assert "The verdict needs" in score.verdict.message  # one line says what it lacks


def test_tasks_of_asyncio_are_scored(engine: Engine) -> None:
    async def main() -> list[str]:
        scores = await asyncio.gather(*(engine.ascore(text, KNOWLEDGE) for text in (WRONG, RIGHT)))
        return [sentence.verdict.label for score in scores for sentence in score.sentences]

    assert asyncio.run(main()) == ["inconsistent", "consistent"]


def test_an_answer_is_corrected(engine: Engine) -> None:
    correction = Corrector(engine).correct(WRONG, KNOWLEDGE)
    assert (correction.status, correction.response) == ("corrected", RIGHT)
    assert [(edit.old, edit.new) for edit in correction.edits] == [("9", "8")]


def test_the_best_candidate_is_chosen(engine: Engine) -> None:
    assert engine.rank([WRONG, RIGHT], KNOWLEDGE, metric="reader")[0].response == RIGHT


def test_a_stream_is_guarded(engine: Engine) -> None:
    with Guard(engine).open(KNOWLEDGE) as stream:
        for part in (RIGHT, " ", WRONG):
            stream.feed(part)
        stream.finish()
        assert stream.released.strip() == RIGHT


def test_a_file_is_evaluated_and_a_verdict_fitted(engine: Engine) -> None:
    run = groundwire.evaluate(LABELLED, engine, repeats=10)
    assert run.results.sets[0].verdicts[0].profile == "balanced"
    rows = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    right = [row for row in rows if row["label"] == 1]
    assert 0 < groundwire.calibrate_trusted(right, engine, 0.2).threshold < 1


def test_a_graph_is_read_from_triples() -> None:
    graph = KnowledgeGraph.from_triples([("Alien", "directed by", "Ridley Scott")])
    assert len(graph.neighbourhood(["Alien"]).triples) == 1
