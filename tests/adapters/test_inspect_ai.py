"""The scorer, on the states of samples that Inspect passes, and in its mean."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("inspect_ai")
from inspect_ai.model import ModelName, ModelOutput  # noqa: E402
from inspect_ai.scorer import SampleScore, Target, mean  # noqa: E402
from inspect_ai.solver import TaskState  # noqa: E402

from groundwire.adapters.inspect_ai import groundwire  # noqa: E402


def score(engine: Engine, response: str, *, target: str = "", **metadata: Any) -> Any:
    """The score of a response as the output of a sample."""
    output = ModelOutput.from_content("mockllm/model", response)
    name = ModelName("mockllm/model")
    state = TaskState(name, 1, 1, "Honey?", messages=[], output=output, metadata=metadata)
    return asyncio.run(groundwire(engine)(state, Target(target)))


@pytest.mark.parametrize("given", [{"knowledge": [KNOWLEDGE]}, {"target": KNOWLEDGE}])
def test_a_score_has_the_probability_or_is_unscored(engine: Engine, given: dict[str, Any]) -> None:
    texts = [CONSISTENT, INCONSISTENT, GREETING]
    scores = [score(engine, text, **given) for text in texts]
    assert [scored.value for scored in scores[:2]] == [PROBABILITY[text] for text in texts[:2]]
    assert [scored.metadata["label"] for scored in scores] == ["consistent", "inconsistent", "unverifiable"]
    assert [scored.answer for scored in scores] == texts
    assert scores[1].explanation == "The knowledge does not support the response."
    assert (math.isnan(scores[2].value), scores[2].reason) == (True, "unverifiable")
    assert mean()([SampleScore(score=scored) for scored in scores[:2]]) == pytest.approx(0.5)


def test_a_failed_metric_is_unscored(failing_engine: Engine) -> None:
    scored = score(failing_engine, CONSISTENT, knowledge=KNOWLEDGE)
    assert (math.isnan(scored.value), scored.reason) == (True, "unknown")
    assert FAILURE in scored.explanation
