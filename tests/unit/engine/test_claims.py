"""What states something, and what is small talk, an opinion, a question or advice."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.statements import CLAIMS, Line, read_lines
from groundwire.engine.text.terms import _has_no_source, states_claim


@pytest.mark.parametrize("line", read_lines(), ids=lambda line: line.response)
def test_a_line_states_something_if_it_is_a_claim(line: Line) -> None:
    assert states_claim(line.response) == (line.kind in CLAIMS)


@pytest.mark.parametrize(
    ("sentence", "claims"),
    [
        ("i ' m not sure , but i do know that they ' ve been around since 1957 .", True),
        ("I'm glad that the network won an award for it.", True),
        ("I know that you are sad about it.", False),
        ("I lack the context needed to answer that.", False),
        ("The sources here do not let me say what a ticket costs.", False),
        ("I don't see any ticket price in the information I have.", False),
        ("The opening hours were not found, but it is closed on Sundays.", True),
        ("", False),
    ],
)
def test_a_clause_decides(sentence: str, claims: bool) -> None:
    assert states_claim(sentence) == claims


def test_a_long_clause_is_no_chat() -> None:
    assert states_claim("very nice " * 3_000)


SOURCE = r"\b(?:context|documents?|information|knowledge|materials?|passages?|sources?{})\b"
DENIAL = r"\bnot?\b|n't\b|\bnothing\b"
JOINED = re.compile(
    rf"{SOURCE.format('|texts?')}.*(?:{DENIAL})|(?:{DENIAL}|\black\w*\b).*{SOURCE.format('')}",
)
"""The same in one expression, which reads a text again after each "no"."""
WORDS = (
    "the sources",
    "texts",
    "lacks",
    "no",
    "it isn't",
    "nothing",
    "said",
    "\n",
    "not",
    "knowledge",
    "don't",
    "passage",
)


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join))
def test_what_a_source_does_not_say_is_in_one_line(text: str) -> None:
    assert any(map(_has_no_source, text.split("\n"))) == (JOINED.search(text) is not None)
