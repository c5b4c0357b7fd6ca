"""Answers compared as Q² compares them."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.engine.text.normalization import answer_f1, fold_accents, match_answers, normalize_answer
from tests.reference import text_match as reference

# Any str, lone surrogates included, and many characters that the definition treats specially.
ANY = st.text(st.characters(categories=None, exclude_categories=()))
PLAIN = ["a", "an", "the", "in", "our", "The", "inn", "x", "7", " ", "\t", "\x1c", "\xa0", "\u2003", ".", "-", "_", "'"]
ODD = ["\u0301", "\u0130", "\u03a3", "\ufb01", "\u00b2", "\u4e00", "\U0001f600", "\ud800", "\udfff"]
ACCENTED = ["Haṭha", "hatha", "the", " ", "é", "e"]
WORDS = st.lists(st.sampled_from(["x", "y", "z", "the", "X.", "\u00e9", "\ud800"]), max_size=12).map(" ".join)
TEXTS = st.one_of(st.lists(st.sampled_from([*PLAIN, *ODD, *ACCENTED])).map("".join), WORDS, ANY)


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


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("", ""),
        ("The U.S. in 1999", "us 1999"),
        ("  a  an\tthe\nin our ", ""),
        # Punctuation is deleted first: that can make a dropped word, or hide one.
        ("th-e end", "end"),
        ("in-our house", "inour house"),
        ("an_a", "ana"),
        ("Theodore's inn", "theodores inn"),
        # A combining mark is not a word character, so it ends the word before it.
        ("a\u0301b", "\u0301b"),
        ("ΣΟΦΟΣ", "σοφο\u03c2"),
        ("İn", "i̇n"),
        ("¿qué?", "¿qué"),
        ("x\x1c\u2003y\xa0", "x y"),
        ("\ud800 A \udfff", "\ud800 \udfff"),
    ],
)
def test_an_answer_is_normalized(text: str, normalized: str) -> None:
    assert reference.clean(text) == normalized
    assert normalize_answer(text) == normalized


@pytest.mark.parametrize(
    ("a", "b", "same"), [("The End.", "end", True), ("", "the", True), ("end", "ends", False), ("x y", "xy", False)]
)
def test_answers_match_once_normalized(a: str, b: str, same: bool) -> None:
    assert match_answers(a, b) is same


@pytest.mark.parametrize(
    ("answer", "expected", "f1"),
    [
        ("Danube", "the Danube", 1.0),
        ("the Danube river", "Danube", 2 / 3),
        ("x x y", "x z", 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),
        ("x x", "x x x", 0.8),
        ("Rhine", "Danube", 0.0),
        ("", "Danube", 0.0),
        ("Danube", "...", 0.0),
        ("", "", 0.0),
        ("the", "a", 0.0),
    ],
)
def test_the_f1_of_two_answers(answer: str, expected: str, f1: float) -> None:
    assert answer_f1(answer, expected) == f1


@given(TEXTS)
@example("\x00the\x00")
def test_an_answer_is_normalized_as_by_the_reference_implementation(text: str) -> None:
    assert normalize_answer(text) == reference.clean(text)


@pytest.mark.no_cover
def test_every_code_point_is_normalized_as_by_the_reference_implementation() -> None:
    for first in range(0, sys.maxunicode + 1, 1 << 14):
        text = "".join(f"{chr(c)}an{chr(c)} x" for c in range(first, min(first + (1 << 14), sys.maxunicode + 1)))
        # A bool, because pytest's diff of texts this long never ends.
        equal = normalize_answer(text) == reference.clean(text)
        assert equal, f"differs between U+{first:04X} and U+{first + (1 << 14) - 1:04X}"


@given(TEXTS, TEXTS, st.booleans())
def test_answers_are_compared_as_by_the_reference_implementation(answer: str, expected: str, folded: bool) -> None:
    first, second = (reference.fold_accents(text) if folded else text for text in (answer, expected))
    assert match_answers(answer, expected, folded) == reference.exact_match(first, second)
    assert answer_f1(answer, expected, folded) == reference.token_f1(first, second)
