"""The evaluator in Phoenix's own evaluation of a data frame."""

from __future__ import annotations

import asyncio
import json

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

evals = load("phoenix.evals")
pandas = load("pandas")
from groundwire.adapters.phoenix import PhoenixEvaluator  # noqa: E402


@pytest.mark.parametrize(
    ("text", "label"), [(CONSISTENT, "consistent"), (INCONSISTENT, "inconsistent"), (GREETING, "unverifiable")]
)
def test_a_score_has_the_probability_and_the_label(engine: Engine, text: str, label: str) -> None:
    turn = {"input": "What is honey like?", "output": text, "context": [KNOWLEDGE]}
    evaluator = PhoenixEvaluator(engine)
    (score,) = evaluator.evaluate(turn)
    assert (score.name, score.kind, score.label, score.score) == ("groundwire", "code", label, PROBABILITY.get(text))
    assert asyncio.run(evaluator.async_evaluate(turn)) == [score]


def test_without_a_score_there_is_no_number(engine: Engine, failing_engine: Engine) -> None:
    (score,) = PhoenixEvaluator(failing_engine).evaluate({"output": CONSISTENT, "context": KNOWLEDGE})
    assert (score.label, score.score) == ("unknown", None)
    assert FAILURE in score.explanation
    with pytest.raises(ValueError, match="context"):
        PhoenixEvaluator(engine).evaluate({"output": CONSISTENT})


def test_a_frame(engine: Engine) -> None:
    frame = pandas.DataFrame({"answer": [CONSISTENT, GREETING], "documents": [[KNOWLEDGE]] * 2})
    mapping = {"output": "answer", "context": "documents"}
    evaluator = evals.bind_evaluator(evaluator=PhoenixEvaluator(engine, name="faithful"), input_mapping=mapping)
    scored = evals.evaluate_dataframe(dataframe=frame, evaluators=[evaluator], hide_tqdm_bar=True)
    scores = [score if isinstance(score, dict) else json.loads(score) for score in scored["faithful_score"]]
    assert [score.get("score") for score in scores] == [PROBABILITY[CONSISTENT], None]
    assert [score["label"] for score in scores] == ["consistent", "unverifiable"]
