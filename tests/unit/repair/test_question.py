"""Corrections of answers: what was asked about stays, and so does what was said by "Yes" or "No"."""

from __future__ import annotations

import pytest

from groundwire.engine.text.sentences import sentences
from groundwire.guard import Correct, Guard, Policy
from groundwire.repair import Corrector
from groundwire.repair.correction.question import UserQuestion, find_opener
from groundwire.repair.correction.sources import SourceSentence
from tests.support.correcting import METRICS, make_engine

SHIPPING = (
    "Standard delivery within the UK costs £3.95 and takes 3 to 5 working days. Orders over £50 are delivered free. "
    "Next-day delivery costs £7.95; order before 2 pm, Monday to Friday. We do not deliver to PO boxes."
)
RETURNS = (
    "You can return most items within 30 days of delivery for a full refund. Items must be unused and in their "
    "original packaging. Refunds reach your account within 5 working days after the parcel arrives at our warehouse."
)
HOURS = "Our phone line is open Monday to Friday from 9 am to 6 pm and on Saturday from 10 am to 2 pm."
GUARANTEE = "All kettles have a two-year guarantee. The guarantee does not cover limescale damage."


@pytest.mark.parametrize(
    ("question", "response", "knowledge", "reason"),
    [
        ("Can you deliver to my PO box?", "Yes, we deliver to PO boxes.", SHIPPING, "after 'Yes'"),
        ("Can you deliver to my PO box?", "Yes. We deliver to PO boxes.", SHIPPING, "after 'Yes'"),
        (None, "Of course! The guarantee also covers limescale damage.", GUARANTEE, "after 'Of course'"),
        (None, "We deliver to PO boxes for £3.95.", SHIPPING, "'£3.95' does not fit"),
        (
            "are you open on sunday",
            "Our phone line is open on Sundays from 10 am to 2 pm.",
            HOURS,
            "the question asks about 'Sundays'",
        ),
        (None, "Yes, our phone line is open on Sunday from 10 am to 2 pm.", HOURS, "after 'Yes' that may be"),
        (
            "Is next-day delivery £9.95?",
            "Next-day delivery costs £9.95.",
            SHIPPING,
            "the question asks about '£9.95'",
        ),
    ],
)
def test_an_answer_stays_one_to_its_question(question: str | None, response: str, knowledge: str, reason: str) -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct(
            response, knowledge, history=[question] if question else [], metrics=METRICS
        )
    assert (correction.status, correction.response, correction.edits) == ("refused", response, ())
    assert reason in correction.message


@pytest.mark.parametrize(
    ("question", "response", "knowledge", "expected"),
    [
        # The value of the clause about the same thing, whatever else the page has, and arithmetic could make of it,
        ("", "Next-day delivery costs £9.95.", [SHIPPING, RETURNS], "Next-day delivery costs £7.95."),
        (
            "How much is delivery?",
            "Standard delivery costs £4.95.",
            [SHIPPING, RETURNS],
            "Standard delivery costs £3.95.",
        ),
        # in other words perhaps, where that value contradicts it.
        (
            "Can I return a jumper?",
            "Yes, you have 60 days from delivery to send it back for a full refund.",
            [RETURNS],
            "Yes, you have 30 days from delivery to send it back for a full refund.",
        ),
        # A denial is a sentence: with a small letter where it does not begin one.
        ("", "Sorry, we deliver to PO boxes.", [SHIPPING, "Sorry."], "Sorry, we do not deliver to PO boxes."),
        (
            "",
            "The guarantee also covers limescale damage.",
            [GUARANTEE],
            "The guarantee does not cover limescale damage.",
        ),
    ],
)
def test_what_the_clause_about_the_same_thing_says_is_put_in(
    question: str, response: str, knowledge: list[str], expected: str
) -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct(
            response, knowledge, history=[question] if question else [], metrics=METRICS
        )
    assert correction.response == expected


@pytest.mark.parametrize(
    ("question", "response", "knowledge"),
    [
        # Arithmetic, an amount of the question, another thing, or a price with conditions may make it right.
        ("", "Members pay €272 for the desk.", "The desk is €320, with 15% off for members."),
        ("How much for two adults?", "Tickets for adults cost $26.", "Tickets for adults cost $13."),
        ("", "Same-day delivery costs £9.95.", "Next-day delivery costs £7.95. Standard delivery costs £3.95."),
        (
            "",
            "A return ticket to Bath costs £14.",
            "A single ticket to Bath costs £7. A return ticket is twice as much.",
        ),
        ("", "Two next-day deliveries cost £15.90.", SHIPPING),
    ],
)
def test_what_may_follow_from_the_clause_is_not(question: str, response: str, knowledge: str) -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct(
            response, knowledge, history=[question] if question else [], metrics=METRICS
        )
    assert correction.response == response


@pytest.mark.parametrize(
    ("opener", "released"), [("No. ", "No."), ("Hello! ", "Hello! We deliver to PO boxes in the UK.")]
)
def test_a_stream_does_not_say_the_opposite_of_what_has_left(opener: str, released: str) -> None:
    knowledge = ["We deliver to PO boxes in the UK.", "No. Hello."]
    with make_engine() as engine:
        stream = Guard(engine).open(knowledge, Policy(inconsistent=Correct(), unknown="flag"), metrics=METRICS)
        stream.feed(f"{opener}We do not deliver to PO boxes in the UK.")
        stream.finish()
    assert stream.released.strip() == released


def test_words_are_left_out_unless_they_are_asked_about() -> None:
    (sentence,) = sentences("We ship to Norway.")
    for history, reason in ((["Do you ship to Norway?"], True), (["How do you ship?"], False), ([], False)):
        question = UserQuestion(sentence.text, history)
        assert bool(question.find_objection(sentence, 8, 17, "", None)) is reason
    assert UserQuestion("No, not there.").find_objection(sentences("No, not there.")[0], 4, 8, "", None)


def test_a_value_that_is_asked_about_is_the_same_in_other_digits() -> None:
    response = "It costs £20.00."
    source = SourceSentence(0, "It costs £30.", 0)
    question = UserQuestion(response, ["Is it £20?"])
    assert question.find_objection(sentences(response)[0], 9, 15, "£30", source)
    assert not UserQuestion(response, ["Is it dear?"]).find_objection(sentences(response)[0], 9, 15, "£30", source)


@pytest.mark.parametrize(
    ("before", "sentence", "opener"),
    [
        ("", "Yes we do.", "Yes"),
        ("Hi! Sure!  ", "We do.", "Sure"),
        ("Yes. We ship.", "It is free.", ""),
        ("", "No one ships.", ""),
        ("", "Sure-footed mules ship it.", ""),
    ],
)
def test_openers(before: str, sentence: str, opener: str) -> None:
    assert find_opener(before, sentence) == opener
