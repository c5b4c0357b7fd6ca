"""Inference pairs in the exact form that Q² asks, made from SQuAD: one question with two answers.

Q² compares ``{question} {knowledge answer}.`` with ``{question} {response span}.``. An answer entails itself with
another article or a longer or shorter boundary; another answer of the same kind contradicts it.
"""

from __future__ import annotations

import random
import re

from ..common.corpus import Squad

_ARTICLE = re.compile(r"^(the|a|an) ", re.IGNORECASE)


class AnswerPairs:
    """Draws pairs from SQuAD: one question with two answers, and whether the first entails the second."""

    def __init__(self, squad: Squad) -> None:
        self._questions = squad.questions
        self._titles = squad.titles
        self._by_kind: dict[tuple[str, str], list[str]] = {}
        for question in squad.questions:
            key = (squad.titles[question.paragraph], answer_kind(question.answer))
            self._by_kind.setdefault(key, []).append(question.answer)

    def draw(self, rng: random.Random) -> tuple[str, str, str]:
        """Draw a premise, a hypothesis and its label."""
        question = rng.choice(self._questions)
        answer = question.answer
        if rng.random() < 0.5:
            other, label = reword_answer(answer, rng), "entailment"
        else:
            wrong_answers = self._by_kind[self._titles[question.paragraph], answer_kind(answer)]
            other, label = rng.choice(wrong_answers), "contradiction"
            if _share_words(answer, other):
                other, label = reword_answer(answer, rng), "entailment"
        first, second = (answer, other) if rng.random() < 0.5 else (other, answer)
        text = question.text.lower() if rng.random() < 0.5 else question.text
        return f"{text} {first}.", f"{text} {second}.", label


def answer_kind(answer: str) -> str:
    """A coarse answer type, so that a wrong answer of the same type fits the question."""
    if any(c.isdigit() for c in answer):
        return "number"
    return "name" if answer[:1].isupper() else "phrase"


def reword_answer(answer: str, rng: random.Random) -> str:
    """The answer as a response might phrase it: article added or dropped, another case, or unchanged."""
    bare = _ARTICLE.sub("", answer)
    return rng.choice((answer, bare, f"the {bare}", answer.lower(), bare.lower()))


def _share_words(a: str, b: str) -> bool:
    first, second = set(a.lower().split()), set(b.lower().split())
    return bool(first & second)
