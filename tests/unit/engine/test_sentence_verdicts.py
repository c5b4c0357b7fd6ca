"""Verdicts of sentences, and what a response of several makes of them."""

from __future__ import annotations

import math

import msgspec
import pytest

from groundwire.engine import InvalidRequest, MetricResult, Request, Score, Verdict
from groundwire.engine.metrics import METRICS
from groundwire.engine.schema.explanations import (
    ClassifiedSpan,
    NliExplanation,
    UnsupportedSpan,
    VerifiabilityExplanation,
)
from groundwire.engine.verdict.decision import fuse_sentence
from groundwire.engine.verdict.fusion import Rule, bind_criteria
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion
from tests.support.verdicts import fold, make_profile

CALIBRATION = Calibration(
    fitted_on=("dev",),
    rows=100,
    fusions=(
        Fusion(
            name="full",
            metrics=("nli", "verifiability"),
            intercept=0.0,
            features=(
                Feature(name="nli.expected", mean=0.5, deviation=0.25, weight=1.0, needed=True),
                Feature(name="q2", mean=0.5, deviation=0.25, weight=0.5),
            ),
            profiles={"balanced": make_profile(0.5, 0.1, 0.1, max_false_positive_rate=0.2)},
        ),
    ),
    scales={},
)


def with_features(*features: Feature) -> Calibration:
    (fusion,) = CALIBRATION.fusions
    return msgspec.structs.replace(CALIBRATION, fusions=(msgspec.structs.replace(fusion, features=features),))


RESPONSE = "Hi there! Honey is sweet. Honey is blue."
BOUNDS = ((0, 9), (10, 25), (26, 40))


def classified(bounds: tuple[int, int], supported: float) -> ClassifiedSpan:
    return ClassifiedSpan(
        *bounds, "neutral", {"entailment": supported, "neutral": 0.0, "contradiction": 0.0}, supported
    )


def make_score(
    supported: tuple[float, ...],
    verifiable: tuple[float, ...] | None,
    calibration: Calibration | None = CALIBRATION,
    response: str = RESPONSE,
) -> Score:
    """The score of a response with the bounds of ``RESPONSE`` and numbers of its sentences; all is doubted."""
    whole = classified((0, 40), sum(supported) / 3)
    parts = tuple(map(classified, BOUNDS, supported))
    doubts = tuple(
        UnsupportedSpan(response[start:end], start, end, "detected", "", "token_classifier") for start, end in BOUNDS
    )
    results = [
        MetricResult("nli", "scored", whole.supported, explanation=NliExplanation(whole, None, parts)),
        MetricResult("token_classifier", "scored", 0.5, unsupported=doubts),
        MetricResult("pmi", "failed", message="its number is not missed"),
    ]
    if verifiable is not None:
        checked = VerifiabilityExplanation(tuple(map(classified, BOUNDS, verifiable)))
        results.append(MetricResult("verifiability", "scored", max(verifiable), explanation=checked))
    return fold(Request(response, ("Honey is sweet and golden.",)), results, calibration)


def probability(expected: float) -> float:
    return 1 / (1 + math.exp(-(expected - 0.5) / 0.25))


def test_a_response_is_as_consistent_as_its_worst_sentence_that_states_something() -> None:
    score = make_score((0.1, 0.9, 0.3), (0.0, 1.0, 1.0))
    assert [(part.text, part.verdict.label) for part in score.sentences] == [
        ("Hi there!", "unverifiable"),
        ("Honey is sweet.", "consistent"),
        ("Honey is blue.", "inconsistent"),
    ]
    assert all(RESPONSE[part.start : part.end] == part.text for part in score.sentences)
    assert [part.verdict.probability for part in score.sentences] == [
        None,
        pytest.approx(probability(0.9)),
        pytest.approx(probability(0.3)),
    ]
    worst = score.sentences[2].verdict
    assert score.verdict == msgspec.structs.replace(worst, max_false_positive_rate=None, absent=("q2",))


def test_only_doubted_sentences_have_marked_words() -> None:
    score = make_score((0.1, 0.9, 0.3), (0.0, 1.0, 1.0))
    assert [span.text for span in score.unsupported] == ["Honey is blue."]
    assert [part.unsupported for part in score.sentences] == [(), (), score.unsupported]
    assert make_score((0.9, 0.9, 0.9), None).unsupported == ()


def test_without_verifiability_every_sentence_counts() -> None:
    score = make_score((0.1, 0.9, 0.3), None)
    assert score.verdict.probability == pytest.approx(probability(0.1))
    assert score.sentences[0].verdict.label == "inconsistent"


def test_a_response_that_states_nothing_has_only_sentences_that_state_nothing() -> None:
    score = make_score((0.1, 0.1, 0.1), (0.0, 0.1, 0.2), response="Hi there! Enjoy your day! See you later!")
    assert {part.verdict.label for part in score.sentences} == {score.verdict.label} == {"unverifiable"}
    assert score.unsupported == ()


def test_without_a_verdict_there_are_no_sentences_and_every_doubt_about_a_fact_shows() -> None:
    for calibration in (
        None,
        with_features(Feature(name="pmi", mean=0, deviation=1, weight=1, needed=True)),
    ):
        score = make_score((0.1, 0.9, 0.3), None, calibration)
        assert score.verdict.label == "unknown"
        assert score.sentences == ()
        assert [span.text for span in score.unsupported] == ["Honey is sweet.", "Honey is blue."]


def test_a_sentence_that_most_evidence_passes_over_leaves_the_verdict_to_the_whole() -> None:
    silent = Feature(name="overlap_precision", mean=0.5, deviation=0.25, weight=1.5)
    score = make_score((0.1, 0.9, 0.3), None, with_features(CALIBRATION.fusions[0].features[0], silent))
    assert {part.verdict.label for part in score.sentences} == {"unknown"}
    assert "too little" in score.sentences[0].verdict.message
    assert score.verdict.probability == pytest.approx(probability((0.1 + 0.9 + 0.3) / 3))


def test_an_only_sentence_has_the_verdict_of_the_response() -> None:
    results = [MetricResult("nli", "scored", 0.9, explanation=NliExplanation(classified((0, 15), 0.9)))]
    score = fold(Request("Honey is sweet.", ("x",)), results, CALIBRATION)
    (sentence,) = score.sentences
    assert sentence.verdict == score.verdict
    assert sentence.text == "Honey is sweet."


def make_rule() -> Rule:
    rule = bind_criteria([METRICS["nli"], METRICS["q2"]], CALIBRATION, "balanced").rule
    assert rule is not None
    return rule


def test_contributions_of_a_sentence_add_up_to_its_logit() -> None:
    whole = Verdict("consistent", 0.9, "balanced", 0.5, max_false_positive_rate=0.2, fusion="full")
    verdict, silent = fuse_sentence({"nli.expected": 0.25, "q2": 1.0}, make_rule(), whole)
    assert (verdict.threshold, verdict.fusion, verdict.absent) == (0.5, "full", ())
    assert verdict.max_false_positive_rate is None  # what is promised is about whole responses
    assert verdict.contributions == {"nli.expected": pytest.approx(-1.0), "q2": pytest.approx(1.0)}
    assert verdict.probability == pytest.approx(0.5)
    assert verdict.label == "consistent"
    assert silent == msgspec.structs.replace(verdict, label="unverifiable", probability=None, contributions=None)


def test_a_sentence_of_which_most_evidence_says_nothing_is_unknown() -> None:
    whole = Verdict("consistent", 0.9, "balanced", 0.5, fusion="full")
    verdict, _ = fuse_sentence({"q2": 1.0}, make_rule(), whole)
    assert (verdict.label, verdict.probability, verdict.absent) == ("unknown", None, ("nli.expected",))
    assert verdict.message == "The metrics say too little about this sentence."


def test_without_a_threshold_of_verifiability_every_sentence_counts() -> None:
    free = msgspec.structs.replace(CALIBRATION, verifiable=None)
    assert make_score((0.9, 0.9, 0.9), (0.0, 0.0, 0.0), free).sentences[0].verdict.label == "consistent"


def test_a_sentence_has_the_fusion_of_the_response_and_says_what_that_lacks() -> None:
    """q2 was not computed; that nli has no number for the sentence is no reason for a message."""
    score = make_score((0.9, 0.9, 0.1), None)
    assert (score.verdict.fusion, score.verdict.absent) == ("full", ("q2",))
    assert score.verdict.message == "The value of q2 is absent and counts as its mean."
    assert (score.verdict.threshold, score.verdict.max_false_positive_rate) == (0.5, None)
    with pytest.raises(InvalidRequest, match="has no fusion 'fast'; it has full"):
        CALIBRATION.fusion("fast")


def test_what_the_verdict_lacks_is_what_the_response_lacks() -> None:
    """A number that a sentence cannot have is not missing: nothing is to be said about it."""
    features = (CALIBRATION.fusions[0].features[0], Feature(name="nli", mean=0.5, deviation=0.25, weight=0.5))
    fusion = msgspec.structs.replace(CALIBRATION.fusions[0], features=features)
    score = make_score((0.9, 0.9, 0.3), None, msgspec.structs.replace(CALIBRATION, fusions=(fusion,)))
    assert score.sentences[2].verdict.absent == ("nli",)
    assert (score.verdict.probability, score.verdict.absent, score.verdict.message) == (
        score.sentences[2].verdict.probability,
        (),
        "",
    )
