"""Sentence boundaries."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from functools import cache

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from groundwire.engine.text import words as words_module
from groundwire.engine.text.sentences import read_sentences, sentences
from groundwire.engine.text.words import read_words
from groundwire.runtime.texts.linear_tokenizer import LONGEST_CHUNK, LONGEST_PART, LinearTokenizer
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


@pytest.mark.parametrize(
    "text",
    [
        "It is open on Sat. from 10 to 5.",
        "We open at 6 on Mon. and close at 5.",
        "It is closed on Wed. 14 Jan. at noon.",
        "It opens on Sat. Nov. 4 and on Sun. December 5.",
        "OPEN SAT. 10–5",
        "It takes approx. 45 min. in total.",
        "It takes 2 hrs. 30 min. on foot.",
        "It is 12 in. wide and has 3 pkts. of seeds.",
        "See rule no. 4, Art. 6 and nos. 11 and 12.",
        "Call ext. 41 or tel. +44 20, room no. A4.",
        "It costs approx. £5.",
        "It costs 89 € incl. VAT.",
        "It (incl. the lid) needs a private firing; max. 2.5 cm thick.",
        "The water has min. -18 °C, max. (in summer) 20 °C.",
        "It is £5 p.p. at the bar and 3 % p.a., paid monthly.",
        "Menu Costa, €31 p.p.: prawns.",
        "the u.s. broadcast of it was by apple inc. in may",
        "Bread, milk, etc. are sold here, as Lee et al. (2020) found.",
        "Alba GmbH. & Co. KG is the seller, Alba GmbH. is not.",
        "The CEO of Acme Inc. Ann Lee is at Apple Inc. headquarters.",
        "We send it with Post Ltd., a firm of ours, at 5 p.m. (sharp).",
        "She met Dr. The, e.g. The Doctor, on Mt. The.",
        "In the U.S. Congress they meet at 9 a.m. Monday to Friday.",
    ],
)
def test_the_full_stop_of_an_abbreviation_is_no_end(text: str) -> None:
    assert [sentence.text for sentence in sentences(text)] == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It moved that year. [2] The bar is new.", ["It moved that year. [2]", "The bar is new."]),
        ("It closed! [1][2] It reopened.", ["It closed! [1][2]", "It reopened."]),
        ("It closed. [1, 3–5] It reopened. [4]", ["It closed. [1, 3–5]", "It reopened. [4]"]),
        ("It lends works. [1] says so.", ["It lends works.", "[1] says so."]),
        ("It moved. [a] The bar is new.", ["It moved. [a]", "The bar is new."]),
        ("It moved. [^12][^3] The bar is new.", ["It moved. [^12][^3]", "The bar is new."]),
        ("It moved. 【1†source】 The bar is new.", ["It moved. 【1†source】", "The bar is new."]),
        ("It moved.【4:0†source】 The bar is new.", ["It moved.【4:0†source】", "The bar is new."]),
        ("It moved. 【4:0†L5-L7】 The bar is new.", ["It moved. 【4:0†L5-L7】", "The bar is new."]),
        ("It lends works. [a] says so.", ["It lends works.", "[a] says so."]),
        ("He left. [a lot] More came.", ["He left. [", "a lot] More came."]),
        ("Is it so? [2 of them] It is.", ["Is it so? [", "2 of them] It is."]),
        ("It takes 45 min. Then open the lid.", ["It takes 45 min.", "Then open the lid."]),
        ("1. Spin for 1 min. 2. Wash it.", ["1. Spin for 1 min.", "2.", "Wash it."]),
        ("It lasts 700 km. €139 is the price.", ["It lasts 700 km.", "€139 is the price."]),
        ("It is open on Sat. The pool is not.", ["It is open on Sat.", "The pool is not."]),
        ("It is open Mon.-Fri. Come in!", ["It is open Mon.-Fri.", "Come in!"]),
        ("It is £5 p.p. Drinks are free.", ["It is £5 p.p.", "Drinks are free."]),
        ("It takes 5 min.! 10 are too many.", ["It takes 5 min.!", "10 are too many."]),
        ("honey is sweet. it keeps for years.", ["honey is sweet.", "it keeps for years."]),
        ("i watch it on tv. most shows are good.", ["i watch it on tv.", "most shows are good."]),
        ("cook it for 5 min. it is hot", ["cook it for 5 min.", "it is hot"]),
        ("i live in the u.k. it rains", ["i live in the u.k.", "it rains"]),
        ("my dog is called max. he is old", ["my dog is called max.", "he is old"]),
        ("due on the 15th. no arrears", ["due on the 15th.", "no arrears"]),
        ("is it so? no. it is not", ["is it so?", "no.", "it is not"]),
        ("Is it so? No. 20 minutes are enough.", ["Is it so?", "No.", "20 minutes are enough."]),
        ("It orbits the Sun. 99% of the mass is in it.", ["It orbits the Sun.", "99% of the mass is in it."]),
        ("It was in 300 BC. most fled.", ["It was in 300 BC.", "most fled."]),
        ("I have 2 tvs. both are old.", ["I have 2 tvs.", "both are old."]),
        ("the cat sat. it purred", ["the cat sat.", "it purred"]),
        ("I took the SAT. most do.", ["I took the SAT.", "most do."]),
        ("I love art. 5 years ago I did not.", ["I love art.", "5 years ago I did not."]),
        ("It is made by Alba GmbH. Prices include VAT.", ["It is made by Alba GmbH.", "Prices include VAT."]),
        ("It is by Acme Inc. The price is 5.", ["It is by Acme Inc.", "The price is 5."]),
        ("We close at 5 p.m. Please call.", ["We close at 5 p.m.", "Please call."]),
        ("It is sold in the U.S. It is not here.", ["It is sold in the U.S.", "It is not here."]),
        ("She has a Ph.D. Her book sells.", ["She has a Ph.D.", "Her book sells."]),
        ("Keep it below 25 °C. Do not freeze it.", ["Keep it below 25 °C.", "Do not freeze it."]),
        ("Is it so?\n**Answer: false**\n2. Is it?", ["Is it so?", "**Answer: false**", "2. Is it?"]),
    ],
)
def test_a_full_stop_that_ends_its_sentence(text: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in sentences(text)] == expected


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


ITEM_NUMBER = re.compile(r"^([ \t]*\d{1,3})\.(?=[ \t]+\S)")


@cache
def _make_pipeline() -> Language:
    nlp = spacy.blank("en")
    nlp.tokenizer = LinearTokenizer(nlp.tokenizer)
    nlp.add_pipe("sentencizer")
    return nlp


def _split_by_pipeline(text: str) -> list[tuple[int, int]]:
    """The sentences of spaCy's sentencizer, line by line, without spaces at their ends.

    The full stop of a list item's number, at which the sentencizer ends a sentence, is a comma to it.
    """
    nlp, out, offset = _make_pipeline(), [], 0
    for line in text.splitlines(keepends=True):
        for span in nlp(ITEM_NUMBER.sub(r"\1,", line)).sents:
            words = line[span.start_char : span.end_char].strip()
            if any(map(str.isalnum, words)):
                start = offset + span.start_char + line[span.start_char :].index(words)
                out.append((start, start + len(words)))
        offset += len(line)
    return out


def test_sentences_are_those_of_the_sentencizer() -> None:
    unusual = ' ... ! " ( ? ) 。 next one .\t. x.y ?! :) he said "no." (Yes.) then'
    for text in (TEXT, TEXT.replace("\n", " "), (TEXT + unusual).replace("\n", " ") * 10):
        assert [(part.start, part.end) for part in sentences(text)] == _split_by_pipeline(text)


@given(
    st.text(st.sampled_from("ab 1.!?…。\"'()\t-"), min_size=1)
    .filter(lambda text: any(map(str.isalnum, text)))
    .filter(lambda text: not re.search(r"[ab]\.[ab]\.", text))  # an abbreviation
)
@example("1. 1")
@example("1. 1. 1")
@example("1. - 1")
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
