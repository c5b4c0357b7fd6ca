"""Recorded answers of searches and token classifiers, and how others differ from them."""

from __future__ import annotations

import pytest

from groundwire.runtime.calls import (
    ClassifiedToken,
    ClassifiedTokens,
    ClassifyTokens,
    GeneratedQuestion,
    GenerateQuestions,
    Read,
)
from groundwire.runtime.errors import ModelError
from groundwire.runtime.parity.recorded import RoleAnswers


def make_questions(**scores: float) -> tuple[GeneratedQuestion, ...]:
    return tuple(GeneratedQuestion(text, score) for text, score in scores.items())


CALL = GenerateQuestions("Elvis", "Elvis sang.")
RECORDED = RoleAnswers.make([CALL, CALL], [make_questions(who=-1.0, what=-2.0), make_questions(who=-1.0, why=-3.0)])


@pytest.mark.parametrize(
    ("second", "error", "agreement"),
    [
        (make_questions(who=-1.0, why=-3.0), 0.0, 1.0),
        (make_questions(who=-1.25, how=-9.0), 0.25, 1.0),
        (make_questions(why=-3.5, who=-4.0), 3.0, 0.5),
        (make_questions(how=-1.0), 0.0, 0.5),
        (ModelError("broken"), float("inf"), 0.5),
    ],
)
def test_a_score_is_compared_with_that_of_its_sequence(
    second: tuple[GeneratedQuestion, ...] | ModelError, error: float, agreement: float
) -> None:
    parity = RECORDED.compare([make_questions(who=-1.0, what=-2.0), second])
    assert (parity.max_logit_error, parity.decision_agreement) == (error, agreement)


def test_equal_texts_of_other_tokens_are_compared_in_their_order() -> None:
    twice = (GeneratedQuestion("who", -1.0), GeneratedQuestion("what", -2.0), GeneratedQuestion("who", -4.0))
    answers = RoleAnswers.make([CALL], [twice])
    assert answers.compare([twice]).max_logit_error == 0.0
    assert answers.compare([(twice[0], twice[2])]).max_logit_error == 0.0
    assert answers.compare([(twice[0], GeneratedQuestion("who", -4.5))]).max_logit_error == 0.5


def test_labels_of_tokens_are_decisions() -> None:
    def label(*supported: float) -> ClassifiedTokens:
        tokens = tuple(ClassifiedToken(0, 1, (share, 1 - share)) for share in supported)
        return ClassifiedTokens(("O", "B"), tokens, Read(1, 5, 5))

    answers = RoleAnswers.make([ClassifyTokens("critic", ("Elvis sang.",), "He sang.")], [label(0.75, 0.25)])
    assert answers.decisions == ("O B",)
    assert answers.decode_calls() == [ClassifyTokens("critic", ("Elvis sang.",), "He sang.")]
    assert answers.compare([label(0.75, 0.5)]).max_logit_error == 0.25
    assert answers.compare([label(0.25, 0.25)]).decision_agreement == 0.0
    assert answers.compare([label(0.75)]).max_logit_error == float("inf")
