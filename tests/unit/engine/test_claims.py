"""What states something, and what is small talk, an opinion, a question or advice."""

from __future__ import annotations

import pytest

from bench.quality.statements import CLAIMS, Line, read_lines
from groundwire.engine.text.terms import states_claim


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
