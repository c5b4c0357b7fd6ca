"""The words that spaCy has met are kept from text to text, and forgotten in the end."""

from __future__ import annotations

import pytest
import spacy

from groundwire.runtime.texts import linear_tokenizer
from groundwire.runtime.texts.linear_tokenizer import LongZone


def test_words_are_kept_over_texts_and_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tokenizer, "ZONE_CHARACTERS", 1_000)
    nlp = spacy.blank("en")
    zone = LongZone(nlp.vocab)
    before = len(nlp.vocab.strings)
    most = 0
    for number in range(1_000):
        text = f"Word{number} and word{number} again"
        with zone.read(len(text)):
            assert [token.text for token in nlp.tokenizer(text)] == text.split()
            if number:
                assert ("again" in nlp.vocab.strings) is True
        most = max(most, len(nlp.vocab.strings) - before)
    assert 50 < most < 300


def test_an_error_inside_leaves_the_zone_usable() -> None:
    nlp = spacy.blank("en")
    zone = LongZone(nlp.vocab)
    with pytest.raises(ValueError, match="of the caller"), zone.read(10):
        raise ValueError("of the caller")
    with zone.read(10):
        assert len(nlp("two words")) == 2
