"""The metrics that classify sentences, on classifiers small enough to compute by hand."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine import Engine, InvalidRequest, Options, Score
from groundwire.engine.schema.explanations import (
    DetectorExplanation,
    FeqaExplanation,
    NliExplanation,
    TokenClassifierExplanation,
    VerifiabilityExplanation,
)
from groundwire.engine.schema.options import DetectorOptions, FeqaOptions, NliOptions, TokenClassifierOptions
from groundwire.generation import Greedy
from groundwire.runtime.calls import (
    Answer,
    Classified,
    ClassifiedToken,
    ClassifiedTokens,
    Classify,
    ClassifyTokens,
    GeneratedQuestion,
    GenerateQuestions,
    Read,
)
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from tests.support.fakes import ROLES

SHARES = {
    "entailment": (0.7, 0.2, 0.1),
    "neutral": (0.2, 0.6, 0.2),
    "contradiction": (0.1, 0.1, 0.8),
}
DETECTOR = RoleInfo(("REFUTES", "SUPPORTS"), ("SUPPORTS",))
ROLE_INFO = {
    "detector.fake": DETECTOR,
    "detector.fine": RoleInfo(DETECTOR.labels, DETECTOR.supported, "sentence"),
    "judge": RoleInfo(DETECTOR.labels, DETECTOR.supported, "sentence", "mean"),
    "token_classifier": RoleInfo(("fine", "made up"), ("fine",)),
}


def classify_nli(call: Classify) -> Classified:
    """Entailment for words of the knowledge, contradiction for a hypothesis with "not", else neutral."""
    premise = " ".join(call.premises)
    label = "contradiction" if " not " in call.hypothesis else "neutral"
    if call.hypothesis.lower() in premise.lower():
        label = "entailment"
    shares = dict(zip(SHARES, SHARES[label], strict=True))
    return Classified(label, shares, 0, Read(1, len(premise), len(premise)))


def detect(call: Classify) -> Classified:
    """Subtracts a third of the support for each word "wrong"."""
    support = 0.9 - call.hypothesis.count("wrong") / 3
    label = "SUPPORTS" if support >= 0.5 else "REFUTES"
    total = sum(map(len, call.premises))
    return Classified(label, {"REFUTES": 1 - support, "SUPPORTS": support}, 0, Read(1, total, total), support)


def classify_verifiability(call: Classify) -> Classified:
    """Classifies questions and exclamations as non-verifiable, and all else as verifiable."""
    support = 0.1 if call.hypothesis.endswith(("?", "!")) else 0.8
    label = "verifiable" if support >= 0.5 else "non-verifiable"
    return Classified(label, {"verifiable": support, "non-verifiable": 1 - support}, 0, Read(1, 0, 0), support)


def classify_tokens(call: ClassifyTokens) -> ClassifiedTokens:
    """Classifies words that are in no premise as made up."""
    premise, tokens, at = " ".join(call.premises), [], 0
    for word in call.text.split(" "):
        doubt = 0.1 if word in premise else 0.7
        tokens.append(ClassifiedToken(at, at + len(word), (1 - doubt, doubt)))
        at += len(word) + 1
    return ClassifiedTokens(("fine", "made up"), tuple(tokens), Read(1, len(premise), len(premise)))


def runtime(**other: Any) -> FakeRuntime:
    roles: dict[str, Any] = {
        **ROLES,
        "nli": classify_nli,
        "detector.fake": detect,
        "detector.fine": detect,
        "judge": detect,
        "detector.verifiability": classify_verifiability,
        "token_classifier": classify_tokens,
    }
    return FakeRuntime(roles | other, role_info=ROLE_INFO)


def run(metric: str, response: str, knowledge: Any, options: Options | None = None) -> Score:
    with Engine(runtime()) as engine:
        return engine.score(response, knowledge, metrics=[metric], options=options)


KNOWLEDGE = "Bees make honey. Honey keeps for years."


@pytest.mark.parametrize(
    ("response", "settings", "value"),
    [
        ("honey keeps for years.", NliOptions(), 1.0),
        ("honey is blue.", NliOptions(), 0.5),
        ("honey does not keep.", NliOptions(), 0.0),
        ("honey keeps for years.", NliOptions(value="probability"), 0.7 + 0.1),
        ("honey is blue.", NliOptions(value="probability"), 0.2 + 0.3),
        ("honey keeps for years.", NliOptions(direction="backward"), 0.5),
        ("honey keeps for years.", NliOptions(direction="both"), 0.75),
        ("honey keeps for years. honey is blue.", NliOptions(), 0.5),
    ],
)
def test_nli_value(response: str, settings: NliOptions, value: float) -> None:
    score = run("nli", response, KNOWLEDGE, Options(nli=settings))
    assert score.value == pytest.approx(value)
    assert score.coverage == 1.0


def test_nli_marks_the_sentences_that_are_not_supported() -> None:
    score = run("nli", "Honey keeps for years. Honey is blue. It does not rot.", KNOWLEDGE)
    explanation = score.metrics["nli"].explanation
    assert isinstance(explanation, NliExplanation)
    assert [sentence.label for sentence in explanation.sentences] == ["entailment", "neutral", "contradiction"]
    assert explanation.response.label == "contradiction"
    assert [(span.text, span.reason) for span in score.unsupported] == [
        ("Honey is blue.", "not_entailed"),
        ("It does not rot.", "contradiction"),
    ]


def test_nli_of_the_response_alone_doubts_all_of_it() -> None:
    settings = Options(nli=NliOptions(sentences=False))
    score = run("nli", "Honey keeps for years. It does not rot.", KNOWLEDGE, settings)
    explanation = score.metrics["nli"].explanation
    assert isinstance(explanation, NliExplanation)
    assert (score.value, explanation.sentences) == (0.0, ())
    assert [(span.text, span.reason) for span in score.unsupported] == [
        ("Honey keeps for years. It does not rot.", "contradiction"),
    ]


def test_nli_lower_cases_the_knowledge_and_repeats_no_call() -> None:
    with Engine(runtime()) as engine:
        engine.score("Honey is blue.", "HONEY", metrics=["nli"])
        assert isinstance(engine.core.runtime, FakeRuntime)
        calls = [call for _, batch in engine.core.runtime.batches for call in batch]
    assert calls == [Classify("nli", ("honey",), "Honey is blue.")]


@pytest.mark.parametrize(
    ("metric", "settings", "response", "value", "decision", "spans"),
    [
        ("detector.fake", DetectorOptions(), "all fine.", 0.9, "consistent", []),
        ("detector.fake", DetectorOptions(), "wrong. wrong.", 0.9 - 2 / 3, "inconsistent", ["wrong. wrong."]),
        ("detector.fake", DetectorOptions(unit="sentence"), "ok. wrong.", 0.9 - 1 / 3, "consistent", []),
        ("detector.fine", DetectorOptions(), "ok. wrong wrong.", 0.9 - 2 / 3, "inconsistent", ["wrong wrong."]),
        ("judge", DetectorOptions(), "ok. wrong wrong.", 0.9 - 1 / 3, "inconsistent", ["wrong wrong."]),
        ("judge", DetectorOptions(unit="response"), "ok. wrong wrong.", 0.9 - 2 / 3, "inconsistent", ["wrong wrong."]),
        (
            "detector.fake",
            DetectorOptions(sentences=True),
            "ok. wrong wrong.",
            0.9 - 2 / 3,
            "inconsistent",
            ["wrong wrong."],
        ),
        (
            "detector.fake",
            DetectorOptions(sentences=False),
            "ok. wrong wrong.",
            0.9 - 2 / 3,
            "inconsistent",
            ["ok. wrong wrong."],
        ),
    ],
)
def test_detectors(
    metric: str, settings: DetectorOptions, response: str, value: float, decision: str, spans: list[str]
) -> None:
    score = run(metric, response, KNOWLEDGE, Options(detector=settings))
    explanation = score.metrics[metric].explanation
    assert isinstance(explanation, DetectorExplanation)
    assert score.value == pytest.approx(value)
    assert explanation.decision == decision
    assert [span.text for span in score.unsupported] == spans


def test_verifiability_is_that_of_the_most_verifiable_sentence() -> None:
    score = run("verifiability", "Really? Honey is blue.", KNOWLEDGE)
    explanation = score.metrics["verifiability"].explanation
    assert isinstance(explanation, VerifiabilityExplanation)
    assert score.value == 0.8
    assert [(sentence.start, sentence.end, sentence.label) for sentence in explanation.sentences] == [
        (0, 7, "non-verifiable"),
        (8, 22, "verifiable"),
    ]
    assert run("verifiability", "Really? Wow!", KNOWLEDGE).value == 0.1


@pytest.mark.parametrize("metric", ["nli", "detector.fake", "detector.fine", "judge", "q2", "feqa"])
def test_the_claim_filter_ignores_sentences_that_cannot_be_verified(metric: str) -> None:
    options = Options(claim_filter="verifiable")
    nothing = run(metric, "is Honey blue? Wow!", KNOWLEDGE, options)
    assert (nothing.status, nothing.value) == ("nothing_to_verify", None)
    filtered = run(metric, "is wrong wrong wrong? Bees make Honey.", KNOWLEDGE, options)
    unfiltered = run(metric, "Bees make Honey.", KNOWLEDGE)
    assert (filtered.status, filtered.value) == ("scored", unfiltered.value)


def test_the_claim_filter_needs_the_verifiability_classifier() -> None:
    with Engine(FakeRuntime({"nli": classify_nli})) as engine, pytest.raises(InvalidRequest, match="verifiability"):
        engine.score("a", "b", metrics=["nli"], options=Options(claim_filter="verifiable"))


@pytest.mark.parametrize(
    ("threshold", "spans"), [(0.5, ["Wasps", "green jam"]), (0.05, ["Wasps make green jam"]), (0.9, [])]
)
def test_the_token_classifier_marks_runs_of_unsupported_words(threshold: float, spans: list[str]) -> None:
    score = run(
        "token_classifier",
        "Wasps make green jam",
        KNOWLEDGE,
        Options(token_classifier=TokenClassifierOptions(threshold)),
    )
    explanation = score.metrics["token_classifier"].explanation
    assert isinstance(explanation, TokenClassifierExplanation)
    assert [token.probability for token in explanation.tokens] == pytest.approx([0.7, 0.1, 0.7, 0.7])
    assert score.value == pytest.approx(0.3)
    assert [span.text for span in score.unsupported] == spans


def test_feqa_answers_the_best_question_about_each_phrase() -> None:
    def generate(call: GenerateQuestions) -> tuple[GeneratedQuestion, ...]:
        return (
            GeneratedQuestion("which number?" if call.answer.isdigit() else "which name?", -0.1),
            GeneratedQuestion("x", -9.0),
        )

    with Engine(runtime(qg=generate)) as engine:
        score = engine.score("Elvis was born in 1936.", "Elvis came in 1935.", metrics=["feqa"])
        nothing = engine.score("he was.", "Elvis came in 1935.", metrics=["feqa"])
    explanation = score.metrics["feqa"].explanation
    assert isinstance(explanation, FeqaExplanation)
    assert [(phrase.span.text, phrase.answer, phrase.f1) for phrase in explanation.phrases] == [
        ("Elvis", "Elvis", 1.0),
        ("1936", "1935", 0.0),
    ]
    assert score.value == 0.5
    assert [(span.text, span.reason, span.knowledge_says) for span in score.unsupported] == [
        ("1936", "mismatch", "1935")
    ]
    assert nothing.status == "nothing_to_verify"


def test_all_metrics_together_send_each_call_once() -> None:
    with Engine(runtime()) as engine:
        score = engine.score("Elvis was born in 1936. He was King.", "Elvis came in 1935.", metrics="all")
        assert isinstance(engine.core.runtime, FakeRuntime)
        calls = [call for _, batch in engine.core.runtime.batches for call in batch]
    assert {"q2", "q2_no_nli", "feqa", "nli", "detector.fake", "verifiability", "token_classifier"} <= set(
        score.metrics
    )
    # The response quotes nothing.
    assert {name for name, result in score.metrics.items() if result.status != "scored"} == {"quotations"}
    assert len(calls) == len(set(calls))
    # FeQA shares Q²'s questions, and its answers from the knowledge are those to Q²'s first questions.
    assert sum(isinstance(call, GenerateQuestions) for call in calls) == len({"Elvis", "1936", "He", "King"})
    assert any(isinstance(call, Answer) for call in calls)


def test_feqa_accepts_another_decoding() -> None:
    with Engine(runtime()) as engine:
        engine.score("Elvis.", "Elvis.", metrics=["feqa"], options=Options(feqa=FeqaOptions(decoding=Greedy())))
        assert isinstance(engine.core.runtime, FakeRuntime)
        (call,) = [c for _, batch in engine.core.runtime.batches for c in batch if isinstance(c, GenerateQuestions)]
    assert call.decoding == Greedy()


@pytest.mark.parametrize(
    ("group", "members", "others"),
    [
        ("fast", {"nli", "detector.fake", "verifiability", "token_classifier"}, {"q2", "feqa"}),
        ("paper", {"q2", "q2_no_nli", "nli", "feqa", "detector.fake"}, {"token_classifier"}),
    ],
)
def test_a_group_contains_its_metrics_only(group: str, members: set[str], others: set[str]) -> None:
    with Engine(runtime()) as engine:
        names = set(engine.plan(group).names)
    assert members <= names
    assert not others & names
