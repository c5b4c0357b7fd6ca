"""A calibration is fitted to verdicts as the engine draws them: the worst sentence decides, and values may refute."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from groundwire.engine import MetricResult, Request
from groundwire.engine.schema.explanations import (
    ClassifiedSpan,
    NliExplanation,
    StatedValue,
    ValuesExplanation,
    VerifiabilityExplanation,
)
from groundwire.engine.verdict.decision import fuse
from groundwire.engine.verdict.fusion import bind_criteria, features
from groundwire.evaluate.calibration.features import list_sentences
from groundwire.evaluate.calibration.fusion import FusionOptions, LabelledFeatures, select_model
from groundwire.evaluate.calibration.operating_points import fit_calibration
from groundwire.runtime.bundles.calibration import Calibration
from tests.support.verdicts import bind, decide_text

SENTENCE = "Honey is sweet."
METRICS = ("nli", "values", "verifiability")
NLI = ("nli.expected", "nli.worst")
SHARE = "values.contradicted_share"


def classified(start: int, supported: float) -> ClassifiedSpan:
    shares = {"entailment": supported, "neutral": 0.0, "contradiction": 1 - supported}
    return ClassifiedSpan(start, start + len(SENTENCE), "neutral", shares, supported)


def make_results(supported: Any, verifiable: Any, contradicted: int | None) -> tuple[str, dict[str, MetricResult]]:
    """A response of as many sentences, with these numbers of each; one may have a contradicted value."""
    starts = [index * (len(SENTENCE) + 1) for index in range(len(supported))]
    response = " ".join([SENTENCE] * len(supported))
    parts = tuple(map(classified, starts, map(float, supported)))
    shares = {"entailment": float(np.mean(supported)), "neutral": 0.0, "contradiction": 0.0}
    whole = ClassifiedSpan(0, len(response), "neutral", shares, float(np.mean(supported)))
    checked = tuple(map(classified, starts, map(float, verifiable)))
    explained = NliExplanation(whole, None, parts if len(parts) > 1 else ())
    results = [
        MetricResult("nli", "scored", whole.supported, explanation=explained),
        MetricResult("verifiability", "scored", max(verifiable), explanation=VerifiabilityExplanation(checked)),
    ]
    if contradicted is not None:
        stated = StatedValue("number", "Honey", starts[contradicted], starts[contradicted] + 5, "1", "contradicted")
        results.append(MetricResult("values", "scored", 0.0, explanation=ValuesExplanation((stated,))))
    else:
        results.append(MetricResult("values", "nothing_to_verify"))
    return response, {result.name: result for result in results}


@cache
def draw(count: int, seed: int) -> list[tuple[LabelledFeatures, str, dict[str, MetricResult]]]:
    """Responses of one to four sentences; inconsistent ones have one bad sentence."""
    rng = np.random.default_rng(seed)
    drawn = []
    for index in range(count):
        label, size = index % 2, int(rng.integers(1, 5))
        supported = np.clip(rng.normal(0.75, 0.15, size), 0, 1)
        if not label:
            supported[rng.integers(size)] = np.clip(rng.normal(0.3, 0.2), 0, 1)
        verifiable = np.where(rng.random(size) < 0.2, 0.1, 0.9)
        contradicted = int(rng.integers(size)) if rng.random() < (0.02 if label else 0.2) else None
        response, results = make_results(supported, verifiable, contradicted)
        example = LabelledFeatures(
            "one",
            str(index),
            label,
            features(bind(results.values())),
            list_sentences(response, results),
            request=Request(response, ("Knowledge.",)),
            results=results,
        )
        drawn.append((example, response, results))
    return drawn


@pytest.mark.parametrize(("read", "whole"), [(NLI, False), ((*NLI, SHARE), False), ((*NLI, SHARE), True), (NLI, True)])
def test_predictions_are_the_verdicts_of_the_engine(read: tuple[str, ...], whole: bool) -> None:
    drawn = draw(400, 0)
    examples = [example for example, _, _ in drawn]
    options = FusionOptions(features=read, penalties=(0.1,), whole=whole)
    calibration = fit_calibration(examples, METRICS, options)
    model, _ = select_model(examples, options)
    predicted = 1 / (1 + np.exp(-model.predict_responses(examples, options.verifiable)))
    assert calibration.fusions[0].whole == whole
    compared = 0
    for (_, response, results), probability in zip(drawn, predicted, strict=True):
        verdict, sentences = decide_text(response, results, calibration, "balanced")
        if verdict.probability is not None:
            assert verdict.probability == pytest.approx(float(probability), abs=1e-4)
            compared += len(sentences) > 1
            # Wherever one of them doubts, so does the other.
            labels = [part.verdict.label for part in sentences]
            assert (verdict.label == "inconsistent") == ("inconsistent" in labels)
    assert compared > 200


def test_a_response_scored_as_a_whole_is_not_as_bad_as_its_worst_sentence() -> None:
    drawn = draw(400, 0)
    options = FusionOptions(features=(*NLI, SHARE), whole=True)
    (fusion,) = fit_calibration([example for example, _, _ in drawn], METRICS, options).fusions
    fusion = replace(fusion, profiles={"balanced": replace(fusion.profiles["balanced"], threshold=0.5)})
    calibration, parts = (
        Calibration(fitted_on=("one",), rows=400, fusions=(chosen,), scales={}, verifiable=0.5)
        for chosen in (fusion, replace(fusion, whole=False))
    )
    differing = 0
    for doubted in np.linspace(0.1, 0.9, 33):
        made = make_results([0.95, 0.95, doubted, *[0.95] * 5], [0.9] * 8, None)
        verdict, sentences = decide_text(*made, calibration, "balanced")
        by_parts, alone = decide_text(*made, parts, "balanced")
        if (verdict.label, by_parts.label) == ("consistent", "inconsistent"):
            differing += 1
            assert alone[2].verdict.label == "inconsistent"
            assert sentences[2].verdict == replace(verdict, max_false_positive_rate=None)
            assert sentences[:2] + sentences[3:] == alone[:2] + alone[3:]
    assert differing


def test_a_contradicted_value_counts_by_itself_in_a_whole() -> None:
    drawn = draw(400, 0)
    options = FusionOptions(features=(*NLI, SHARE), whole=True)
    calibration = fit_calibration([example for example, _, _ in drawn], METRICS, options)
    good = make_results([0.9] * 4, [0.9] * 4, None)
    wrong = make_results([0.9] * 4, [0.9] * 4, 1)
    trusted, _ = decide_text(*good, calibration, "balanced")
    verdict, sentences = decide_text(*wrong, calibration, "balanced")
    bound = bind(wrong[1].values())
    rule = bind_criteria([metric for metric, _ in bound], calibration, "balanced").rule
    assert rule is not None
    whole = fuse(features(bound), bound, rule)
    assert None not in (trusted.probability, verdict.probability, whole.probability)
    assert verdict.probability < whole.probability < trusted.probability
    assert verdict.probability == sentences[1].verdict.probability


def test_an_inconsistent_whole_has_an_inconsistent_sentence() -> None:
    drawn = draw(400, 0)
    options = FusionOptions(features=NLI, whole=True)
    calibration = fit_calibration([example for example, _, _ in drawn], METRICS, options)
    response, results = make_results([0.9] * 4, [0.9] * 4, None)
    nli = results["nli"]
    assert isinstance(nli.explanation, NliExplanation)
    # The models doubt the whole and none of its sentences.
    shares = {"entailment": 0.01, "neutral": 0.0, "contradiction": 0.99}
    doubted = replace(nli.explanation.response, supported=0.01, probabilities=shares)
    results["nli"] = replace(nli, value=0.01, explanation=replace(nli.explanation, response=doubted))
    verdict, sentences = decide_text(response, results, calibration, "balanced")
    assert verdict.label == "inconsistent"
    labels = [part.verdict.label for part in sentences]
    assert (labels.count("inconsistent"), labels.count("consistent")) == (1, 3)


@pytest.mark.no_cover
def test_the_bound_holds_for_responses_of_several_sentences() -> None:
    """With whole responses in the record, the minimum of several sentences would be below the threshold too often."""
    calibration = fit_calibration([example for example, _, _ in draw(1000, 1)], METRICS, FusionOptions(features=NLI))
    for level in (0.05, 0.25):
        labels = [
            decide_text(response, results, calibration, "balanced", level)[0].label
            for example, response, results in draw(1000, 2)
            if example.label
        ]
        rate = labels.count("inconsistent") / len(labels)
        assert rate <= level + 3 * math.sqrt(level * (1 - level) / len(labels))
        assert rate >= level / 2


def test_verdicts_of_the_worst_sentence_state_the_bound_on_responses() -> None:
    drawn = draw(400, 3)
    calibration = fit_calibration([example for example, _, _ in drawn], METRICS, FusionOptions(features=NLI))
    several = next((r, m) for e, r, m in drawn if len(e.sentences) > 1 and e.label)
    verdict, sentences = decide_text(*several, calibration, "balanced", 0.1)
    assert verdict.max_false_positive_rate == 0.1
    assert {sentence.verdict.max_false_positive_rate for sentence in sentences} == {None}


def test_a_sentence_with_too_few_numbers_leaves_the_response_to_the_whole() -> None:
    examples = [example for example, _, _ in draw(400, 4)]
    model, _ = select_model(examples, FusionOptions(features=NLI, penalties=(0.1,)))
    example = next(example for example in examples if len(example.sentences) > 1)
    poor = example._replace(sentences=({"verifiability": 0.9}, *example.sentences[1:]))
    whole = example._replace(sentences=())
    assert model.predict_responses([poor], 0.5) == model.predict_responses([whole], 0.5)
    assert len(model.predict_responses([], 0.5)) == 0
