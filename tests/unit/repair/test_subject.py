"""Corrections change what is said of a subject, and leave the subject."""

from __future__ import annotations

import pytest

from groundwire.repair import Corrector
from groundwire.repair.correction.keeping import Kept
from groundwire.repair.correction.subject import exchanges_subject, find_subject_change
from groundwire.runtime.calls import Classify
from groundwire.runtime.protocol import Outcome
from tests.support.correcting import METRICS, entail, list_words, make_engine


def entail_by_sentence(call: Classify) -> Outcome:
    """As ``entail``, by the sentence of the knowledge that has the most of its words."""
    stated = set(list_words(call.hypothesis))
    known = (sentence for premise in call.premises for sentence in premise.split(". "))
    nearest = max(known, key=lambda sentence: len(stated & set(list_words(sentence))))
    return entail(Classify(call.role, (nearest,), call.hypothesis))


@pytest.mark.parametrize(
    ("response", "knowledge"),
    [
        ("Delivery to France takes 5 days.", "Delivery to Spain takes 4 days. Delivery to Italy takes 5 days."),
        ("Delivery to France takes 5 days.", "Delivery to Spain takes 4 days."),
        ("Delivery to France takes 5 days, too.", "Delivery to Italy takes 5 days."),
        ("The basic plan has 5 users.", "The basic plan has 3 projects and 10 GB. The team plan has 5 users."),
        ("The basic plan has 5 users.", "The team plan has 8 users."),
        ("The red tent sleeps 4 people.", "The red tent weighs 3 kg. The blue tent sleeps 4 people."),
        ("The Alpha phone has a 5,000 mAh battery.", "The Beta phone has a 5,000 mAh battery."),
        ("The Leeds shop is closed in the old town.", "The York shop is closed in the old town."),
        ("The museum in Berlin is closed at noon.", "The museum in Munich is closed at noon."),
        ("Silver members get 20% off.", "Gold members get 20% off."),
        ("Adults pay £12 for the tour.", "Children pay £12 for the tour."),
    ],
)
def test_a_subject_is_not_exchanged(response: str, knowledge: str) -> None:
    with make_engine(nli=entail_by_sentence) as engine:
        correction = Corrector(engine).correct(response, knowledge, metrics=METRICS)
    assert (correction.status, correction.response, correction.edits) == ("refused", response, ())


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [
        # The value of the subject is put in where the knowledge has one.
        (
            "Delivery to France takes 5 days.",
            "Delivery to France takes 4 days. Delivery to Italy takes 6 days.",
            "Delivery to France takes 4 days.",
        ),
        (
            "The basic plan has 5 users.",
            "The basic plan has 3 users. The team plan has 9 users.",
            "The basic plan has 3 users.",
        ),
        # What is said of a subject is no subject,
        ("It opened in London in 1889.", "It opened in Paris in 1889.", "It opened in Paris in 1889."),
        ("The shop is in Leeds.", "The shop is in York.", "The shop is in York."),
        # who did something is what is corrected,
        ("Bob Ross sang the old song.", "Ann Lee sang the old song.", "Ann Lee sang the old song."),
        # and a name in other words is the same.
        ("Bob Ross sang for 5 years.", "Robert Ross sang for 4 years.", "Bob Ross sang for 4 years."),
    ],
)
def test_what_is_said_of_it_is(response: str, knowledge: str, expected: str) -> None:
    with make_engine(nli=entail_by_sentence) as engine:
        correction = Corrector(engine).correct(response, knowledge, metrics=METRICS)
    assert correction.response == expected


@pytest.mark.parametrize(
    ("knowledge", "history", "expected"),
    [
        ("Ann Lee sang the old song.", [], False),
        ("Ann Lee sang the old song. Bob Ross paints.", [], True),
        ("Ann Lee sang the old song.", ["What did Bob Ross sing?", "A song.", "Which?"], True),
    ],
)
def test_a_name_is_kept_where_the_knowledge_or_the_dialogue_has_it(
    knowledge: str, history: list[str], expected: bool
) -> None:
    response = "Bob Ross sang the old song."
    change = find_subject_change(response, 0, len("Bob Ross"), "Ann Lee")
    assert change is not None
    assert exchanges_subject(change, Kept(response, [knowledge], history)) is expected


def test_an_amount_is_no_subject() -> None:
    assert find_subject_change("Five users have the plan.", 0, 4, "Six") is None
