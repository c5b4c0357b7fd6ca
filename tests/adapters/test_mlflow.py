"""The scorer, on rows as MLflow passes them."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("mlflow.genai.scorers")
from groundwire.adapters.mlflow import make_scorer  # noqa: E402


@pytest.mark.parametrize("where", ["inputs", "expectations"])
@pytest.mark.parametrize("response", [CONSISTENT, INCONSISTENT])
def test_the_feedback_has_the_probability(engine: Engine, where: str, response: str) -> None:
    given = {"inputs": {"question": "So?"}, "outputs": response, where: {"knowledge": [KNOWLEDGE]}}
    feedback = make_scorer(engine).run(**given)
    assert (feedback.name, feedback.value, feedback.error) == ("groundwire", PROBABILITY[response], None)
    assert feedback.metadata == {"label": "consistent" if response == CONSISTENT else "inconsistent"}


@pytest.mark.parametrize(("response", "knowledge"), [(GREETING, KNOWLEDGE), (CONSISTENT, None), (None, KNOWLEDGE)])
def test_without_a_probability_there_is_an_error(engine: Engine, response: str | None, knowledge: str | None) -> None:
    scorer = make_scorer(engine, knowledge="document", name="faithful")
    feedback = scorer.run(inputs={"document": knowledge}, outputs=response)
    assert (feedback.name, feedback.value, feedback.error.error_code) == ("faithful", None, "NoScore")


def test_a_failed_metric_is_an_error(failing_engine: Engine) -> None:
    feedback = make_scorer(failing_engine).run(inputs={"knowledge": KNOWLEDGE}, outputs=CONSISTENT)
    assert feedback.value is None
    assert FAILURE in feedback.error.error_message
