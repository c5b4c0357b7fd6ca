"""Each character has one kind, and everything that reads texts agrees about it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from unicodedata import category, name

import pytest

from groundwire.engine.text.normalization import fold_word
from groundwire.engine.text.reading import count_pieces
from groundwire.engine.text.rendering import find_unread_numbers, render_text
from groundwire.engine.text.sentences import read_sentences
from groundwire.engine.values.knowledge import find_values
from groundwire.engine.values.tokens import tokenize
from groundwire.runtime.texts import characters
from groundwire.runtime.texts.characters import classify_character

ALIKE = (
    *("ANATOLIAN HIEROGLYPH", "BAMUM LETTER", "CJK ", "CUNEIFORM SIGN", "EGYPTIAN HIEROGLYPH", "ETHIOPIC SYLLABLE"),
    *("HANGUL ", "KHITAN ", "LINEAR ", "NUSHU ", "TANGUT ", "VAI SYLLABLE", "YI SYLLABLE"),
)
CONTEXTS = ("{}", "It is £9 {} a day.", "{} is by Anna {}, 5{}7 or x{}y.")
"""A character alone, as a word, and beside names, digits and letters."""


@cache
def list_characters() -> tuple[str, ...]:
    """All characters but ideographs and syllables, which share their properties with thousands of others."""
    return tuple(filter(_is_tried, map(chr, range(sys.maxunicode + 1))))


def _is_tried(character: str) -> bool:
    if category(character) in ("Cn", "Co", "Cs"):  # half of a pair (Cs) is no text
        return character in "\u0378\ue000"  # one each: not assigned, for private use
    return not name(character, "").startswith(ALIKE)


def test_functions_and_expressions_agree_about_the_kind_of_each_character() -> None:
    digit, letter, space = (re.compile(expression) for expression in (r"\d", r"[^\W\d_]", r"\s"))
    for character in (*list_characters(), *"中三한"):
        kind = classify_character(character)
        assert (kind == "digit") == characters.is_digits(character) == bool(digit.match(character)), character
        assert (kind in ("letter", "numeral")) == bool(letter.match(character)), character
        assert (kind == "letter") == characters.is_letters(character), character
        assert (kind == "space") == characters.is_space(character) == bool(space.match(character)), character
        in_words = kind in ("digit", "letter", "numeral")
        assert in_words == characters.is_alphanumeric(character), character
        assert in_words or not characters.is_numeric(character), character
        assert kind not in ("digit", "numeral") or characters.is_numeric(character), character
        upper, lower = characters.starts_upper(character), characters.starts_lower(character)
        assert upper + lower <= (kind == "letter"), character
        if kind == "digit":
            assert 0 <= int(character) <= 9


def test_every_kind_has_characters() -> None:
    counts = Counter(map(classify_character, list_characters()))
    assert set(counts) == set(characters.CharacterKind.__args__)  # type: ignore[attr-defined]
    assert min(counts.values()) > 20


def list_texts(context: str) -> Iterator[str]:
    """The context with each character, eight in a text."""
    tried = list_characters()
    for start in range(0, len(tried), 8):
        yield "\n".join(context.replace("{}", character) for character in tried[start : start + 8])


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.no_cover
def test_tokens_are_of_one_kind_and_leave_nothing_out(context: str) -> None:
    for text in list_texts(context):
        tokens = tokenize(text)
        for token in tokens:
            kinds = set(map(classify_character, token.text))
            if "digit" in kinds:
                assert kinds == {"digit"} or set(token.text) & set(".,"), token.text
            elif kinds & {"letter", "numeral"}:
                assert kinds <= {"letter", "numeral", "mark"} or set(token.text) & set("'’"), token.text
            else:
                assert len(token.text) == 1, token.text
        assert "".join(token.text for token in tokens) == "".join(text.split())
        assert all(left.end <= right.start for left, right in pairwise(tokens))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.no_cover
def test_any_character_is_read(context: str) -> None:
    for text in list_texts(context):
        rendered = render_text(text)
        for value in find_values(tokenize(rendered.text)):
            start, end = rendered.locate(value.start, value.end)
            assert 0 <= start < end <= len(text)
        list(find_unread_numbers(rendered.text))


@pytest.mark.no_cover
def test_any_character_is_in_a_sentence_of_its_text() -> None:
    for text in list_texts(CONTEXTS[1]):
        sentences = list(read_sentences(text))
        assert all(text[sentence.start : sentence.end] == sentence.text for sentence in sentences)
        assert "".join("".join(sentence.text for sentence in sentences).split()) == "".join(text.split())


@pytest.mark.no_cover
def test_any_character_is_folded_once() -> None:
    for character in list_characters():
        assert fold_word(character) == fold_word(fold_word(character)), character
        assert count_pieces(character) == (classify_character(character) != "space"), character


@pytest.mark.parametrize("sign", ["🅿️", "Ⓜ", "🅰"])
def test_a_sign_like_a_letter_is_no_capital(sign: str) -> None:
    assert not characters.starts_upper(sign)
    assert not characters.starts_lower(sign)
