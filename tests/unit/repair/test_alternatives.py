"""Other values of the knowledge in the place of a doubted one: which are tried, and which of them is taken."""

from __future__ import annotations

import pytest

from groundwire.engine import Score, UnsupportedSpan, Verdict
from groundwire.engine.schema.results import SentenceVerdict, Timings
from groundwire.engine.values import Measure
from groundwire.metrics import Sentence
from groundwire.repair.correction.alternatives import (
    OtherValue,
    ScoredAlternative,
    choose_alternatives,
    list_alternatives,
)
from groundwire.repair.correction.drafts import Draft, DraftEdit
from groundwire.repair.correction.keeping import Kept
from groundwire.repair.correction.question import UserQuestion
from groundwire.repair.correction.sources import Sources

PASSES = "A day pass is €61 for adults and €44 for seniors from 65. Lunch is €14. The lift opens at 8:30."


def list_texts(response: str, knowledge: str, doubted: str, question: str = "") -> list[str]:
    """The alternatives for the words that are doubted."""
    start = response.index(doubted)
    span = UnsupportedSpan(doubted, start, start + len(doubted), "detected", "", "reader")
    score = make_score(0.1, unsupported=(span,))
    sentence, history = Sentence(response, 0, len(response)), [question] if question else []
    found = list_alternatives(
        response,
        sentence,
        score,
        Sources([knowledge]),
        Kept(response, [knowledge], history),
        UserQuestion(response, history),
    )
    return [item.draft.response for items in found for item in items]


def make_score(probability: float | None, unsupported: tuple[UnsupportedSpan, ...] = ()) -> Score:
    label = "unknown" if probability is None else "consistent" if probability >= 0.5 else "inconsistent"
    verdict = Verdict(label, probability)
    return Score(
        status="scored",
        value=probability,
        verdict=verdict,
        metrics={},
        unsupported=unsupported,
        coverage=None,
        timings=Timings(0.0, {}, 0.0),
        signature="",
        sentences=(SentenceVerdict("x" * 40, 0, 40, verdict, unsupported),),
    )


@pytest.mark.parametrize(
    ("response", "doubted", "expected"),
    [
        # Those of its kind, in its form, the one with the most words around it first.
        (
            "Seniors pay €61.00 for a day pass.",
            "€61.00",
            ["Seniors pay €44.00 for a day pass.", "Seniors pay €14.00 for a day pass."],
        ),
        ("The lift opens at half past nine.", "half past nine", ["The lift opens at half past eight."]),
        # None for code, a name, or a value that depends on when it is said.
        ("The price is `€61`.", "€61", []),
        ("Lunch is with Ann.", "Ann", []),
        ("Lunch is today.", "today", []),
    ],
)
def test_values_of_the_kind_are_tried(response: str, doubted: str, expected: list[str]) -> None:
    assert list_texts(response, PASSES, doubted) == expected


def test_a_value_that_follows_and_the_amount_that_was_asked_about_stay() -> None:
    response = "Seniors pay €88 for a day pass."
    assert list_texts(response, PASSES, "€88")
    assert list_texts(response, PASSES, "€88", "Is it €88 for seniors?") == []
    assert list_texts(response, PASSES, "€88", "How much for two seniors?") == []
    assert list_texts("Two day passes for seniors are €88.", PASSES, "€88") == []


def test_a_number_takes_the_unit_of_the_response_where_its_sentence_has_none() -> None:
    response = "Unsoaked beans take 12 minutes."
    assert list_texts(response, "Times: soaked 12, unsoaked 35.", "12 minutes") == ["Unsoaked beans take 35 minutes."]
    assert list_texts("Donors weigh 55 kg.", "Donors are 17 and weigh 50 kg.", "55 kg") == ["Donors weigh 50 kg."]
    assert list_texts("It was there for four days.", "It was there, and 5.40 is the fare.", "four days") == []


def make_alternative(
    new: str, probability: float | None, agreement: float, rivalry: float = -1.0, amount: float = 0.0
) -> ScoredAlternative:
    edit = DraftEdit(0, 2, 0, len(new), "replace", "value", None)
    draft = Draft(new + "x" * 30, (edit,), Sentence("x" * 40, 0, 40), 0.5)
    content = Measure("count", amount or float(new), 1.0)
    return ScoredAlternative(OtherValue(draft, "xx", new, content, agreement, rivalry), make_score(probability))


@pytest.mark.parametrize(
    ("best", "other", "chosen"),
    [
        ((0.7, 2.0), (0.3, 1.0), True),
        # It has to be probable, in the knowledge beside words of the response, and more so than every other.
        ((0.5, 3.0), (0.1, 0.0), False),
        ((0.7, 0.5), (0.3, 0.0), False),
        ((0.7, 2.0), (0.68, 2.0), False),
        ((0.58, 1.0), (0.55, 1.0), False),
        ((0.58, 1.0), (0.2, 1.0), True),
        ((None, 3.0), (None, 0.0), False),
    ],
)
def test_the_one_that_is_plainly_the_most_probable_is_taken(
    best: tuple[float | None, float], other: tuple[float | None, float], chosen: bool
) -> None:
    items = [make_alternative("17", *other), make_alternative("18", *best)]
    results = choose_alternatives(make_score(0.1), items)
    assert [item.draft.response[:2] for item in results] == (["18"] if chosen else [])


def test_the_doubted_value_stays_where_the_knowledge_has_it_beside_as_many_words() -> None:
    before = make_score(0.1)
    assert choose_alternatives(before, [make_alternative("18", 0.9, 2.0, rivalry=1.5)])
    assert not choose_alternatives(before, [make_alternative("18", 0.9, 2.0, rivalry=2.0)])


def test_the_same_value_in_other_words_is_no_rival() -> None:
    items = [make_alternative("18", 0.9, 2.0), make_alternative("19", 0.9, 1.9, amount=18.0)]
    assert choose_alternatives(make_score(0.1), items)
    assert not choose_alternatives(make_score(0.8), items)  # no gain
