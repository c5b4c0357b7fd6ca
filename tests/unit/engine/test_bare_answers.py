"""A yes or no after a question that states something is read as what it states."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.schema.explanations import ValuesExplanation
from groundwire.engine.schema.results import Request
from groundwire.engine.text.answers import declare_question, read_answer, state_answer
from groundwire.guard import Guard
from groundwire.runtime.fake import FakeRuntime
from tests.support.streams import KNOWLEDGE, world


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Yes.", True),
        ("Yes, of course!", True),
        ("Sure, no problem.", True),
        ("Absolutely!", True),
        ("That's right.", True),
        ("You’re absolutely right!", True),
        ("Yes, it is.", True),
        ("Correct", True),
        ("Well, yes, sir", True),
        ("No.", False),
        ("No, sorry.", False),
        ("Not at all!", False),
        ("Of course not.", False),
        ("No, it isn't.", False),
        ("I'm afraid not.", False),
        ("No problem!", None),
        ("Great question!", None),
        ("Yes, until 8.", None),
        ("Yes, the shop is open.", None),
        ("Thanks!", None),
        ("", None),
        ("yes " * 40, None),
    ],
)
def test_bare_answers(sentence: str, expected: bool | None) -> None:
    assert read_answer(sentence) is expected


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        ("Is the warranty 36 months?", "the warranty is 36 months", "the warranty is not 36 months"),
        ("So does it last 36 months?", "it does last 36 months", "it does not last 36 months"),
        ("Does the warranty last 36 months?", "the warranty does last 36 months", None),
        ("Do you deliver on Sundays?", "we deliver on Sundays", "we do not deliver on Sundays"),
        ("Can I bring my dog?", "you can bring your dog", "you can not bring your dog"),
        ("Are pets allowed?", "pets are allowed", "pets are not allowed"),
        ("Is breakfast included in the price?", "breakfast is included in the price", None),
        ("Is delivery free above £40?", "delivery is free above £40", None),
        ("Is the 5000 dollar bill still valid?", "the 5000 dollar bill is still valid", None),
        ("Did Roald Dahl write The Witches?", "Roald Dahl did write The Witches", None),
        ("Is Paris in France?", "Paris is in France", None),
        ("Is there a pool?", "there is a pool", "there is no pool"),
        ("Are there any lockers in the hall?", "there are any lockers in the hall", "there are no lockers in the hall"),
        ("Isn’t the museum closed on Mondays?", "the museum is closed on Mondays", None),
        ("Won't it rain?", "it will rain", "it will not rain"),
        ("Hi, could you tell me if parking is free?", "parking is free", "parking is not free"),
        ("It's 36 months, right?", "It's 36 months", "It is false that It's 36 months"),
        ("The warranty is 36 months, isn't it?", "The warranty is 36 months", "The warranty is not 36 months"),
        ("You ship to Ireland?", "we ship to Ireland", None),
        ("Is it 24 or 36 months?", "", ""),
        ("36?", "", ""),
        ("How long is the warranty?", None, None),
        ("On which day do you open?", None, None),
        ("Can you help me?", None, None),
        ("Would you like some tea?", None, None),
        ("Really?", None, None),
        ("?", None, None),
    ],
)  # fmt: skip
def test_statements_of_questions(question: str, yes: str | None, no: str | None) -> None:
    assert declare_question(question) == yes
    if no is not None or yes is None:
        assert declare_question(question, is_yes=False) == no


@pytest.mark.parametrize(
    ("response", "turn", "statement"),
    [
        ("Great question! Yes. Do come.", "Is it free?", "It is free."),
        ("Yes.", "The warranty is 36 months. Is that right?", "The warranty is 36 months."),
        ("Yes.", "Hello! Is it free? Thanks.", None),
        ("Yes.", "It is free.", None),
        ("The pool is open. Yes.", "Is it free?", None),
        ("Yes.", "Do you like pizza?", None),
        ("No.", "Do you have a pool?", "We do not have a pool."),
    ],
)
def test_answers_of_responses(response: str, turn: str, statement: str | None) -> None:
    answer = state_answer(response, turn)
    assert (answer and answer.statement) == statement
    if answer is not None:
        assert read_answer(response[answer.start : answer.end]) is not None


def test_metrics_read_the_statement_and_not_the_question_alone() -> None:
    read = ReadRequest.of(Request("<b>Yes!</b> Do come.", (KNOWLEDGE,), ("Hi.", "Is it free?")))
    assert (read.response, read.history, read.bare_answer) == ("It is free. Do come.", ("Hi.", "Is it free?"), (0, 11))
    alone = ReadRequest.of(Request("Yes!", (KNOWLEDGE,), ("Hi.", "Is it free?")))
    assert (alone.response, alone.history) == ("It is free.", ("Hi.",))
    assert read.rendered_response.locate(0, 11) == (3, 7)
    unread = ReadRequest.of(Request("Yes!", (KNOWLEDGE,), ("Is it free or not free?",)))
    assert unread.bare_answer is not None
    assert ReadRequest.of(Request("Yes!", (KNOWLEDGE,))).bare_answer is None


def list_values(response: str, question: str) -> list[tuple[str, str, str]]:
    with Engine(FakeRuntime({})) as engine:
        score = engine.score(response, "The hall is 30 m long.", history=[question], metrics=["values"])
    explanation = score.metrics["values"].explanation
    values = explanation.values if isinstance(explanation, ValuesExplanation) else ()
    return [(value.text, value.outcome, value.knowledge_says) for value in values]


def test_a_no_to_a_contradicted_value_is_supported_by_what_the_knowledge_says() -> None:
    assert list_values("No.", "Is the hall 20 m long?") == [("No.", "supported", "30 m")]
    assert list_values("Hello! No. It is new.", "Is the hall 20 m long?") == [("No.", "supported", "30 m")]
    assert list_values("No.", "Is the hall 30 m long?") == []
    assert list_values("No.", "Is the tower 20 m long?") == []
    assert list_values("No.", "Is the hall 30 m long rather than 20 m?") == []
    assert list_values("Yes.", "Is the hall 20 m long?") == [("Yes.", "contradicted", "30 m")]


def test_a_bare_answer_is_never_unverifiable() -> None:
    with Engine(world()) as engine:
        for question, answer, label in (
            ("Is honey blue?", "Yes!", "inconsistent"),
            ("Is honey sweet?", "Sure, no problem!", "consistent"),
            ("Can you help me?", "Hi!", "unverifiable"),
        ):
            score = engine.score(answer, KNOWLEDGE, history=[question])
            assert score.verdict.label == label
            (sentence,) = score.sentences
            assert (sentence.text, sentence.end) == (answer, len(answer))
            for span in score.unsupported:
                assert span.text == answer[span.start : span.end]


def test_a_stream_reads_a_bare_answer_after_small_talk() -> None:
    with Engine(world()) as engine, Guard(engine).open(KNOWLEDGE, history=["Is honey blue?"]) as stream:
        stream.feed("Hi! Yes. Honey is sweet.")
        stream.finish()
    assert stream.released == "Hi!"
