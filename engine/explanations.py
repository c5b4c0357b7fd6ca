"""How a metric came to its value: one tagged record per metric, so that a JSON reader can tell them apart."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.runtime.calls import TextSpan

from .record import Record


class Comparison(Record, frozen=True):
    """One question of Q² and what came of it."""

    span: TextSpan
    question: str
    rank: int
    """Place in the generator's order, from 0."""
    kept: bool
    discarded: Literal["", "personal", "no_answer_in_response", "other_answer_in_response"] = ""
    """Why the question was not kept."""
    response_answer: str = ""
    """What the reader answers from the response."""
    knowledge_answer: str | None = None
    """What it answers from the knowledge; None when it finds no answer, or for discarded questions."""
    f1: float | None = None
    """Token F1 of the knowledge answer with the span."""
    nli: str | None = None
    """Label of ("question knowledge answer.", "question span."), when it was asked."""
    nli_probabilities: dict[str, float] | None = None
    value: float | None = None
    """The question's score, 0–1."""


class Q2Explanation(Record, frozen=True, tag="q2"):
    """What Q² saw: the spans it asked about, every question, and the fallback's label when no question was valid."""

    spans: tuple[TextSpan, ...]
    questions: tuple[Comparison, ...]
    fallback: str | None = None
    fallback_probabilities: dict[str, float] | None = None


Explanation: TypeAlias = Q2Explanation
