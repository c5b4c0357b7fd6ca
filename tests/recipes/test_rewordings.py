"""Claims in other words: each rewording, and what it leaves alone."""

from __future__ import annotations

import random

import pytest

from groundwire.recipes.synthesis.rewordings import (
    REWORDINGS,
    Rewording,
    RewordingContext,
    coarsen_date,
    reword,
    round_number,
    say_share,
    shorten_name,
    spell,
    spell_number,
    use_pronoun,
    use_synonym,
)
from groundwire.recipes.synthesis.typed_names import NameTypes

NAMES = NameTypes({"PERSON": ["Alexander Fleming", "Marie Curie"], "LOC": ["Paris"], "ORG": [], "MISC": []})
CONTEXT = RewordingContext("It is in Paris. It has four floors.", "Louvre (museum)", NAMES)


def list_results(rewording: Rewording, claim: str, context: RewordingContext = CONTEXT) -> set[str | None]:
    return {rewording(claim, context, random.Random(seed)) for seed in range(60)}


@pytest.mark.parametrize(
    ("rewording", "claim", "expected"),
    [
        (spell_number, "It has 24,000 seats.", {"It has twenty-four thousand seats."}),
        (spell_number, "It has three floors.", {"It has 3 floors."}),
        (spell_number, "Apollo 8 left in 1968.", {None}),
        (round_number, "It shows 150 paintings.", {None}),
        (say_share, "About 50 percent of it is water.", {"About half of it is water."}),
        (say_share, "It is 95% water.", {"It is 95 percent water.", "It is 95 per cent water."}),
        (say_share, "It is water.", {None}),
        (coarsen_date, "It opened in 1900.", {None}),
        (
            coarsen_date,
            "It opened in 1887.",
            {
                "It opened in the 1880s.",
                "It opened in the 19th century.",
                "It opened in the late 19th century.",
            },
        ),
        (
            coarsen_date,
            "On 20 July 1969 it landed.",
            {
                "In July 1969 it landed.",
                "In 1969 it landed.",
                "On July 20 it landed.",
                "On the 20th of July it landed.",
            },
        ),
        (shorten_name, "Alexander Fleming lived in Paris.", {"Fleming lived in Paris."}),
        (shorten_name, "He lived in Paris.", {None}),
        (use_pronoun, "The Louvre has four floors.", {"It has four floors."}),
        (use_pronoun, "Paris has a museum.", {None}),
        (
            use_synonym,
            "Constructed in Paris, it is famous.",
            {"Built in Paris, it is famous.", "Constructed in Paris, it is well-known."},
        ),
        (use_synonym, "The Film Club met.", {None}),
    ],
)
def test_a_rewording(rewording: Rewording, claim: str, expected: set[str | None]) -> None:
    assert list_results(rewording, claim) == expected


def test_rounded_numbers_say_in_which_direction() -> None:
    texts = list_results(round_number, "It shows 4,987 paintings.")
    assert {"It shows almost 5,000 paintings.", "It shows about 5,000 paintings."} <= texts
    assert not any("more than" in (text or "") for text in texts)
    assert "It shows more than 5,000 paintings." in list_results(round_number, "It shows 5,012 paintings.")


def test_a_pronoun_needs_a_knowledge_that_shows_which() -> None:
    both = RewordingContext("He built it. It is large.", "Louvre", NAMES)
    assert list_results(use_pronoun, "The Louvre has four floors.", both) == {None}


def test_two_rewordings_at_most_and_the_same_ones_again() -> None:
    claim = "Alexander Fleming started the famous museum in 1887 with 4,987 paintings."
    first, second = (reword(claim, CONTEXT, random.Random(3)) for _ in range(2))
    assert first == second != claim
    assert len(set(REWORDINGS)) == 7
    assert reword("Xyzzy.", CONTEXT, random.Random(1)) == "Xyzzy."


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zero"), (17, "seventeen"), (40, "forty"), (1_001, "one thousand and one"), (3_000_000, "three million")],
)
def test_numbers_in_words(number: int, words: str) -> None:
    assert spell(number) == words
