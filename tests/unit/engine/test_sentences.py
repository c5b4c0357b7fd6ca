"""Sentence boundaries."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from groundwire.engine.text import words as words_module
from groundwire.engine.text.sentences import read_sentences, sentences
from groundwire.engine.text.words import read_words
from groundwire.runtime.linear_tokenizer import LONGEST_CHUNK, LONGEST_PART, LinearTokenizer
from tests.support.texts import TEXT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one sentence", ["one sentence"]),
        ("me too! it’s a company.", ["me too!", "it’s a company."]),
        ("Dr. Smith came in 1990. He liked it...", ["Dr. Smith came in 1990.", "He liked it..."]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("  spaced .  out .  ", ["spaced .", "out ."]),
        ("well. \n (", ["well."]),
        ("🙂", ["🙂"]),
        ("3.5 km, e.g. here", ["3.5 km, e.g. here"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in sentences(text)] == expected


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_they_are_ordered_disjoint_ranges_that_keep_every_word(text: str) -> None:
    split = sentences(text)
    assert split
    assert all(text[part.start : part.end] == part.text and part.text.strip() == part.text for part in split)
    assert all(a.end <= b.start for a, b in itertools.pairwise(split))
    inside = {i for part in split for i in range(part.start, part.end)}
    assert {i for i, character in enumerate(text) if character.isalnum()} <= inside


def test_runs_without_spaces_are_read_in_pieces() -> None:
    assert [len(word.text) for word in read_words("a" * 200)] == [LONGEST_CHUNK] * 3 + [200 - 3 * LONGEST_CHUNK]
    assert [part.text for part in sentences("(" * 200 + "Yes! No.")] == ["(" * 200 + "Yes!", "No."]


def test_threads_may_share_it() -> None:
    text = "This is one. This is two! Is this three?"
    expected, seen = sentences(text), []
    threads = [threading.Thread(target=lambda: seen.extend(sentences(text) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 200
    assert set(seen) == {expected}


def _split_by_pipeline(text: str) -> list[tuple[int, int]]:
    """The sentences of spaCy's sentencizer, line by line, without spaces at their ends."""
    nlp = spacy.blank("en")
    nlp.tokenizer = LinearTokenizer(nlp.tokenizer)
    nlp.add_pipe("sentencizer")
    out, offset = [], 0
    for line in text.splitlines(keepends=True):
        for span in nlp(line).sents:
            words = span.text.strip()
            if any(map(str.isalnum, words)):
                start = offset + span.start_char + span.text.index(words)
                out.append((start, start + len(words)))
        offset += len(line)
    return out


def test_sentences_are_those_of_the_sentencizer() -> None:
    unusual = ' ... ! " ( ? ) 。 next one .\t. x.y ?! :) he said "no." (Yes.) then'
    for text in (TEXT, TEXT.replace("\n", " "), (TEXT + unusual).replace("\n", " ") * 10):
        assert [(part.start, part.end) for part in sentences(text)] == _split_by_pipeline(text)


@given(st.text(st.sampled_from("ab 1.!?…。\"'()\t-"), min_size=1).filter(lambda text: any(map(str.isalnum, text))))
def test_sentences_of_any_text_are_those_of_the_sentencizer(text: str) -> None:
    assert [(part.start, part.end) for part in sentences(text)] == _split_by_pipeline(text)


@pytest.mark.parametrize("read", [read_sentences, read_words])
def test_a_long_text_is_read_as_far_as_it_is_asked_for(
    read: Callable[[str], Iterator[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []
    _, tokenizer = words_module._tokenizer()
    original = tokenizer.read

    def count(part: str) -> Doc:
        assert words_module._lock.locked()
        lengths.append(len(part))
        return original(part)

    monkeypatch.setattr(tokenizer, "read", count)
    reading = read("This is one. " * 100_000)
    for _ in range(100):
        next(reading)
        assert not words_module._lock.locked()
    assert sum(lengths) <= 2 * LONGEST_PART
