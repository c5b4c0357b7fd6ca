"""Sentence boundaries."""

from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.text.sentences import sentences


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
    found = sentences(text)
    assert found
    assert all(text[one.start : one.end] == one.text and one.text.strip() == one.text for one in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    inside = {i for one in found for i in range(one.start, one.end)}
    assert {i for i, character in enumerate(text) if character.isalnum()} <= inside


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
