"""The adjustments of a verdict, one table each: what comes in, what is known, what comes out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from groundwire.engine import MetricResult, Request, Verdict
from groundwire.engine.metrics import METRICS
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.explanations import StatedValue, UnsupportedSpan, ValuesExplanation
from groundwire.engine.schema.results import SentenceVerdict
from groundwire.engine.verdict.adjustments import (
    ADJUSTMENTS,
    NO_KNOWLEDGE,
    NOTHING_STATED,
    OF_RESPONSES,
    OF_SENTENCES,
    UNSTATED,
    ResponseEvidence,
    VerdictContext,
    adjust,
    compare_with_nothing,
    confirm_values,
    doubt_unread,
    doubt_unread_sentence,
    find_refutation,
    follow_response,
    let_silent_sentences_decide,
    let_worst_sentence_decide,
    refute_values,
    state_nothing,
)
from groundwire.engine.verdict.fusion import Rule, bind_criteria, logit
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion
from tests.support.verdicts import bind, make_profile

FUSION = Fusion(
    name="full",
    metrics=("overlap", "values", "verifiability"),
    intercept=0.0,
    features=(
        Feature(name="overlap", mean=0.5, deviation=0.5, weight=1.0, needed=True),
        Feature(name="values.contradicted_share", mean=0.0, deviation=1.0, weight=-1.0),
    ),
    profiles={"balanced": make_profile(0.5, 0.1, 0.1)},
)


def make_rule(fusion: Fusion = FUSION, *, whole: bool = False) -> Rule:
    fusion = msgspec.structs.replace(fusion, whole=whole)
    calibration = Calibration(fitted_on=("dev",), rows=100, fusions=(fusion,), scales={})
    metrics = [METRICS[name] for name in (*fusion.metrics, "nli")]
    rule = bind_criteria(metrics, calibration, "balanced").rule
    assert rule is not None
    return rule


NOTHING_KNOWN = {"request": ReadRequest("x", ())}
RULE, WHOLE_RULE = make_rule(), make_rule(whole=True)
SILENT = Verdict("unverifiable", message=NOTHING_STATED)


def scored(probability: float | None, label: Any = None, **more: Any) -> Verdict:
    """A verdict with a threshold of 0.5."""
    fitting = "consistent" if probability is not None and probability >= 0.5 else "inconsistent"
    return Verdict(label or fitting, probability, threshold=0.5, **more)


def about(text: str = "It is so.", **more: Any) -> VerdictContext:
    return VerdictContext(
        text, **{"numbers": {}, "rule": RULE, "silent": SILENT, "request": ReadRequest(text, ("x",)), **more}
    )


def split(*verdicts: Verdict) -> tuple[SentenceVerdict, ...]:
    return tuple(SentenceVerdict("x", index, index + 1, verdict) for index, verdict in enumerate(verdicts))


def test_a_bare_answer_that_states_nothing_is_unknown() -> None:
    def read(response: str) -> VerdictContext:
        request = ReadRequest.of(Request(response, ("x",), ("Is it free?",)))
        return about(request.response, request=request)

    doubted = doubt_unread(SILENT, read("Yes!"))
    assert (doubted.label, doubted.message) == ("unknown", UNSTATED)
    assert doubt_unread(SILENT, read("Hi!")) is SILENT


def test_the_order_is_written_once() -> None:
    assert (state_nothing, compare_with_nothing, confirm_values, refute_values, doubt_unread_sentence) == ADJUSTMENTS
    assert (let_silent_sentences_decide, let_worst_sentence_decide, doubt_unread) == OF_RESPONSES
    assert (follow_response,) == OF_SENTENCES


@pytest.mark.parametrize("adjustment", [*ADJUSTMENTS, *OF_RESPONSES, *OF_SENTENCES])
def test_an_adjustment_with_nothing_to_say_leaves_the_verdict(adjustment: Any) -> None:
    for verdict in (scored(0.9), scored(0.1), Verdict("unknown", message="why")):
        assert adjustment(verdict, about(numbers={"verifiability": 0.9})) is verdict


@pytest.mark.parametrize(
    ("text", "numbers", "more", "is_silent"),
    [
        ("How nice.", {"verifiability": 0.1}, {}, True),
        ("How nice.", {"verifiability": 0.5}, {}, False),
        ("How nice.", {}, {}, False),
        # Claims, terms, values and what is surely contradicted are stated, whatever a classifier says.
        ("I moved it to the trash.", {"verifiability": 0.1}, {}, False),
        ("I moved it to the trash.", {"verifiability": 0.1}, NOTHING_KNOWN, False),
        ("You can return it if it is unopened.", {"verifiability": 0.1}, {}, False),
        ("A fiver, maybe £5.", {"verifiability": 0.1, "values.amounts": 1.0}, {}, False),
        ("A fiver, maybe £5.", {"verifiability": 0.1, "values.amounts": 0.0}, {}, True),
        ("Poor tower.", {"verifiability": 0.1, "nli.contradiction": 0.95}, {}, False),
        ("Poor tower.", {"verifiability": 0.1, "nli.contradiction": 0.85}, {}, True),
        ("What a tower!", {"verifiability": 0.1, "nli.contradiction": 0.95}, {}, True),
        # A value that the knowledge has otherwise is stated by its sentence.
        ("Ann, I think.", {"verifiability": 0.1, "values.disproved": 1.0}, {"is_sentence": True}, False),
        ("Ann, I think.", {"verifiability": 0.1, "values.disproved": 1.0}, {}, True),
        # Without knowledge, an abstention states nothing either, and values are read from the text.
        ("I don't know.", {"verifiability": 0.9}, NOTHING_KNOWN, True),
        ("I don't know.", {"verifiability": 0.9}, {}, False),
        ("It costs £5.", {"verifiability": 0.1}, NOTHING_KNOWN, False),
    ],
)
def test_a_text_that_states_nothing_is_unverifiable(text: str, numbers: Any, more: Any, is_silent: bool) -> None:
    verdict = scored(0.9)
    assert state_nothing(verdict, about(text, numbers=numbers, **more)) is (SILENT if is_silent else verdict)


@pytest.mark.parametrize(
    ("verdict", "has_knowledge", "expected"),
    [
        (Verdict("unknown", threshold=0.5), False, Verdict("unknown", message=NO_KNOWLEDGE)),
        (Verdict("unknown", threshold=0.5), True, Verdict("unknown", threshold=0.5)),
        (SILENT, False, SILENT),
    ],
)
def test_what_is_stated_without_knowledge_is_unknown(verdict: Verdict, has_knowledge: bool, expected: Verdict) -> None:
    assert compare_with_nothing(verdict, about(request=ReadRequest("x", ("x",) if has_knowledge else ()))) == expected


TALL = "It is 20 m tall."
TEXT = "It is 20 m tall, and it was not sold."


def measured(text: str, *doubts: str, part: str = "20 m", doubting: bool = True) -> ResponseEvidence:
    """The evidence of a metric that finds ``part`` supported and of one that doubts some words."""
    start = text.index(part)
    value = StatedValue("quantity", part, start, start + len(part), part, "supported")
    spans = tuple(
        UnsupportedSpan(word, text.index(word), text.index(word) + len(word), "not_in_knowledge", "", "overlap")
        for word in doubts
    )
    results = bind(
        [
            MetricResult("values", "scored", 1.0, explanation=ValuesExplanation((value,))),
            MetricResult("overlap", "scored", 0.5, unsupported=spans),
        ]
    )
    return ResponseEvidence(ReadRequest(text, ()), results if doubting else results[:1])


@pytest.mark.parametrize(
    ("text", "doubts", "numbers", "added"),
    [
        ("It is 20 m tall.", (), {"values.amounts": 1.0}, 0.4),
        ("It is 20 m tall.", ("20",), {"values.amounts": 1.0}, 0.8),
        ("It is 20 m tall.", ("tall",), {"values.amounts": 1.0}, None),
        ("It is 20 m tall.", ("20", "tall"), {"values.amounts": 1.0}, None),
        ("It is not 20 m tall.", (), {"values.amounts": 1.0}, None),
        ("It is 20 m tall.", (), {"values.amounts": 0.0}, None),
        ("It is 20 m tall.", (), {"values.amounts": 1.0, "values.absent": 1.0}, None),
        ("It is 20 m tall.", (), {"values.amounts": 1.0, "values.contradicted": 1.0}, None),
    ],
)
def test_supported_values_confirm_a_text_without_other_doubts(
    text: str, doubts: tuple[str, ...], numbers: dict[str, float], added: float | None
) -> None:
    context = about(text, numbers=numbers, evidence=measured(text, *doubts))
    verdict = confirm_values(scored(0.45, contributions={"overlap": -0.2}, message="absent"), context)
    assert verdict.contributions == {"overlap": -0.2} | (
        {} if added is None else {"values.amounts": pytest.approx(added)}
    )
    assert (verdict.label == "consistent") is (added is not None)
    assert verdict.message == "absent"
    assert confirm_values(SILENT, context) is SILENT
    assert confirm_values(scored(0.05), context).label == "inconsistent"  # it outweighs a margin and no more


@pytest.mark.parametrize(
    ("answer", "supported", "probability"),
    [("No.", "whole", 0.84), ("No. It is new.", "whole", 0.2), ("No.", "20 m", 0.2), ("Yes.", "whole", 0.2)],
)
def test_a_bare_no_to_a_contradicted_value_is_confirmed(answer: str, supported: str, probability: float) -> None:
    request = ReadRequest.of(Request(answer, ("It is 30 m tall.",), ("Is it 20 m tall?",)))
    assert request.bare_answer is not None
    statement = request.response[slice(*request.bare_answer)]
    evidence = measured(request.response, part=statement if supported == "whole" else supported)
    verdict = confirm_values(scored(0.2), about(request.response, request=request, evidence=evidence))
    assert verdict.probability == pytest.approx(probability)


def test_nothing_is_confirmed_without_a_metric_that_doubts_words() -> None:
    context = about(TALL, numbers={"values.amounts": 1.0}, evidence=measured(TALL, doubting=False))
    assert confirm_values(scored(0.45), context) == scored(0.45)


@pytest.mark.parametrize(
    ("numbers", "weighed", "expected"),
    [
        ({"values.disproved": 1.0}, (), "values.disproved"),
        ({"values.replaced": 1.0}, (), "values.replaced"),
        ({"values.replaced": 1.0, "values.disproved": 1.0}, (), "values.replaced"),  # the stronger one
        ({"values": 0.5, "values.absent": 2.0, "values.contradicted": 1.0, "nli": 1.0}, (), None),
        ({"values.disproved": 0.0}, (), None),
        ({"values.disproved": 1.0}, ("values.disproved",), None),
    ],
)
def test_only_values_that_the_knowledge_has_otherwise_refute(
    numbers: dict[str, float], weighed: tuple[str, ...], expected: str | None
) -> None:
    assert find_refutation(numbers, weighed) == expected


@pytest.mark.parametrize(("number", "share"), [("values.disproved", 0.2), ("values.replaced", 0.11)])
def test_a_refutation_leaves_a_share_of_the_probability(number: str, share: float) -> None:
    context = about(numbers={number: 1.0})
    verdict = refute_values(scored(0.8, contributions={"a": 1.0}, message="absent"), context)
    assert (verdict.label, verdict.probability, verdict.message) == (
        "inconsistent",
        pytest.approx(0.8 * share),
        "absent",
    )
    added = logit(0.8 * share) - math.log(0.8 / 0.2)
    assert verdict.contributions == {"a": 1.0, number: pytest.approx(added)}
    # Thresholds could not be drawn between equal probabilities.
    after = [refute_values(scored(probability), context).probability or 0 for probability in (0.01, 0.3, 0.9, 0.97)]
    assert after == sorted(set(after))
    for kept in (Verdict("unknown"), SILENT, Verdict("consistent", 0.9)):
        assert refute_values(kept, context) is kept


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("unverifiable", "unverifiable"), "unverifiable"),
        (("unverifiable", "unknown"), "inconsistent"),
        (("unverifiable", "consistent"), "inconsistent"),
        ((), "inconsistent"),
    ],
)
def test_sentences_that_state_nothing_make_a_response_that_states_nothing(labels: Any, expected: str) -> None:
    context = about(sentences=split(*map(Verdict, labels)))
    verdict = let_silent_sentences_decide(scored(0.35), context)
    assert (verdict.label, verdict.probability) == (expected, 0.35)


OPPOSED = scored(0.3, contributions={"values.contradicted_share": -1.0})


@pytest.mark.parametrize(
    ("rule", "whole", "parts", "expected"),
    [
        (RULE, scored(0.6), (scored(0.9), scored(0.4), scored(0.7)), scored(0.4)),
        (
            RULE,
            scored(0.6),
            (scored(0.9), scored(0.8), SILENT),
            scored(0.8),
        ),  # the whole does not count
        (RULE, scored(0.6), (scored(0.1), Verdict("unknown")), scored(0.6)),
        (RULE, Verdict("unverifiable"), (scored(0.1), SILENT), Verdict("unverifiable")),
        (RULE, scored(0.6), (), scored(0.6)),
        # Where the whole is scored, only sentences count that a count speaks against, beside the whole.
        (WHOLE_RULE, scored(0.6), (scored(0.9), scored(0.1)), scored(0.6)),
        (WHOLE_RULE, scored(0.6), (scored(0.9), OPPOSED), OPPOSED),
        (WHOLE_RULE, scored(0.2), (scored(0.9), OPPOSED), scored(0.2)),
    ],
)
def test_the_worst_sentence_decides(rule: Rule, whole: Verdict, parts: Any, expected: Verdict) -> None:
    given = msgspec.structs.replace(whole, max_false_positive_rate=0.1, absent=("q2",))
    verdict = let_worst_sentence_decide(given, about(rule=rule, sentences=split(*parts)))
    assert verdict == msgspec.structs.replace(expected, max_false_positive_rate=0.1, absent=("q2",))


@pytest.mark.parametrize(
    ("rule", "whole", "parts", "following"),
    [
        (WHOLE_RULE, scored(0.6), (scored(0.9), scored(0.1), scored(0.2), SILENT), {1, 2}),
        (WHOLE_RULE, scored(0.2), (scored(0.9), scored(0.6), scored(0.7), SILENT), {1}),
        (WHOLE_RULE, scored(0.2), (scored(0.9), scored(0.1), scored(0.7)), set()),
        (WHOLE_RULE, scored(0.2), (SILENT, Verdict("unknown")), set()),
        (WHOLE_RULE, SILENT, (SILENT, scored(0.1)), set()),
        (RULE, scored(0.6), (scored(0.9), scored(0.1)), set()),
    ],
)
def test_sentences_follow_a_response_that_was_scored_as_a_whole(
    rule: Rule, whole: Verdict, parts: Any, following: set[int]
) -> None:
    context = about(
        rule=rule, sentences=split(*parts), whole=msgspec.structs.replace(whole, max_false_positive_rate=0.1)
    )
    decided = [follow_response(part.verdict, context) for part in context.sentences]
    assert decided == [whole if index in following else part for index, part in enumerate(parts)]


def test_the_sentence_that_the_model_of_sentences_doubts_most_follows_an_inconsistent_response() -> None:
    """The lowest probability counts where there is no such model, and among sentences that it doubts as much."""
    read = Feature(name="reader", mean=0.5, deviation=0.5, weight=1.0, logit=True)
    fusion = msgspec.structs.replace(FUSION, metrics=("reader", *FUSION.metrics), features=(*FUSION.features, read))
    parts = (
        scored(0.6, contributions={"reader": -0.5, "overlap": 1.0}),
        scored(0.55, contributions={"reader": 0.5, "overlap": -1.0}),
        scored(0.58, contributions={"reader": -0.5, "overlap": 0.9}),
    )
    for rule, following in ((make_rule(fusion, whole=True), 2), (WHOLE_RULE, 1)):
        context = about(rule=rule, sentences=split(*parts), whole=scored(0.2))
        decided = [follow_response(part.verdict, context).label for part in context.sentences]
        assert [label == "inconsistent" for label in decided] == [index == following for index in range(3)]


def test_adjustments_apply_one_after_another() -> None:
    """A text that states nothing is not confirmed, and a refutation counts after a confirmation."""
    text = "It is 20 m tall."
    context = about(text, numbers={"values.amounts": 1.0, "values.replaced": 1.0}, evidence=measured(text))
    verdict = adjust(scored(0.5), context, ADJUSTMENTS)
    assert list(verdict.contributions or {}) == ["values.amounts", "values.replaced"]
    assert logit(verdict.probability or 0) == pytest.approx(sum((verdict.contributions or {}).values()))
    chat = replace(context, text="How nice.", numbers={"verifiability": 0.1, "values.replaced": 1.0})
    assert adjust(scored(0.5), chat, ADJUSTMENTS) == msgspec.structs.replace(SILENT, sure=True)
