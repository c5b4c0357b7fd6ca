"""Graphs that give numbers that are not finite: an error for the call, never a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from groundwire.runtime.calls import Answer, AnswerRule, BeamSearch, Classify, GenerateQuestions
from groundwire.runtime.errors import ModelError
from groundwire.runtime.ort.session import Array, Session
from tests.support.zoo import Zoo


@pytest.fixture
def broken(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every graph returns NaN for one number of its first output that a model reads."""
    # An export runs its models, so they are exported before.
    zoo.extractive_qa("bert"), zoo.classifier("bert"), zoo.question_generator("bart")
    run, run_values = Session.run, Session.run_values

    def break_output(session: Session, feeds: Mapping[str, Array]) -> list[Array]:
        outputs = [output.copy() for output in run(session, feeds)]
        outputs[0].reshape(len(outputs[0]), -1)[0, 0] = np.nan
        return outputs

    def break_scores(session: Session, feeds: Any, host: Any = ()) -> dict[str, Any]:
        outputs = run_values(session, feeds, host)
        if "scores" not in outputs:  # the encoder
            return outputs
        scores = outputs["scores"].numpy().copy()
        scores[0, 0, 0] = np.nan
        return outputs | {"scores": session.value(scores)}

    monkeypatch.setattr(Session, "run", break_output)
    monkeypatch.setattr(Session, "run_values", break_scores)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("rule", ["independent", "joint"])
def test_extractive_qa(zoo: Zoo, rule: AnswerRule) -> None:
    (answer,) = zoo.extractive_qa("bert").run([Answer("who?", ("someone did it.",), rule)], 1)
    assert isinstance(answer, ModelError)


@pytest.mark.usefixtures("broken")
def test_classifier(zoo: Zoo) -> None:
    (label,) = zoo.classifier("bert").run([Classify("nli", ("someone did it.",), "it did not.")], 1)
    assert isinstance(label, ModelError)


@pytest.mark.usefixtures("broken")
def test_question_generator(zoo: Zoo) -> None:
    with pytest.raises(ModelError, match="not finite"):
        zoo.question_generator("bart").run([GenerateQuestions("a", "someone did it.", BeamSearch(max_new_tokens=7))], 1)
