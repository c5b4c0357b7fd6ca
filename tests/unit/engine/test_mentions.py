"""Mentions of a response: those of the reference, in time linear in words, tokens and links."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.metrics.mentions import find_all_mentions, find_mentions, max_probabilities
from groundwire.engine.schema.explanations import FlaggedToken
from groundwire.engine.text.words import SHORT, words
from groundwire.repair.kg.records import Linked
from groundwire.runtime.calls import TextSpan
from tests.reference import mentions as reference
from tests.support.work import CountedText, count_steps

PIECES = [
    "Bob",
    "Ross",
    "of",
    "The",
    "the",
    "joy",
    "'s",
    "’s",
    " ",
    " ",
    " ",
    ". ",
    ": ",
    "…",
    "\n",
    ", ",
    "-",
    "“",
    "1983",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def draw_ranges(data: st.DataObject, text: str, size: int) -> list[tuple[int, int]]:
    """Disjoint ranges of the text that are not empty, in order."""
    offsets = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=size)))
    return [pair for pair in pairwise(offsets) if data.draw(st.booleans())]


def draw_tokens(data: st.DataObject, text: str) -> list[FlaggedToken]:
    offset, probability = st.integers(0, len(text)), st.sampled_from([0.0, 0.2, 0.3, 0.6, 0.9])
    ranges = data.draw(st.lists(st.tuples(offset, st.integers(0, 4)), max_size=20))
    return [
        FlaggedToken(start, min(start + size, len(text)), data.draw(probability), data.draw(st.booleans()))
        for start, size in ranges
    ]


@given(TEXTS, st.data())
def test_mentions_are_those_of_the_reference(text: str, data: st.DataObject) -> None:
    tokens = draw_tokens(data, text)
    links = [Linked(*bounds, "entity", "exact") for bounds in draw_ranges(data, text, 6)]
    links = data.draw(st.permutations(links))
    flagged = find_mentions(text, tokens, 0.5, links)
    assert flagged == reference.find_mentions(text, tokens, 0.5, links)
    starts = st.integers(0, max(0, len(text) - 1))
    spans = [
        TextSpan("", start, min(len(text), start + size), "")
        for start, size in data.draw(st.lists(st.tuples(starts, st.integers(1, 9)), max_size=5))
        if text
    ]
    assert find_all_mentions(text, tokens, flagged, links, spans) == reference.find_all_mentions(
        text, tokens, flagged, links, spans
    )


@given(TEXTS, st.data())
def test_highest_probabilities_are_those_of_the_reference(text: str, data: st.DataObject) -> None:
    tokens, bounds = draw_tokens(data, text), draw_ranges(data, text, 6)
    assert max_probabilities(tokens, bounds) == [reference.max_probability(tokens, *pair) for pair in bounds]


def make_case(names: int) -> tuple[str, list[FlaggedToken], list[Linked], list[TextSpan]]:
    """A response of many names: every third is flagged, every third linked, every third recognised."""
    sentence = "Well, Uncle Bob Ross met Ann. "
    text = sentence * names
    offsets = range(0, len(text), len(sentence))
    tokens = [
        FlaggedToken(offset + word.start(), offset + word.end(), 0.9 if word[0] == "Ross" and index % 3 == 0 else 0.1)
        for index, offset in enumerate(offsets)
        for word in re.finditer(r"\w+", sentence)
    ]
    ann = sentence.index("Ann")
    links = [Linked(offset + ann, offset + ann + 3, "Ann", "exact") for offset in offsets[1::3]]
    spans = [TextSpan("Ann", offset + ann, offset + ann + 3, "ent") for offset in offsets[2::3]]
    return text, tokens, links, spans


def test_the_work_grows_linearly_with_the_names() -> None:
    def count(names: int) -> int:
        text, tokens, links, spans = make_case(names)
        words(text)  # the tokenizer has tests of its own
        return count_steps(
            lambda: find_all_mentions(text, tokens, find_mentions(text, tokens, 0.5, links), links, spans)
        )

    assert count(60) < 2.5 * count(30)


def test_no_mention_reads_the_text_before_it_again() -> None:
    text, tokens, links, _ = make_case(60)
    assert len(text) <= SHORT
    words(text)  # spaCy takes no other type than str, and keeps the words of short texts
    counted = CountedText(text)
    mentions = find_mentions(counted, tokens, 0.5, links)
    assert [mention.text for mention in mentions] == ["Uncle Bob Ross"] * 20
    assert counted.copied < 2 * len(text)
