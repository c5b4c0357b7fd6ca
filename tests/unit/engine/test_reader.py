"""The metric reader: windows, its numbers about a response and its sentences, spans, and what states nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from groundwire.engine import Engine, LoadOptions, Options, Score
from groundwire.engine.metrics.reader import ANSWER_SIZE, ROLE, cut_windows
from groundwire.engine.schema.explanations import ReaderExplanation
from groundwire.engine.schema.options import NliOptions
from groundwire.engine.text.reading import count_pieces, read_response
from groundwire.engine.text.retrieval import NEAR
from groundwire.engine.verdict.fusion import choose_fusion, features, features_of_part
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, Scale, join_calibrations
from groundwire.runtime.bundles.manifest import ReaderHead
from groundwire.runtime.calls import AnswerRead, Classified, ClassifiedToken, Classify, Read, ReadAnswer
from groundwire.runtime.errors import TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from tests.support.verdicts import bind, make_profile

HEADS = {
    "consistency": ReaderHead(("consistent", "inconsistent"), ("consistent",), "answer"),
    "nli": ReaderHead(("entailment", "neutral", "contradiction"), ("entailment",), "answer"),
    "verifiability": ReaderHead(("verifiable", "other"), ("verifiable",), "answer", ("other",)),
    "tokens": ReaderHead(("fine", "number"), ("fine",), "token"),
    "sentence": ReaderHead(("supported", "unsupported", "nothing"), ("supported",), "sentence", ("nothing",)),
}
KNOWLEDGE = "The shop opens at nine in Leeds"


def read_words(call: ReadAnswer) -> AnswerRead:
    """Words that no premise has are doubted; a sentence is as good as its worst word, and greetings state nothing."""
    known = " ".join(call.premises)
    tokens, at = [], 0
    for word in call.answer.split(" "):
        support = 0.9 if word.strip(".!?:").lower() in known.lower() else 0.2
        tokens.append(ClassifiedToken(at, at + len(word), (support, 1 - support)))
        at += len(word) + 1
    by_sentence = []
    for start, end in call.sentences:
        worst = min(token.probabilities[0] for token in tokens if start <= token.start < end)
        nothing = call.answer[start:end].startswith("Hello")
        by_sentence.append((0.1, 0.0, 0.9) if nothing else (worst, 1 - worst, 0.0))
    worst = min((shares[0] for shares in by_sentence if shares[2] < 0.5), default=0.1)
    heads = {"consistency": (worst, 1 - worst), "nli": (worst, 0.0, 1 - worst), "verifiability": (0.6, 0.4)}
    return AnswerRead(heads, tuple(by_sentence), tuple(tokens), Read(1, len(known), len(known)))


def runtime(read: Callable[[ReadAnswer], Any] = read_words, **other: Any) -> FakeRuntime:
    return FakeRuntime({ROLE: read, **other}, role_info={ROLE: RoleInfo(heads=HEADS)})


def score(response: str, calibration: Calibration | None = None, **settings: Any) -> Score:
    with Engine(runtime(), LoadOptions(calibration=calibration)) as engine:
        return engine.score(response, settings.pop("knowledge", KNOWLEDGE), metrics=["reader"], **settings)


def make_fusion(name: str = "reader", feature: str = "reader", *others: str) -> Fusion:
    features_read = (
        Feature(name=feature, mean=0.0, deviation=1.0, weight=1.0, needed=True, logit=True),
        *(Feature(name=other, mean=0.0, deviation=1.0, weight=1.0) for other in others),
    )
    profile = make_profile(0.5, 0.1, 0.1)
    return Fusion(name=name, metrics=(feature,), intercept=0.0, features=features_read, profiles={"balanced": profile})


def calibrate(*fusions: Fusion, **scales: Scale) -> Calibration:
    return Calibration(fitted_on=("x",), rows=40, fusions=fusions, scales=scales)


def test_the_numbers_of_a_response() -> None:
    result = score("The shop opens at nine. It opens at ten.").metrics["reader"]
    assert (result.status, result.value) == ("scored", pytest.approx(0.2))
    assert isinstance(result.explanation, ReaderExplanation)
    assert [(s.start, s.end, s.label) for s in result.explanation.sentences] == (
        [(0, 23, "supported"), (24, 40, "unsupported")]
    )
    assert features(bind([result])) == pytest.approx(
        {
            "reader": 0.2,
            "reader.sentences": 0.327273,
            "reader.token": 0.2,
            "reader.entailment": 0.2,
            "reader.verifiable": 1.0,
        }
    )
    assert [span.text for span in result.unsupported] == ["It", "ten."]
    assert result.coverage == 1.0


def test_the_numbers_of_a_sentence_are_its_own() -> None:
    result = score("The shop opens at nine. It opens at ten.").metrics["reader"]
    first = features_of_part(bind([result]), 0, 23)
    assert first == pytest.approx(
        {"reader": 0.9, "reader.sentences": 0.9, "reader.token": 0.9, "reader.verifiable": 1.0}
    )
    alone = score("It opens at ten.").metrics["reader"]
    assert features_of_part(bind([alone]), 0, 16) == features(bind([alone]))


def test_a_sentence_that_states_nothing_is_no_worst_sentence() -> None:
    numbers = features(bind(score("Hello there! The shop opens at nine.").metrics.values()))
    assert (numbers["reader.sentences"], numbers["reader.token"]) == (pytest.approx(0.9), pytest.approx(0.9))
    assert not score("Hello there!").metrics["reader"].unsupported


def test_a_response_that_states_nothing_is_unverifiable() -> None:
    calibration = calibrate(make_fusion())
    assert score("Hello there!", calibration).verdict.label == "unverifiable"
    several = score("Hello there! The shop opens at nine.", calibration)
    assert several.verdict.label == "consistent"
    assert [sentence.verdict.label for sentence in several.sentences] == ["unverifiable", "consistent"]


@pytest.mark.parametrize("count", [1, 3, 12, 60])
def test_the_threshold_does_not_depend_on_the_number_of_sentences(count: int) -> None:
    calibration = calibrate(make_fusion())
    good = score("The shop opens at nine. " * count, calibration)
    bad = score("The shop opens at nine. " * count + "It opens at ten.", calibration)
    assert (good.verdict.label, bad.verdict.label) == ("consistent", "inconsistent")
    assert good.verdict.threshold == bad.verdict.threshold == 0.5
    assert good.verdict.probability == pytest.approx(0.9)
    assert bad.verdict.probability == pytest.approx(0.2)


def test_long_responses_are_read_in_windows_with_context() -> None:
    response = "The shop opens at nine, and it is in Leeds by the river. " * 40
    windows = cut_windows(read_response(response))
    assert len(windows) > 2
    labelled = [reading for window in windows for reading in window.readings[window.first :]]
    assert labelled == list(read_response(response))
    assert [window.first > 0 for window in windows] == [False, *[True] * (len(windows) - 1)]
    for window in windows:
        assert [window.text[start:end] for start, end in window.ranges] == (
            [reading.text for reading in window.readings[window.first :]]
        )
        assert count_pieces(window.text) <= ANSWER_SIZE


def test_a_long_sentence_is_cut() -> None:
    response = "It opens at nine, " * 90 + "it closes at five."
    windows = cut_windows(read_response(response))
    parts = [reading.text for window in windows for reading in window.readings[window.first :]]
    assert len(parts) > 2
    assert max(map(count_pieces, parts)) <= ANSWER_SIZE
    explanation = score(response).metrics["reader"].explanation
    assert isinstance(explanation, ReaderExplanation)
    spans = explanation.sentences
    assert " ".join(response[span.start : span.end] for span in spans) == response


def test_a_window_that_the_model_cannot_read_is_made_smaller() -> None:
    def refuse(call: ReadAnswer) -> AnswerRead:
        if len(call.answer) > 150:
            raise TooLong("too long")
        return read_words(call)

    with Engine(runtime(refuse)) as engine:
        result = engine.score("The shop opens at nine. " * 10, KNOWLEDGE, metrics=["reader"]).metrics["reader"]
    assert result.status == "scored"
    assert isinstance(result.explanation, ReaderExplanation)
    assert len(result.explanation.sentences) == 10
    assert len(result.explanation.windows) > 1


def test_marks_and_code_are_not_read() -> None:
    response = "We open:\n- in **Leeds** at nine\n- in *York* at ten\n\n```\nopen(9)\n```\n"
    result = score(response, knowledge="We open in Leeds at nine").metrics["reader"]
    assert isinstance(result.explanation, ReaderExplanation)
    assert [span.text for span in result.unsupported] == ["York", "ten"]
    code = [span for span in result.explanation.sentences if span.nothing == 1.0]
    assert ["open(9)" in response[span.start : span.end] for span in code] == [True]


def test_long_knowledge_is_read_in_excerpts() -> None:
    calls: list[ReadAnswer] = []

    def read(call: ReadAnswer) -> AnswerRead:
        calls.append(call)
        return read_words(call)

    passages = ["The weather was dull again, as it had been all week. " * 200, f"{KNOWLEDGE}."]
    with Engine(runtime(read)) as engine:
        result = engine.score("The shop opens at nine.", passages, metrics=["reader"]).metrics["reader"]
    assert result.value == pytest.approx(0.9)
    assert sum(map(len, calls[0].premises)) < NEAR.whole < sum(map(len, passages))
    assert result.coverage is not None
    assert result.coverage < 0.5


def test_a_refused_call_is_the_status_of_the_metric() -> None:
    def refuse(call: ReadAnswer) -> AnswerRead:
        raise TooLong("too long")

    with Engine(runtime(refuse)) as engine:
        assert engine.score("It opens.", KNOWLEDGE, metrics=["reader"]).metrics["reader"].status == "truncated"


def test_the_claim_filter_leaves_sentences_out() -> None:
    def verify(call: Classify) -> Classified:
        share = float(call.hypothesis.startswith("The"))
        return Classified("verifiable", {"verifiable": share, "other": 1 - share}, 0, Read(1, 0, 0), share)

    with Engine(runtime(**{"detector.verifiability": verify})) as engine:
        options = Options(claim_filter="verifiable")
        chosen = engine.score("It is ten. The shop opens.", KNOWLEDGE, metrics=["reader"], options=options)
        assert chosen.metrics["reader"].value == pytest.approx(0.9)
        none = engine.score("It is ten.", KNOWLEDGE, metrics=["reader"], options=options)
        assert none.metrics["reader"].status == "nothing_to_verify"


def classify_nli(call: Classify) -> Classified:
    """Contradiction where the hypothesis has "ten"."""
    shares = (0.0, 0.0, 1.0) if "ten" in call.hypothesis else (1.0, 0.0, 0.0)
    labels = ("entailment", "neutral", "contradiction")
    return Classified(labels[shares.index(1.0)], dict(zip(labels, shares, strict=True)), 0, Read(1, 9, 9))


@pytest.mark.parametrize(
    ("read", "metrics", "sentences", "expected"),
    [
        (("reader", "nli.expected"), ("reader", "nli"), None, []),
        (("reader", "nli.expected"), ("reader", "nli"), True, ["The shop opens at nine.", "It opens at ten."]),
        (("nli.expected",), ("reader", "nli"), None, ["The shop opens at nine.", "It opens at ten."]),
        (("nli.expected",), ("nli",), False, []),
    ],
)
def test_sentences_are_read_apart_only_where_no_reader_has_read_them(
    read: tuple[str, ...], metrics: tuple[str, ...], sentences: bool | None, expected: list[str]
) -> None:
    calibration = calibrate(make_fusion("x", *read))
    options = Options(nli=NliOptions(sentences=sentences))
    with Engine(runtime(nli=classify_nli), LoadOptions(calibration=calibration)) as engine:
        scored = engine.score("The shop opens at nine. It opens at ten.", KNOWLEDGE, metrics=metrics, options=options)
        assert isinstance(engine.core.runtime, FakeRuntime)
        calls = [call for _, batch in engine.core.runtime.batches for call in batch if isinstance(call, Classify)]
    assert sorted(
        call.hypothesis for call in calls if "shop" not in call.hypothesis or "ten" not in call.hypothesis
    ) == (sorted(expected))
    assert "nli.sentences" in scored.signature or sentences is None


def test_a_verdict_with_the_reader_reads_no_sentence_apart() -> None:
    """What inference says of single sentences is for the explanation: it changes neither verdict nor sentences."""
    calibration = calibrate(make_fusion("x", "reader", "nli.expected"))
    scores = []
    for sentences in (True, False):
        with Engine(runtime(nli=classify_nli), LoadOptions(calibration=calibration)) as engine:
            options = Options(nli=NliOptions(sentences=sentences))
            scores.append(
                engine.score(
                    "The shop opens at nine. It opens at ten.", KNOWLEDGE, metrics=("reader", "nli"), options=options
                )
            )
    with_sentences, without = scores
    assert with_sentences.verdict == without.verdict
    assert [part.verdict for part in with_sentences.sentences] == [part.verdict for part in without.sentences]
    assert without.sentences[1].verdict.absent == ("nli.expected",)


def test_a_sentence_without_values_has_a_verdict() -> None:
    """More than half of the weight is of features that such a sentence lacks: it has no values, and nothing apart."""
    fusion = make_fusion("x", "reader", "nli.expected", "nli.worst", "reader.entailment", "values.contradicted_share")
    with Engine(runtime(nli=classify_nli), LoadOptions(calibration=calibrate(fusion))) as engine:
        scored = engine.score(
            "The shop opens at nine. The shop opens in Leeds.", KNOWLEDGE, metrics=("reader", "nli", "values")
        )
    assert [part.verdict.label for part in scored.sentences] == ["consistent", "consistent"]


def test_calibrations_join() -> None:
    small = calibrate(make_fusion("full", "nli"), make_fusion("fast", "nli"), nli=Scale(low=0, high=1, threshold=0.5))
    large = calibrate(make_fusion("reader"), make_fusion("fast", "reader"), reader=Scale(low=0, high=1, threshold=0.5))
    joined = join_calibrations([None, small, large])
    assert joined is not None
    assert [fusion.name for fusion in joined.fusions] == ["reader", "full", "fast"]
    assert joined.metrics == ("reader",)
    assert joined.fusion("fast") == small.fusion("fast")
    assert set(joined.scales) == {"nli", "reader"}
    assert join_calibrations([small, None]) == small
    assert join_calibrations([None]) is None


def test_more_metrics_do_not_change_the_default_fusion() -> None:
    first, second = make_fusion("reader"), make_fusion("full", "nli", "overlap_precision", "bertscore.precision")
    calibration = calibrate(first, second)
    everything = ("reader", "nli", "overlap_precision", "bertscore")
    assert choose_fusion(calibration, everything) == first
    assert choose_fusion(calibration, everything[1:]) == second
    assert choose_fusion(calibrate(second, first), everything) == second


@pytest.mark.parametrize("knowledge", ["", " ", ()])
def test_without_knowledge_all_of_nothing_is_read(knowledge: str) -> None:
    scored = score("The shop opens at nine.", knowledge=knowledge)
    assert (scored.status, scored.coverage) == ("scored", 1.0)


@pytest.mark.parametrize(("share", "label"), [(0.1, "unverifiable"), (0.9, "consistent")])
def test_a_text_states_nothing_only_if_every_classifier_says_so(share: float, label: str) -> None:
    """The reader finds nothing stated in a greeting; the classifier of verifiability may, and the other way round."""

    def verify(_: Classify) -> Classified:
        return Classified("other", {"verifiable": share, "other": 1 - share}, 0, Read(1, 0, 0), share)

    fusion = msgspec.structs.replace(make_fusion(), metrics=("reader", "verifiability"), intercept=4.0)
    with Engine(runtime(**{"detector.verifiability": verify}), LoadOptions(calibration=calibrate(fusion))) as engine:
        greeting = engine.score("Hello lovely weather!", knowledge=(KNOWLEDGE,), metrics=["reader", "verifiability"])
        opening = engine.score("The shop opens at nine.", knowledge=(KNOWLEDGE,), metrics=["reader", "verifiability"])
    assert greeting.verdict.label == label
    assert opening.verdict.label == "consistent"
