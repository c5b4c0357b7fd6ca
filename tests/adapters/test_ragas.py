"""The metric, alone and in ``ragas.evaluate``."""

from __future__ import annotations

import math

import pytest

from groundwire.adapters.checking import NoScore
from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

ragas = load("ragas")
load("ragas.metrics.base")
from ragas import EvaluationDataset, SingleTurnSample  # noqa: E402

from groundwire.adapters.ragas import RagasMetric  # noqa: E402


def make_sample(response: str) -> SingleTurnSample:
    return SingleTurnSample(user_input="What is honey like?", response=response, retrieved_contexts=[KNOWLEDGE])


@pytest.mark.parametrize("response", [CONSISTENT, INCONSISTENT])
def test_the_score_is_the_probability(engine: Engine, response: str) -> None:
    assert RagasMetric(engine=engine).single_turn_score(make_sample(response)) == PROBABILITY[response]


def test_without_a_probability_there_is_an_error(engine: Engine, failing_engine: Engine) -> None:
    with pytest.raises(NoScore, match="states nothing"):
        RagasMetric(engine=engine).single_turn_score(make_sample(GREETING))
    with pytest.raises(NoScore, match=FAILURE):
        RagasMetric(engine=failing_engine).single_turn_score(make_sample(CONSISTENT))


def test_evaluate_has_nan_where_there_is_no_score(engine: Engine) -> None:
    dataset = EvaluationDataset([make_sample(CONSISTENT), make_sample("")])
    result = ragas.evaluate(dataset, metrics=[RagasMetric(engine=engine)], show_progress=False)
    assert result["groundwire"][0] == PROBABILITY[CONSISTENT]
    assert math.isnan(result["groundwire"][1])
