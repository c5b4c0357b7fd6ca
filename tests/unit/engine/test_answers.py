"""Answers compared as Q² compares them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.text.answers import answer_f1, fold_accents, match_answers
from tests.reference import text_match as reference

TEXTS = st.one_of(
    st.lists(st.sampled_from(["Haṭha", "hatha", "the", " ", "é", "e", "\u0301", "ﬁ", "²", "-"])).map("".join),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("haṭha", "hatha"),
        ("Amélie", "Amelie"),
        ("Ame\u0301lie", "Amelie"),
        ("São Paulo – 5 °C", "Sao Paulo – 5 °C"),
        ("Łódź", "Łodz"),
        ("Straße", "Straße"),
        ("\u0301", ""),
        ("plain text", "plain text"),
    ],
)
def test_accents_are_folded(text: str, folded: str) -> None:
    assert fold_accents(text) == folded


def test_answers_match_without_their_accents_unless_these_count() -> None:
    assert match_answers("the Haṭha yoga", "hatha yoga")
    assert not match_answers("the Haṭha yoga", "hatha yoga", folded=False)
    assert answer_f1("Amélie", "Amelie") == 1.0
    assert answer_f1("Amélie", "Amelie", folded=False) == 0.0


@given(TEXTS, TEXTS, st.booleans())
def test_answers_are_compared_as_by_the_reference_implementation(answer: str, expected: str, folded: bool) -> None:
    first, second = (reference.fold_accents(text) if folded else text for text in (answer, expected))
    assert match_answers(answer, expected, folded) == reference.exact_match(first, second)
    assert answer_f1(answer, expected, folded) == pytest.approx(reference.token_f1(first, second))
