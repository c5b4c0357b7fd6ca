"""False twins: what is edited, that the spans are what was edited, and negation by the paper's rules."""

from __future__ import annotations

import random
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.evaluate.twins.edits import ClaimEdit
from groundwire.evaluate.twins.negation import VERBS, edit_by_negation, find_negatable_verbs, negate, negate_at
from groundwire.evaluate.twins.twins import ABOUT, TwinKind, add_sentence, drop_condition, exchange_value, make_twins

KNOWLEDGE = (
    "The pool opens at 9:00 and closes at 17:00. A day ticket is £12, a season ticket £95. Ann Reed teaches beginners, "
    "Tom Hale the others. Children may swim only with an adult.",
)
OTHERS = ("Trains leave every hour from platform two, and the pool of drivers is small.", "Why not?")


def edit(kind: str, response: str, seed: int = 0) -> str | None:
    rng = random.Random(seed)
    made: ClaimEdit | None = {
        "value": lambda: exchange_value(response, KNOWLEDGE, rng, names=False),
        "name": lambda: exchange_value(response, KNOWLEDGE, rng, names=True),
        "condition": lambda: drop_condition(response, rng),
        "negation": lambda: edit_by_negation(response, rng),
        "sentence": lambda: add_sentence(response, KNOWLEDGE, OTHERS, rng),
    }[kind]()
    return made and made.apply(response)


@pytest.mark.parametrize(
    ("kind", "response", "twin"),
    [
        ("value", "It opens at 9:00.", "It opens at 17:00."),
        ("value", "A day ticket costs £12.", "A day ticket costs £95."),
        # What the knowledge does not support is no right value, and another kind is no rival.
        ("value", "It opens at 8:00.", None),
        ("value", "It has 3 pools.", None),
        # Both times are stated already: exchanged with each other they would be one text twice.
        ("value", "It is open from 9:00 to 17:00.", None),
        ("name", "Beginners swim with Ann Reed, so ask Ann Reed.", "Beginners swim with Tom Hale, so ask Tom Hale."),
        ("name", "Beginners swim on Monday.", None),
        ("condition", "Children may swim only with an adult.", "Children may swim with an adult."),
        ("condition", "You may swim if an adult is there, too.", "You may swim, too."),
        ("condition", "If an adult is there, children may swim.", "Children may swim."),
        ("condition", "Children swim before noon.", None),
        ("negation", "You can swim.", "You can not swim."),
        ("sentence", "It opens at 9:00.", f"It opens at 9:00. {OTHERS[0]}"),
        ("sentence", "It opens at 9:00 ", f"It opens at 9:00. {OTHERS[0]}"),
    ],
)
def test_one_thing_is_made_wrong(kind: str, response: str, twin: str | None) -> None:
    made = {edit(kind, response, seed) for seed in range(8)}
    assert twin in made
    assert made <= {twin, "You can't swim."}


def test_the_spans_are_what_was_changed() -> None:
    response = "Ann Reed is there at 9:00. Children can swim only with an adult."
    twins = make_twins(response, KNOWLEDGE, OTHERS)
    assert [twin.kind for twin in twins] == list(get_args(TwinKind)) == list(ABOUT)
    words = {twin.kind: [twin.response[start:end] for start, end in twin.spans] for twin in twins}
    assert words.pop("negation")[0] in ("is not", "isn't", "can not", "can't")
    assert words == {"value": ["17:00"], "name": ["Tom Hale"], "condition": ["with"], "sentence": [OTHERS[0]]}


def test_a_seed_gives_the_same_twins() -> None:
    response = "Ann Reed can swim, and she is there at 9:00 if it is dry."
    assert make_twins(response, KNOWLEDGE, OTHERS, 3) == make_twins(response, KNOWLEDGE, OTHERS, 3)
    assert len({tuple(make_twins(response, KNOWLEDGE, OTHERS, seed)) for seed in range(20)}) > 1


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_any_text_gives_other_texts(response: str, knowledge: str, other: str) -> None:
    for twin in make_twins(response, (knowledge,), (other,)):
        assert twin.response != response
        assert all(0 <= start < end <= len(twin.response) for start, end in twin.spans)


@pytest.mark.parametrize(
    ("text", "negated", "contracted"),
    [
        ("the restrictions were lifted", "the restrictions were not lifted", "the restrictions weren't lifted"),
        ("he can swim", "he can not swim", "he can't swim"),
        ("it will rain", "it will not rain", "it will not rain"),
        ("she may come", "she may not come", "she may not come"),
        ("they do", "they do not", "they don't"),
        # After another verb comes its participle.
        ("it could have been", "it could not have been", "it couldn't have been"),
        # Negations are taken out, however they are written.
        ("it isn't so", "it is so", "it is so"),
        ("it is n't so", "it is so", "it is so"),
        ("it isn’t so", "it is so", "it is so"),
        ("he can't swim", "he can swim", "he can swim"),
        ("he ca n't swim", "he can swim", "he can swim"),
        ("he cannot swim", "he can swim", "he can swim"),
        ("it was not so", "it was so", "it was so"),
        ("it could not have been", "it could have been", "it could have been"),
    ],
)
def test_negation(text: str, negated: str, contracted: str) -> None:
    (verb,) = find_negatable_verbs(text)
    assert (negate_at(text, verb, contracted=False), negate_at(text, verb, contracted=True)) == (negated, contracted)
    assert negate(text, random.Random(0)) in (negated, contracted)


@pytest.mark.parametrize(
    "text",
    [
        "I love it!",
        "there is no way",
        "Is it? Will Smith! May 1995",  # capitals: names and questions
        "it won't do well at island's isle"[:9],  # "wo" is none of the paper's verbs
        "he's here, they've gone, should've",
        "the can's lid",
    ],
)
def test_nothing_to_negate(text: str) -> None:
    assert negate(text, random.Random(0)) is None


WORDS = st.sampled_from(
    [*VERBS, "not", "n't", "no", "it", "island", "Is", "cannot", "isn't", "ca n't", "has-been", "'s", "."]
)


@given(st.lists(WORDS, max_size=12).map(" ".join), st.booleans())
def test_a_negation_taken_out_again_gives_the_text_back(text: str, contracted: bool) -> None:
    for verb in find_negatable_verbs(text):
        changed = negate_at(text, verb, contracted)
        assert changed != text
        if not verb.negated and not re.match(r"\s+(?:not|n't)", text[verb.end :]):
            (again,) = [other for other in find_negatable_verbs(changed) if other.start == verb.start]
            assert again.negated
            assert negate_at(changed, again, contracted) == text


@given(st.lists(WORDS, max_size=12).map(" ".join), st.integers(0, 99))
def test_negation_differs_and_needs_one_of_the_verbs(text: str, seed: int) -> None:
    changed = negate(text, random.Random(seed))
    if changed is not None:
        assert changed != text
        assert set(re.findall(r"[a-z]+", text)) & ({*VERBS} | {"cannot", "isn"})
