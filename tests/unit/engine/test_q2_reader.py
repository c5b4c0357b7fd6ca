"""Q² with the reader, on models small enough to compute by hand."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine, InvalidRequest, Options, Score
from groundwire.engine.schema.explanations import Q2Explanation
from groundwire.engine.schema.options import Q2Options
from groundwire.runtime.bundles.manifest import ReaderHead
from groundwire.runtime.calls import Answered, AnswerRead, Classify, Read, ReadAnswer
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from tests.support.fakes import ROLES, world

HEADS = {
    "consistency": ReaderHead(("inconsistent", "consistent"), ("consistent",), "answer"),
    "nli": ReaderHead(("entailment", "neutral", "contradiction"), ("entailment",), "answer"),
    "verifiability": ReaderHead(("verifiable", "other"), ("verifiable",), "answer", ("other",)),
    "tokens": ReaderHead(("fine", "number"), ("fine",), "token"),
    "sentence": ReaderHead(("supported", "unsupported", "nothing"), ("supported",), "sentence", ("nothing",)),
}


def read(call: ReadAnswer) -> AnswerRead:
    """Supported by 0.75 where the premises have the last word, else by 0.25."""
    share = 0.75 if call.answer.rstrip(".").split()[-1] in " ".join(call.premises) else 0.25
    heads = {"consistency": (1 - share, share), "nli": (share, 0.0, 1 - share), "verifiability": (1.0, 0.0)}
    labels = tuple((share, 1 - share, 0.0) for _ in call.sentences)
    return AnswerRead(heads, labels, (), Read(1, 10, 10))


def refuse_inference(call: Classify) -> None:
    raise AssertionError(call)


def run(response: str, knowledge: str, options: Options | None = None, **roles: object) -> Score:
    runtime = FakeRuntime(
        {**ROLES, "nli": refuse_inference, "reader": read, **roles}, role_info={"reader": RoleInfo(heads=HEADS)}
    )  # type: ignore[dict-item]
    with Engine(runtime) as engine:
        return engine.score(response, knowledge, metrics=["q2_reader"], options=options)


def get_explanation(score: Score) -> Q2Explanation:
    explanation = score.metrics["q2_reader"].explanation
    assert isinstance(explanation, Q2Explanation)
    return explanation


def test_a_question_is_worth_half_its_words_and_half_its_support() -> None:
    score = run("Elvis was born in 1936.", "Elvis came in 1935.")
    kept = [comparison for comparison in get_explanation(score).questions if comparison.kept]
    assert [(c.span.text, c.f1, c.supported, c.value) for c in kept] == [
        ("Elvis", 1.0, 0.75, 0.875),
        ("1936", 0.0, 0.25, 0.125),
    ]
    assert (score.status, score.value) == ("scored", 0.5)
    (span,) = score.unsupported
    assert (span.text, span.reason, span.knowledge_says) == ("1936", "mismatch", "1935")


def test_the_reader_is_asked_about_the_question_with_the_span_of_the_response() -> None:
    calls: list[ReadAnswer] = []

    def record(call: ReadAnswer) -> AnswerRead:
        calls.append(call)
        return read(call)

    run("Elvis was born in 1936.", "Elvis came in 1935.", reader=record)
    assert [(call.answer, call.premises, call.history) for call in calls] == [
        ("which name? Elvis.", ("Elvis came in 1935.",), ()),
        ("which number? 1936.", ("Elvis came in 1935.",), ()),
    ]


def test_a_missing_answer_costs_half_where_the_knowledge_supports_the_span() -> None:
    def answer(call: object) -> Answered:
        passages = call.passages  # type: ignore[attr-defined]
        if passages == ("Born in 1935, he sang.",):
            return Answered("none", "", -1, -1, -1, -1.0, Read(1, 9, 9))
        return ROLES["qa"](call)  # type: ignore[return-value]

    score = run("He sang in 1935.", "Born in 1935, he sang.", qa=answer)
    kept = {c.span.text: (c.f1, c.value) for c in get_explanation(score).questions if c.kept}
    assert kept["1935"] == (0.0, 0.375)


def test_without_a_question_the_response_is_read_as_a_whole() -> None:
    def none(call: object) -> tuple[()]:
        return ()

    score = run(
        "the shop closes late",
        "The shop closes late",
        spans=lambda call: False if hasattr(call, "question") else (),
        qg=none,
    )
    assert (score.status, score.value) == ("scored", 0.75)
    assert get_explanation(score).questions == ()
    options = Options(q2=Q2Options(fallback=False))
    score = run(
        "the shop closes late",
        "The shop closes late",
        options,
        spans=lambda call: False if hasattr(call, "question") else (),
    )
    assert score.metrics["q2_reader"].status == "nothing_to_verify"


def test_without_a_reader_it_is_refused() -> None:
    with Engine(world()) as engine, pytest.raises(InvalidRequest, match="q2_reader"):
        engine.score("Elvis.", "Elvis.", metrics=["q2_reader"])
