"""The evaluator in an experiment of Langfuse's client, which sends nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

langfuse = load("langfuse")
from groundwire.adapters.langfuse import make_evaluator  # noqa: E402


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    client = langfuse.Langfuse(
        public_key="none", secret_key="none", base_url="http://127.0.0.1:9", tracing_enabled=False
    )
    yield client
    client.shutdown()


def run(client: Any, engine: Engine, texts: list[str], **options: Any) -> list[dict[str, Any]]:
    """The evaluations of each text, by their names."""
    items = [{"input": {"question": "So?", "knowledge": [KNOWLEDGE]}, "expected_output": text} for text in texts]
    result = client.run_experiment(
        name="honey",
        data=items,
        task=lambda *, item, **_: item["expected_output"],
        evaluators=[make_evaluator(engine, **options)],
    )
    return [{evaluation.name: evaluation for evaluation in item.evaluations} for item in result.item_results]


def test_an_item_has_its_probability_and_its_label(client: Any, engine: Engine) -> None:
    for text, evaluations in zip(
        (CONSISTENT, INCONSISTENT), run(client, engine, [CONSISTENT, INCONSISTENT]), strict=True
    ):
        assert evaluations["groundwire"].value == PROBABILITY[text]
        assert evaluations["groundwire_label"].value == ("consistent" if text == CONSISTENT else "inconsistent")
        assert evaluations["groundwire_label"].data_type == "CATEGORICAL"


def test_without_a_probability_there_is_a_label_alone(client: Any, engine: Engine, failing_engine: Engine) -> None:
    (evaluations,) = run(client, engine, [GREETING], name="faithful")
    assert {name: evaluation.value for name, evaluation in evaluations.items()} == {"faithful_label": "unverifiable"}
    (evaluations,) = run(client, failing_engine, [CONSISTENT])
    assert {name: evaluation.value for name, evaluation in evaluations.items()} == {"groundwire_label": "unknown"}
    assert FAILURE in evaluations["groundwire_label"].comment
    (evaluations,) = run(client, engine, [CONSISTENT], knowledge="absent")
    assert evaluations["groundwire_label"].value == "unknown"


def test_the_output_may_have_the_knowledge(engine: Engine) -> None:
    evaluate = make_evaluator(engine, response=lambda output: output["answer"], knowledge="found")
    output = {"answer": CONSISTENT, "found": [KNOWLEDGE]}
    number, _ = asyncio.run(evaluate(input="So?", output=output, expected_output=None, metadata=None))
    assert number.value == PROBABILITY[CONSISTENT]
