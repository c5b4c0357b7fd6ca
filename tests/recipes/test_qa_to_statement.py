"""Questions and answers as statements."""

from __future__ import annotations

import random

import pytest

from groundwire.recipes.synthesis.qa_to_statement import declare, find_preposition, make_statement


@pytest.mark.parametrize(
    ("question", "answer", "before", "known", "expected"),
    [
        ("Who founded the band", "Ed", "", "", "Ed founded the band"),
        ("Who was the first president", "Naguib", "", "", "Naguib was the first president"),
        ("Who was the album produced by", "Jay Z", "by", "", "the album was produced by Jay Z"),
        ("Who were bishops appointed by", "by the king", "", "", "bishops were appointed by the king"),
        ("What are the two systems called", "A and B", "", "", "the two systems are called A and B"),
        ("What has caused the war", "greed", "", "", "greed has caused the war"),
        ("What book did his parents read every day", "Emma", "", "", "his parents read Emma every day"),
        ("Who did Nasser give asylum to", "leaders", "", "", "Nasser gave asylum to leaders"),
        ("Which college was founded in 1876", "City", "", "", "City was founded in 1876"),
        ("What country has the largest lake", "Chad", "", "", "Chad has the largest lake"),
        ("When was Elvis born", "1935", "in", "", "Elvis was born in 1935"),
        ("When was Elvis born", "in 1935", "in", "", "Elvis was born in 1935"),
        ("Where is Cyprus located", "Asia", "in", "", "Cyprus is located in Asia"),
        ("Where is the farm", "Ohio", "", "", "the farm is Ohio"),
        ("When did the oil crisis begin", "October 1973", "in", "", "the oil crisis began in October 1973"),
        ("When did the company adopt it first", "1990", "in", "adopted", "the company adopted it first in 1990"),
        ("What year did Chopin arrive", "1849", "", "", "Chopin arrived in 1849"),
        ("On what date was the treaty signed", "June 1", "", "", "the treaty was signed on June 1"),
        ("How many states does it have", "50", "", "", "it has 50 states"),
        ("How many people were killed", "12", "", "", "12 people were killed"),
        ("How many phases were there to it", "two phases", "", "", "there were two phases to it"),
        ("The river runs through what city", "Rome", "", "", "The river runs through Rome"),
        # Where a rule would have to guess, none applies.
        ("When did the company adopt it first", "1990", "in", "", None),
        ("Why is it so", "luck", "", "", None),
        ("How do they vote", "twice", "", "", None),
        ("What could a magistrate expect", "a toga", "", "", None),
        ("Who", "Ed", "", "", None),
    ],
)
def test_declare(question: str, answer: str, before: str, known: str, expected: str | None) -> None:
    assert declare(question, answer, before, set(known.split())) == expected


@pytest.mark.parametrize(
    ("context", "answer", "expected"),
    [
        ("It began in October 1973.", "October 1973", "in"),
        ("It was led by the king.", "king", "by"),
        ("Within 1973 it began.", "1973", ""),
        ("In 1973 it began.", "1973", "in"),
        ("1973 was hot.", "1973", ""),
    ],
)
def test_the_preposition_comes_from_the_text(context: str, answer: str, expected: str) -> None:
    assert find_preposition(context, context.index(answer)) == expected


def test_another_answer_gets_the_same_words() -> None:
    context = "The album was released on 3 May 2003 in Ohio."
    for seed in range(40):
        right, wrong = (
            make_statement("When was the album released?", answer, context, context.index("3 May"), random.Random(seed))
            for answer in ("3 May 2003", "July 1999")
        )
        assert right.replace("3 May 2003", "July 1999") == wrong
        assert right in (
            "The album was released on 3 May 2003.",
            "When was the album released? 3 May 2003.",
            "When was the album released? it was 3 May 2003.",
            "When was the album released? i think 3 May 2003.",
        )


def test_a_question_without_a_rule_is_asked_and_answered() -> None:
    assert make_statement("Why is it so?", "luck", "It is so by luck.", 12, random.Random(0)).startswith(
        "Why is it so? "
    )
