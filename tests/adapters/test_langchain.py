"""The runnable in chains, and the evaluator on runs."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from groundwire.engine import Engine, InvalidRequest
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("langchain_core.tracers.evaluation")
load("langsmith.evaluation")
from langchain_core.documents import Document  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage  # noqa: E402
from langchain_core.runnables import RunnableLambda, RunnablePassthrough  # noqa: E402
from langsmith.schemas import Example, Run  # noqa: E402

from groundwire.adapters.langchain import LangSmithEvaluator, make_runnable  # noqa: E402


def make_run(outputs: dict[str, Any] | None, inputs: dict[str, Any] | None = None) -> Run:
    return Run(
        id=uuid.uuid4(),
        name="chat",
        start_time=datetime.now(UTC),
        run_type="chain",
        inputs=inputs or {},
        outputs=outputs,
        trace_id=uuid.uuid4(),
    )


@pytest.mark.parametrize(("response", "passed"), [(CONSISTENT, True), (INCONSISTENT, False)])
def test_a_chain_ends_with_the_check(engine: Engine, response: str, passed: bool) -> None:
    chain = {
        "response": RunnableLambda(lambda question: AIMessage(response)),
        "knowledge": RunnableLambda(lambda question: [Document(KNOWLEDGE)]),
        "history": RunnableLambda(lambda question: [HumanMessage(question)]),
    } | RunnablePassthrough.assign(checked=make_runnable(engine))
    for result in (chain.invoke("What is honey like?"), asyncio.run(chain.ainvoke("What is honey like?"))):
        assert result["checked"]["passed"] is passed
        assert result["checked"]["probability"] == PROBABILITY[response]


def test_a_chain_has_no_score_if_a_metric_fails(failing_engine: Engine) -> None:
    checked = make_runnable(failing_engine).invoke({"response": CONSISTENT, "knowledge": KNOWLEDGE})
    assert (checked["passed"], checked["probability"]) == (None, None)
    assert FAILURE in checked["reason"]


def test_an_input_without_a_response_is_an_error(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match=r"\['knowledge'\] and no 'response'"):
        make_runnable(engine).invoke({"knowledge": KNOWLEDGE})


@pytest.mark.parametrize("response", [CONSISTENT, INCONSISTENT, GREETING])
def test_a_run_gets_its_probability(engine: Engine, response: str) -> None:
    result = LangSmithEvaluator(engine).evaluate_run(make_run({"output": response}, {"knowledge": KNOWLEDGE}))
    assert result.key == "groundwire"
    assert result.score == PROBABILITY.get(response)
    assert result.metadata is not None
    assert result.value == result.metadata["label"]


def test_the_knowledge_may_be_the_examples(engine: Engine) -> None:
    example = Example(
        id=uuid.uuid4(), inputs={"question": "?"}, outputs={"documents": [Document(KNOWLEDGE)]}, dataset_id=uuid.uuid4()
    )
    evaluator = LangSmithEvaluator(engine, response="answer", knowledge="documents", key="faithful")
    result = asyncio.run(evaluator.aevaluate_run(make_run({"answer": AIMessage(INCONSISTENT)}), example))
    assert (result.key, result.score, result.value) == ("faithful", PROBABILITY[INCONSISTENT], "inconsistent")
    assert evaluator.feedback_keys == ["faithful"]


@pytest.mark.parametrize("outputs", [None, {}, {"output": ""}, {"other": CONSISTENT}])
def test_a_run_without_a_response_has_no_score(engine: Engine, outputs: dict[str, Any] | None) -> None:
    result = LangSmithEvaluator(engine).evaluate_run(make_run(outputs, {"knowledge": KNOWLEDGE}))
    assert (result.score, result.value) == (None, "unknown")


def test_a_run_has_no_score_if_a_metric_fails(failing_engine: Engine) -> None:
    result = LangSmithEvaluator(failing_engine).evaluate_run(make_run({"output": CONSISTENT}, {"knowledge": KNOWLEDGE}))
    assert (result.score, result.value) == (None, "unknown")
    assert FAILURE in str(result.comment)
