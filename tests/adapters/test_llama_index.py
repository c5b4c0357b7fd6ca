"""The evaluator, on texts and on responses with their nodes."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("llama_index.core.evaluation")
from llama_index.core.base.response.schema import Response  # noqa: E402
from llama_index.core.schema import NodeWithScore, TextNode  # noqa: E402

from groundwire.adapters.llama_index import LlamaIndexEvaluator  # noqa: E402


@pytest.mark.parametrize(("text", "passing"), [(CONSISTENT, True), (INCONSISTENT, False), (GREETING, True)])
def test_a_response_passes_by_its_verdict(engine: Engine, text: str, passing: bool) -> None:
    response = Response(text, source_nodes=[NodeWithScore(node=TextNode(text=KNOWLEDGE), score=1.0)])
    result = LlamaIndexEvaluator(engine).evaluate_response("What is honey like?", response)
    assert (result.passing, result.invalid_result) == (passing, False)
    assert result.score == PROBABILITY.get(text)
    assert result.contexts == [KNOWLEDGE]


def test_without_contexts_the_result_is_invalid(engine: Engine) -> None:
    result = LlamaIndexEvaluator(engine).evaluate(response=CONSISTENT)
    assert (result.passing, result.score, result.invalid_result) == (None, None, True)
    assert "knowledge is missing" in str(result.invalid_reason)
    result = LlamaIndexEvaluator(engine).evaluate(response=CONSISTENT, contexts=[])
    assert (result.passing, result.score, result.invalid_result) == (None, None, True)
    assert "No knowledge was given" in str(result.invalid_reason)


def test_a_failed_metric_makes_the_result_invalid(failing_engine: Engine) -> None:
    result = LlamaIndexEvaluator(failing_engine).evaluate("So?", CONSISTENT, [KNOWLEDGE])
    assert (result.passing, result.score, result.invalid_result) == (None, None, True)
    assert FAILURE in str(result.invalid_reason)


def test_there_are_no_prompts(engine: Engine) -> None:
    evaluator = LlamaIndexEvaluator(engine)
    assert evaluator.get_prompts() == {}
    evaluator.update_prompts({})
