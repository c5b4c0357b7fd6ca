"""Perturbations, which change what a text says, and chat style, which must not."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.recipes.synthesis import perturbations
from groundwire.recipes.synthesis.chat_style import ChatStyle, StyleChances


@given(st.from_regex(r"[1-9][0-9]{0,2}(,[0-9]{3}){0,2}(\.[0-9]{1,2})?", fullmatch=True), st.integers(0, 50))
def test_another_number_looks_like_the_first(number: str, seed: int) -> None:
    other = perturbations.vary_number(number, random.Random(seed))
    assert other != number
    assert re.sub(r"\d", "0", other) == re.sub(r"\d", "0", number)
    assert other[0] != "0"


@given(st.integers(1000, 2100), st.integers(0, 50))
def test_another_year_is_near(year: int, seed: int) -> None:
    assert 1 <= abs(int(perturbations.vary_number(str(year), random.Random(seed))) - year) <= 60


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("It opened in 1854.", r"It opened in 1[789]\d\d\."),
        ("It has 3,500 seats.", r"It has [1-9],\d{3} seats\."),
        ("It has 3.5 % of 12.", r"It has (?:[1-9]\.\d % of 12|3\.5 % of [1-9]\d)\."),
    ],
)
def test_other_number(text: str, pattern: str) -> None:
    for seed in range(30):
        made = perturbations.replace_number(text, random.Random(seed))
        assert made is not None
        assert made != text
        assert re.fullmatch(pattern, made)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the largest hall", {"the smallest hall"}),
        ("after it", {"before it"}),
        ("Before noon", {"After noon"}),
        ("a summer day", {"a winter day", "a spring day", "a autumn day"}),
        ("in may it may march", {None}),
        ("northerners, redwood", {None}),
    ],
)
def test_other_word(text: str, expected: set[str | None]) -> None:
    assert {perturbations.replace_word(text, random.Random(seed)) for seed in range(60)} == expected


def test_names_are_capitalised_words_inside_a_sentence() -> None:
    assert perturbations.find_names(
        "The band met John of Gaunt in New York, where I saw O'Brien. It rained in May."
    ) == [
        *("John of Gaunt", "New York", "O'Brien", "May"),
    ]


def test_a_name_is_replaced_by_one_that_shares_no_word_with_the_text() -> None:
    rivals = ["New Orleans", "Ohio", "Paris"]
    text = "He left New York for Paris."
    made = {perturbations.replace_name(text, rivals, random.Random(seed)) for seed in range(20)}
    assert made == {"He left Ohio for Paris.", "He left New York for Ohio."}
    assert perturbations.replace_name("he left", rivals, random.Random(0)) is None
    assert perturbations.replace_name(text, ["York"], random.Random(0)) is None
    assert perturbations.replace_text("a (b) a", "(b)", ["c"], random.Random(0)) == "a c a"
    assert perturbations.replace_text("a b", "", ["c"], random.Random(0)) is None


NEVER = dict.fromkeys(StyleChances.__dataclass_fields__, 0.0)


@pytest.mark.parametrize(
    ("chances", "text", "pattern"),
    [
        ({}, " It is so. ", r"It is so\."),
        ({"contract": 1}, "It is so, they are not.", r"it's so, they're not\."),
        ({"lengthen": 1}, "It's so, we don't.", r"it is so, we do not\."),
        ({"split": 1}, "It's so, we don’t.", r"It 's so, we do n't\."),
        ({"drop_stop": 1}, "It is so.", "It is so"),
        ({"drop_stop": 1}, "It is so!", "It is so!"),
        ({"acknowledge": 1}, "It is so.", r"[a-z' ]+[,!]? It is so\."),
        ({"open": 1}, "It is so.", r"[a-z':A ]+ It is so\."),
        ({"ask": 1}, "It is so.", r"(?:did you know|did you know that|have you heard that) It is so\?"),
        ({"ask": 1, "open": 1}, "Is it so?", r"Is it so\?"),
        ({"before": 1}, "It is so.", r"I like it\. It is so\."),
        ({"after": 1, "drop_stop": 1}, "It is so.", r"It is so\. I like it"),
    ],
)
def test_chat_style(chances: dict[str, float], text: str, pattern: str) -> None:
    style = ChatStyle(["I like it"], StyleChances(**(NEVER | chances)))
    for seed in range(20):
        assert re.fullmatch(pattern, style.style_response(text, random.Random(seed)))


def test_what_is_no_claim_is_not_reported() -> None:
    style = ChatStyle([], StyleChances(**(NEVER | {"open": 1.0})))
    assert style.style_sentence("Nice day.", random.Random(0), claim=False) == "Nice day."
    assert style.style_sentence("Nice day.", random.Random(0)).endswith(" Nice day.")
    assert style.style_sentence("Nice day.", random.Random(0)) != "Nice day."
