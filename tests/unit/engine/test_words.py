"""Words and their offsets, on ordinary text and on every kind of character."""

from __future__ import annotations

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine
from groundwire.engine.text.sentences import sentences
from groundwire.engine.text.words import SHORT, _tokenizer, words
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.texts.linear_tokenizer import LONGEST_CHUNK
from tests.support.texts import TEXT, unlike_characters

CHARACTERS = unlike_characters()


def test_words_equal_those_of_spacy() -> None:
    nlp = spacy.blank("en")
    for text in [TEXT, *TEXT.splitlines()]:
        expected = [
            (token.text, token.idx, token.lower_, not token.is_stop and not token.is_punct)
            for token in nlp(text)
            if not token.is_space
        ]
        assert [(word.text, word.start, word.lower, word.content) for word in words(text)] == expected


@pytest.mark.parametrize("text", ["a" * 1000, "中" * 1000, "é" * SHORT * 2], ids=["ascii", "han", "long"])
def test_no_word_is_longer_than_a_piece(text: str) -> None:
    lengths = [len(word.text) for word in words(text)]
    assert sum(lengths) == len(text)
    assert max(lengths) <= LONGEST_CHUNK


@given(st.text())
def test_words_are_ordered_disjoint_ranges_of_all_but_spaces(text: str) -> None:
    covered = [False] * len(text)
    end = 0
    for word in words(text):
        assert end <= word.start < word.end
        assert text[word.start : word.end] == word.text
        end = word.end
        covered[word.start : word.end] = [True] * len(word.text)
    assert all(is_covered or character.isspace() for is_covered, character in zip(covered, text, strict=True))


@pytest.mark.parametrize("start", range(0, len(CHARACTERS), 2000))
def test_offsets_are_right_around_every_character(start: int) -> None:
    """Some become several characters in lower case or when normalised: İ is two, ﷺ is 18."""
    characters = CHARACTERS[start : start + 2000]
    text = "".join(f"Bob{character}Ross {character}. " for character in characters)
    found_words, found_sentences = words(text), sentences(text)
    assert all(text[word.start : word.end] == word.text and not word.text.isspace() for word in found_words)
    assert all(text[part.start : part.end] == part.text for part in found_sentences)
    assert len(found_words) <= len(text)
    assert max(len(word.lower) for word in found_words) <= 2 * LONGEST_CHUNK
    inside = {i for part in found_sentences for i in range(part.start, part.end)}
    assert {i for i, character in enumerate(text) if character.isalnum()} <= inside


def test_a_warm_engine_has_loaded_the_tokenizer() -> None:
    _tokenizer.cache_clear()
    with Engine(FakeRuntime({})) as engine:
        engine.warmup()
    assert _tokenizer.cache_info().currsize == 1
