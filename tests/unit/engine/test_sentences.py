"""Sentence boundaries."""

from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.text.sentences import _pipeline, sentences
from groundwire.runtime.linear_tokenizer import LONGEST_CHUNK


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
    assert [len(token) for token in _pipeline().make_doc("a" * 200)] == [LONGEST_CHUNK] * 3 + [200 - 3 * LONGEST_CHUNK]
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
