"""The numbers of a sentence: those of the whole response when it has no other, and its own when it has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groundwire.engine import Engine
from groundwire.engine.metrics import METRICS, bind_results
from groundwire.engine.text.sentences import sentences
from groundwire.engine.verdict.fusion import features, features_of_part

KNOWLEDGE = (
    "Coffee is slightly acidic (pH 5.0 to 5.1) and has a stimulating effect on humans. It was first sold in Yemen."
)
TRUE, FALSE = "Coffee is slightly acidic.", "It was first sold in Norway."
WHOLE_ONLY = {"overlap", "bertscore", "bertscore.recall", "unigram_f1", "nli", "bleu", "rouge_l", "meteor", "citations"}
"""Numbers of a whole response: how much of the knowledge it has, a label's value, a share of its sentences."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", "cpu") as loaded:
        yield loaded


@pytest.mark.parametrize("response", [TRUE, FALSE])
def test_an_only_sentence_has_the_numbers_of_its_response(engine: Engine, response: str) -> None:
    score = engine.score(response, KNOWLEDGE, history=("Tell me about coffee.",), metrics="all")
    whole = features(bind_results(score.metrics))
    part = features_of_part(bind_results(score.metrics), 0, len(response))
    assert part.keys() == {name for name in whole if name not in WHOLE_ONLY and not name.startswith(("feqa", "upmi."))}
    # The mean of a whole response counts the tokens of its prompt too.
    equal = {name: number for name, number in part.items() if name not in ("pmi", "upmi")}
    assert equal == pytest.approx({name: whole[name] for name in equal}, abs=1e-6)


def test_each_sentence_has_its_own_numbers(engine: Engine) -> None:
    response = f"{TRUE} {FALSE}"
    score = engine.score(response, KNOWLEDGE, metrics=("q2", "nli", "detector.consistency", "overlap_precision", "pmi"))
    first, second = (
        features_of_part(bind_results(score.metrics), sentence.start, sentence.end) for sentence in sentences(response)
    )
    assert first.keys() == second.keys()
    alone = [
        features(bind_results(engine.score(text, KNOWLEDGE, metrics=("detector.consistency", "nli")).metrics))
        for text in (TRUE, FALSE)
    ]
    for part, single in zip((first, second), alone, strict=True):
        assert part["detector.consistency"] == pytest.approx(single["detector.consistency"], abs=1e-6)
        assert part["nli.expected"] == pytest.approx(single["nli.expected"], abs=1e-6)
    assert first["overlap_precision"] == 1.0
    assert second["overlap_precision.missing"] == 1.0
    assert first["pmi"] > second["pmi"]


def test_evidence_about_sentences_is_named_as_evidence() -> None:
    """Every metric whose numbers a verdict reads by default says something about a sentence."""
    for metric in METRICS.values():
        if any(number.is_evidence for number in metric.numbers) and metric.name not in ("overlap", "critic"):
            assert metric.part.__name__ != "no_part", metric.name
