"""PMI-Faith through the engine against its definition on the PyTorch checkpoint."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import PmiExplanation
from tests.reference.pmi import PmiReference
from tests.support.zoo import Zoo

TEXTS = [
    (("The Amazon river flows through Brazil.",), ("Have you been there?",), "Yes, I was in Brazil"),
    (("The first shop is in New York City.", "It was sold."), ("Hi!", "Which shop?"), "the first one, in Peru."),
    (("Pizza is a dish from Naples.",), (), "I love pizza with cheese — and Amélie’s café"),
    (("A nurse cares for people.",), ("", "  "), "a teacher {document}"),
    (("Husky dogs were bred in Siberia.",), ("Do dogs run?",), "x"),
]


@pytest.mark.parametrize("family", ["gpt2", "bloom", "opt"])
def test_pmi_and_upmi_are_those_of_pytorch(zoo: Zoo, family: str) -> None:
    reference = PmiReference(*zoo.torch("lm", family))
    values = []
    with Engine.load(zoo.bundle("lm", family).directory, device="cpu", threads=1) as engine:
        for knowledge, history, response in TEXTS:
            score = engine.score(response, knowledge, history=history, metrics=["pmi", "upmi"])
            document, before = " ".join(knowledge), "\n".join(turn for turn in history if turn.strip())
            expected = {
                "pmi": reference.pmi(document, before, response),
                "upmi": reference.upmi(document, response),
            }
            assert {name: metric.value for name, metric in score.metrics.items()} == pytest.approx(expected, abs=1e-4)
            explanation = score.metrics["pmi"].explanation
            assert isinstance(explanation, PmiExplanation)
            assert explanation.with_document - explanation.without_document == pytest.approx(score.value, abs=1e-6)
            values += list(expected.values())
    # Values of both signs, far from 0: an engine that returned 0 would fail.
    assert min(values) < -0.01
    assert max(values) > 0.01
