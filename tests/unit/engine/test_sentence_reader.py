"""Sentences of a text that is still being written: never one that a continuation changes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.pipeline import Sentencizer

from groundwire.engine.text import words as words_module
from groundwire.engine.text.sentences import Sentence, SentenceReader, sentences
from groundwire.runtime.texts.linear_tokenizer import LONGEST_PART
from tests.support.streams import CUTS, TEXTS, cut


def read(pieces: list[str]) -> list[Sentence]:
    reader = SentenceReader()
    complete = [sentence for piece in pieces for sentence in reader.feed(piece)]
    assert reader.text == "".join(pieces)
    return complete


@given(TEXTS, CUTS)
def test_wherever_a_text_is_cut_its_sentences_are_those_of_the_whole(text: str, cuts: list[int]) -> None:
    """Character by character, so also for every beginning of the text: what is complete once stays so."""
    complete = read(list(text))
    assert tuple(complete) == sentences(text)[: len(complete)]
    assert len(complete) < len(sentences(text))
    assert read(cut(text, cuts)) == read([text]) == complete


@given(st.text(st.sampled_from("ab 1.!?…。\"'()\t-\n🙂H:;#|`*"), max_size=60))
def test_sentences_of_any_text_are_complete_only_when_nothing_can_change_them(text: str) -> None:
    complete = read(list(text))
    assert tuple(complete) == sentences(text)[: len(complete)]


@given(st.text(st.sampled_from("aA 12.[]-,") | st.sampled_from("aA 1.[]^【】†:L"), max_size=40))
def test_sentences_with_citations_are_complete_only_when_nothing_can_change_them(text: str) -> None:
    complete = read(list(text))
    assert tuple(complete) == sentences(text)[: len(complete)]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("It is so. [2", []),
        ("It is so. [2] Th", []),  # the whole word decides
        ("It is so. [2] Then i", ["It is so. [2]"]),
        ("It is so. [2] says s", ["It is so."]),
        ("It is so. I", ["It is so."]),  # the next sentence begins
        ("It is so. ", []),
        ("It is so.", []),
        ("It is so. D", []),  # ". D" may be a part of an exception: Ph.D.
        ("It is so. Do n", ["It is so."]),
        ("It is 3.", []),
        ("It is 3.5 metres. Th", ["It is 3.5 metres."]),
        ("It is by Dr. Dre", []),
        ("It takes 45 min. Then", []),  # after an abbreviation the whole word decides
        ("It takes 45 min. Then o", ["It takes 45 min."]),
        ("It takes 45 min. in total. Then o", ["It takes 45 min. in total."]),
        ("It opens on Sat. Nov. 4. Come i", ["It opens on Sat. Nov. 4."]),
        ('"It is so." (Really, y', ['"It is so." (']),  # closing and opening brackets are both with the sentence before
        ("It is so... Then", []),
        ("It is so!!! Then", ["It is so!!!"]),
        ("It is so. 🙂", []),  # it may be the only sentence
        ("It is so. 🙂 Y", ["It is so."]),
        ("It is so\n", []),
        ("It is so\nt", ["It is so"]),
        ("It is so.\r", []),
        ("它是。我们" + "好" * 70, ["它是。"]),
        ("Is it so?No", []),
        ("1. One\n2. Two\n3", ["1. One", "2. Two"]),
        ("1. On", []),
        ("1. One is. Two", ["1. One is."]),
        ("Our hours are:\n\n- Monday 9. Tu", ["Our hours are:\n\n- Monday 9."]),
        ("# What?\nIt is. We", ["# What?\nIt is."]),
        ("| a | b |\n|---|---|\n| 1. A | 2 |\n| 3", ["| a | b |\n|---|---|\n| 1. A | 2 |"]),
        ("```py\na = 1. Or\nb\n```\nSo it is. We", ["```py\na = 1. Or", "b", "So it is."]),
        ("So.\n```py. Is it. A", ["So."]),
        ("```\nThe shop is closed on all Sundays. Come", []),
        ("```\nThe shop is closed on all Sundays. Come\nb", ["```\nThe shop is closed on all Sundays.", "Come"]),
    ],
)
def test_how_far_a_sentence_is_ahead_of_the_text(text: str, complete: list[str]) -> None:
    assert [sentence.text for sentence in read(list(text))] == complete


def test_long_lines_without_a_place_to_cut_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """ ": ) : ) …" is one exception after another: nothing is settled, and nothing is read again and again."""
    text = "So. " + ": ) " * (LONGEST_PART // 3) + "It is long. " * (LONGEST_PART // 10) + "Now"
    looked_at: list[int] = []
    settle = words_module.settle_tokens

    def count(line: str, begin: int = 0) -> int:
        looked_at.append(len(line) - begin)
        return settle(line, begin)

    monkeypatch.setattr("groundwire.engine.text.sentences.settle_tokens", count)
    complete = read(list(text))
    assert tuple(complete) == sentences(text)[: len(complete)]
    assert len(sentences(text)) - len(complete) == 1
    assert sum(looked_at) < 20 * len(text)


def test_no_letter_or_digit_is_punctuation() -> None:
    """On this rests that a sentence is complete as soon as the first letter of the next one is there."""
    for code in range(0x110000):
        character = chr(code)
        if character.isalnum():
            assert unicodedata.category(character)[0] != "P", hex(code)
    assert not any(stop.isalnum() for stop in Sentencizer.default_punct_chars)
