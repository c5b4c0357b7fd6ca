"""A call's result is the same alone, among 64 others of mixed lengths, and in another order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from groundwire.runtime.calls import (
    Answer,
    Answered,
    BeamSearch,
    Classified,
    Classify,
    GeneratedQuestion,
    GenerateQuestions,
    Greedy,
)
from groundwire.runtime.errors import GroundwireError
from tests.support import models
from tests.support.zoo import Zoo

COUNT = 64
WORDS = models.TEXT.split()


def texts(longest: int) -> list[str]:
    """Texts of 1 to ``longest`` words, in random order of length."""
    rng = random.Random(5)
    lengths = [1 + (i * longest) // COUNT for i in range(COUNT)]
    rng.shuffle(lengths)
    return [" ".join(WORDS[(at := rng.randrange(len(WORDS) - length)) : at + length]) for length in lengths]


def calls(role: str) -> list[Any]:
    """64 calls; passages and premises of the longer ones take several windows."""
    match role:
        case "qa":
            rules = ("independent", "joint")
            return [Answer(WORDS[i] + " what?", (text,), rules[i % 2]) for i, text in enumerate(texts(120))]
        case "nli":
            return [Classify("nli", (text,), " ".join(WORDS[i : i + 3])) for i, text in enumerate(texts(120))]
        case _:
            # Alone, greedy search multiplies a single row, which kernels compute differently.
            decodings = (BeamSearch(num_beams=4, num_return_sequences=4, max_new_tokens=5), Greedy(max_new_tokens=5))
            return [GenerateQuestions(WORDS[i], text, decodings[i % 2]) for i, text in enumerate(texts(30))]


def words(outcome: object) -> object:
    """The content of a result without its numbers."""
    match outcome:
        case Answered():
            return outcome.status, outcome.text, outcome.passage, outcome.start, outcome.end, outcome.read
        case Classified():
            return outcome.label, outcome.window, outcome.read
        case tuple():
            return [question.text for question in outcome]
    raise AssertionError(f"no result: {outcome!r}")


def numbers(outcome: object) -> list[float]:
    match outcome:
        case Answered():
            return [outcome.score]
        case Classified():
            return list(outcome.probabilities.values())
        case tuple():
            return [question.score for question in outcome if isinstance(question, GeneratedQuestion)]
    raise AssertionError(f"no result: {outcome!r}")


def compare(outcomes: Sequence[object], expected: Sequence[object]) -> None:
    assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)]
    assert list(map(words, outcomes)) == list(map(words, expected))
    for outcome, other in zip(outcomes, expected, strict=True):
        assert numbers(outcome) == pytest.approx(numbers(other), abs=1e-6, rel=0)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    ("role", "family"),
    [("qa", "albert"), ("qa", "bert"), ("nli", "bert"), ("nli", "roberta"), ("qg", "t5"), ("qg", "bert")],
)
def test_a_result_does_not_depend_on_its_batch(zoo: Zoo, role: str, family: str, precision: str) -> None:
    model = {"qa": zoo.extractive_qa, "nli": zoo.classifier, "qg": zoo.question_generator}[role](family, precision)
    asked = calls(role)
    together = model.run(asked, 64)
    alone = [model.run([call], 64)[0] for call in asked]
    compare(together, alone)
    order = random.Random(9).sample(range(COUNT), COUNT)
    shuffled = dict(zip(order, model.run([asked[i] for i in order], 64), strict=True))
    compare([shuffled[i] for i in range(COUNT)], alone)
    assert len({str(words(outcome)) for outcome in alone}) > COUNT / 2


@pytest.mark.parametrize("role", ["qa", "nli"])
def test_int8_is_another_model_than_fp32(zoo: Zoo, role: str) -> None:
    """Without quantization, the tests of int8 would repeat those of fp32."""
    model = {"qa": zoo.extractive_qa, "nli": zoo.classifier}[role]
    exact, rounded = (
        [number for outcome in model("bert", precision).run(calls(role), 64) for number in numbers(outcome)]
        for precision in ("fp32", "int8")
    )
    assert exact != pytest.approx(rounded, abs=1e-4)
