"""The metric, alone and in DeepEval's runs."""

from __future__ import annotations

import asyncio

import pytest

from groundwire.adapters.checking import NoScore
from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

deepeval = load("deepeval")
load("deepeval.metrics")
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig, ErrorConfig  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402

from groundwire.adapters.deepeval import DeepEvalMetric  # noqa: E402


def make_case(response: str, **contexts: list[str] | None) -> LLMTestCase:
    return LLMTestCase(
        input="What is honey like?", actual_output=response, **(contexts or {"retrieval_context": [KNOWLEDGE]})
    )


@pytest.mark.parametrize("name", ["context", "retrieval_context"])
@pytest.mark.parametrize(("response", "passed"), [(CONSISTENT, True), (INCONSISTENT, False)])
def test_a_case_passes_by_its_verdict(engine: Engine, name: str, response: str, passed: bool) -> None:
    metric = DeepEvalMetric(engine)
    case = make_case(response, **{name: [KNOWLEDGE]})
    assert metric.measure(case) == asyncio.run(metric.a_measure(case)) == PROBABILITY[response]
    assert (metric.score, metric.threshold) == (PROBABILITY[response], 0.5)
    assert (metric.success, metric.is_successful()) == (passed, passed)


def test_a_greeting_passes_without_a_score(engine: Engine) -> None:
    metric = DeepEvalMetric(engine)
    metric.measure(make_case(CONSISTENT))
    assert metric.measure(make_case(GREETING)) is None
    assert (metric.score, metric.is_successful()) == (None, True)


def test_nothing_is_left_of_the_case_before(failing_engine: Engine, engine: Engine) -> None:
    metric = DeepEvalMetric(engine)
    metric.measure(make_case(CONSISTENT))
    with pytest.raises(NoScore, match="knowledge is missing"):
        metric.measure(make_case(CONSISTENT, context=None))
    assert (metric.score, metric.is_successful()) == (None, False)
    metric.measure(make_case(CONSISTENT))
    assert (metric.error, metric.is_successful()) == (None, True)


@pytest.mark.parametrize("run_async", [True, False])
def test_deepevals_runs_report_verdicts_and_errors(engine: Engine, failing_engine: Engine, run_async: bool) -> None:
    def run(engine: Engine, *responses: str) -> list[tuple[bool | None, float | None, str | None]]:
        result = deepeval.evaluate(
            [make_case(response) for response in responses],
            [DeepEvalMetric(engine)],
            async_config=AsyncConfig(run_async=run_async),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        (data,) = zip(*(case.metrics_data for case in result.test_results), strict=True)
        return [(metric.success, metric.score, metric.error) for metric in data]

    assert sorted(run(engine, CONSISTENT, INCONSISTENT), key=str) == [
        (False, PROBABILITY[INCONSISTENT], None),
        (True, PROBABILITY[CONSISTENT], None),
    ]
    ((success, score, error),) = run(failing_engine, CONSISTENT)
    assert (success, score) == (False, None)
    assert FAILURE in str(error)


def test_assert_test_fails_without_a_score(failing_engine: Engine) -> None:
    with pytest.raises(NoScore, match=FAILURE):
        deepeval.assert_test(make_case(CONSISTENT), [DeepEvalMetric(failing_engine)], run_async=False)
