"""What values refute in whole responses, and what has a value counts as stated."""

from __future__ import annotations

import math

import msgspec
import pytest

from groundwire.engine import Engine, MetricResult
from groundwire.engine.metrics import bind_results
from groundwire.engine.schema.explanations import (
    ClassifiedSpan,
    NliExplanation,
    UnsupportedSpan,
    VerifiabilityExplanation,
)
from groundwire.engine.text.terms import states_policy, states_terms
from groundwire.engine.verdict.adjustments import find_refutation
from groundwire.engine.verdict.fusion import features_of_part
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion
from tests.support.fakes import world
from tests.support.verdicts import decide_text, make_profile

FUSION = Fusion(
    name="full",
    metrics=("overlap_precision", "values", "verifiability"),
    intercept=2.0,
    features=(Feature(name="overlap_precision", mean=0.5, deviation=0.5, weight=1.0, needed=True),),
    profiles={"balanced": make_profile(0.5, 0.1, 0.1)},
)
CALIBRATION = Calibration(fitted_on=("dev",), rows=100, fusions=(FUSION,), scales={})
REFUTED = 0.2 / (1 + math.exp(-2.0))
"""Of what overlap alone says of the sentences below, as their sentence verdicts have no value of it."""
KNOWLEDGE = "The tower is 324 metres tall. It was built in 1889 by Eiffel."


def results_of(response: str, verifiable: float = 1.0) -> dict[str, MetricResult]:
    with Engine(world()) as engine:
        metrics = engine.score(response, KNOWLEDGE, metrics=("overlap_precision", "values")).metrics
    spans = (
        [(0, response.index(".") + 1), (response.index(".") + 2, len(response))]
        if ". " in response
        else [(0, len(response))]
    )
    checked = VerifiabilityExplanation(tuple(ClassifiedSpan(*bounds, "x", {}, verifiable) for bounds in spans))
    return metrics | {"verifiability": MetricResult("verifiability", "scored", verifiable, explanation=checked)}


@pytest.mark.parametrize("verifiable", [1.0, 0.1])
def test_a_contradicted_value_makes_its_sentence_inconsistent_and_no_other(verifiable: float) -> None:
    response = "How tall it is. It was built in 1890."
    verdict, sentences = decide_text(response, results_of(response, verifiable), CALIBRATION, "balanced")
    other = "consistent" if verifiable == 1.0 else "unverifiable"
    assert [sentence.verdict.label for sentence in sentences] == [other, "inconsistent"]
    assert verdict == sentences[1].verdict
    assert verdict.probability == pytest.approx(REFUTED)


def test_a_contradiction_refutes_a_sentence_of_few_values() -> None:
    """Of many, one is likelier to be compared with a value of something else."""
    few, many = "It was built in 1890.", "It was built in 1890, is 324 metres tall and 324 metres wide."
    for response, refuted in ((few, True), (many, False), (f"{few} {few} {few}", True)):
        part = features_of_part(bind_results(results_of(response)), 0, len(few) if response != many else len(many))
        assert part["values.contradicted"] == 1.0
        assert (find_refutation(part) is not None) is refuted


@pytest.mark.parametrize("response", ["It was built in 1890.", "The tower is tall. It was built in 1890."])
def test_a_fusion_weighs_the_contradictions_that_it_reads(response: str) -> None:
    """Its weight moves the probability, and no bound does."""
    weighed = Feature(name="values.disproved", mean=0.0, deviation=1.0, weight=-1.0)
    fusion = msgspec.structs.replace(FUSION, features=(*FUSION.features, weighed))
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(fusion,))
    verdict, _ = decide_text(response, results_of(response), calibration, "balanced")
    assert verdict.contributions is not None
    assert verdict.contributions["values.disproved"] == -1.0
    assert verdict.probability == pytest.approx(1 / (1 + math.exp(-2.0 - sum(verdict.contributions.values()))))


def test_an_only_sentence_with_a_contradicted_value_states_something() -> None:
    response = "It was built in 1890."
    verdict, (sentence,) = decide_text(response, results_of(response, 0.1), CALIBRATION, "balanced")
    assert verdict == sentence.verdict
    assert (verdict.label, verdict.probability, verdict.message) == ("inconsistent", pytest.approx(REFUTED), "")
    right, _ = decide_text("It was built in 1889.", results_of("It was built in 1889."), CALIBRATION, "balanced")
    assert right.label == "consistent"


@pytest.mark.parametrize("response", ["It was built in 1889.", "How tall it is. It was built in 1889."])
def test_a_sentence_with_a_value_is_decided_whatever_a_classifier_says(response: str) -> None:
    _, sentences = decide_text(response, results_of(response, 0.1), CALIBRATION, "balanced")
    assert sentences[-1].verdict.label == "consistent"
    assert [sentence.verdict.label for sentence in sentences[:-1]] == ["unverifiable"] * (len(sentences) - 1)


@pytest.mark.parametrize(
    ("sentence", "amounts", "expected"),
    [
        ("It costs £5 on weekdays and £7 at weekends, I think.", True, True),
        ("You pay £12 for that.", True, True),
        ("You can return it if it is unopened.", False, True),
        ("You don't need to book a table in advance.", False, True),
        ("If you cancel, you will pay half of the price.", False, True),
        ("You get free delivery with every order.", False, True),
        ("I don't know, please call 0124 556 7788.", True, False),
        ("Sorry, I can't help with order 4471.", True, False),
        ("I have no information about prices in 2025.", True, False),
        ("Shall we meet at 9?", True, False),
        ("My 2 dogs love it!", True, False),
        ("You can do it!", False, False),
        ("If you have any questions, let me know.", False, False),
        ("You can always contact our team by mail.", False, False),
        ("You should try the cake.", False, False),
        ("How nice that you like it.", False, False),
        ("Thank you, goodbye.", False, False),
    ],
)
def test_terms_are_values_conditions_and_offers(sentence: str, amounts: bool, expected: bool) -> None:
    assert states_terms(sentence, amounts=amounts) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Yes, we deliver to the Channel Islands.", True),
        ("Unfortunately, we don't deliver there.", True),
        ("No, we don't.", True),
        ("Sorry, we are closed on Saturdays.", True),
        ("Sorry, we can't offer Click & Collect.", True),
        ("We don't provide gift wrapping.", True),
        ("I'm sorry, but earrings can't be returned.", True),
        ("Our team is available at weekends.", True),
        ("I've refunded your order and you will get an email shortly.", True),
        ("You will hear from us tomorrow.", True),
        ("Please throw away the receipt.", True),
        ("I don't have any information about that, but our phone team is available on Sunday from 9 am to 5 pm.", True),
        ("I don't have any information about that, but you can call us on 0124 556 7788.", False),
        ("I don't know whether we deliver there.", False),
        ("Do you know that we deliver?", False),
        ("I'm sorry for the delay.", False),
        ("Sorry to hear that your parcel is late!", False),
        ("Sorry, I can't see whether the parcel has been sent.", False),
        ("We are here to help!", False),
        ("I'll look into that for you.", False),
        ("So things have changed quite a bit.", False),
        ("I've booked a trip to Spain!", False),
        ("Take care of your mum.", False),
        ("Put up your feet!", False),
    ],
)
def test_policies_are_stated_even_with_an_apology(sentence: str, expected: bool) -> None:
    assert states_policy(sentence) == expected
    assert not expected or states_terms(sentence, amounts=False)


@pytest.mark.parametrize(
    ("sentence", "contradiction", "is_stated"),
    [
        ("Poor leaning tower.", 0.95, True),
        ("Poor leaning tower.", 0.85, False),
        ("I love the tower.", 0.95, False),
        ("What a tower!", 0.95, False),
        ("Sorry, no idea.", 0.95, False),
    ],
)
def test_what_the_knowledge_surely_contradicts_was_stated(sentence: str, contradiction: float, is_stated: bool) -> None:
    shares = {"entailment": 0.0, "neutral": 1 - contradiction, "contradiction": contradiction}
    read = NliExplanation(ClassifiedSpan(0, len(sentence), "contradiction", shares, (1 - contradiction) / 2))
    results = results_of(sentence, 0.1) | {"nli": MetricResult("nli", "scored", 0.0, explanation=read)}
    verdict, (part,) = decide_text(sentence, results, CALIBRATION, "balanced")
    assert (verdict.label != "unverifiable") is is_stated
    assert part.verdict == verdict


def test_metrics_that_the_fusion_does_not_ask_for_change_no_verdict() -> None:
    """PMI marks words too; computed beside the others, it doubts nothing in their name."""
    response = "The tower is 32,400 cm tall."
    results = results_of(response)
    doubt = UnsupportedSpan("tall", 23, 27, "not_in_knowledge", "", "pmi")
    more = results | {"pmi": MetricResult("pmi", "scored", -1.0, unsupported=(doubt,))}
    verdict, _ = decide_text(response, results, CALIBRATION, "balanced")
    assert "values.amounts" in (verdict.contributions or {})
    assert decide_text(response, more, CALIBRATION, "balanced")[0] == verdict


def test_a_count_of_nothing_is_not_absent() -> None:
    weighed = Feature(name="values.contradicted_share", mean=0.0, deviation=1.0, weight=-1.0)
    fusion = msgspec.structs.replace(FUSION, features=(*FUSION.features, weighed))
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(fusion,))
    response = "The tower is tall."
    results = results_of(response)
    assert results["values"].status == "nothing_to_verify"
    verdict, _ = decide_text(response, results, calibration, "balanced")
    assert (verdict.absent, verdict.message) == ((), "")
    del results["values"]
    verdict, _ = decide_text(response, results, calibration, "balanced")
    assert verdict.absent == ("values.contradicted_share",)
