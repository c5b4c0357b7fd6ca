"""Finds whose a value is where a sentence has one for each of several: "adults pay £10 and children pay £6".

Clauses are parted by commas, "and" and the like between two values of a kind. What a clause is about is in its first
words; what follows the last value is said of all of them. Structure alone decides: a value is only contradicted where
the response has the first words of another clause, and no first word of the clause that has the value.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from .comparing import relate
from .owners import list_words
from .tokens import Token, Value

_SEPARATORS = frozenset({",", ";", "and", "but", "while", "whereas"})
_STRUCTURED = frozenset("{}|():")
"""Characters of rows and records, whose values belong to names and columns."""
_LONGEST = 100
"""Tokens of a sentence, at most."""
_HEAD = 2
"""Content words with which a clause says what it is about."""
_OPENING = 3
"""Content words of a response's sentence among which it says what it is about."""
_SHIFTED = frozenset({"after", "before"})
"""Words that say a value of something by another's: "an hour after the doors open"."""


class _Clause(NamedTuple):
    head: Set[str]
    words: Set[str]


def find_owned(
    value: Value, sentence: Sequence[Token], tokens: Sequence[Token], values: Sequence[Value], supporting: Value
) -> Value | None:
    """Return the value that a sentence of the knowledge has for what a response gives another clause's value.

    Args:
        value: A value of the response.
        sentence: The tokens of its sentence, without those of values.
        tokens: The tokens of the sentence of the knowledge.
        values: The values of that sentence of one kind, in order.
        supporting: The one that is equal to the response's.

    Returns:
        The value of the clause that the response is about; None where it is about the supporting value's, or structure
        does not say.
    """
    if len(values) < 2 or len(tokens) > _LONGEST or any(token.text in _STRUCTURED for token in tokens):
        return None
    if any(token.lower in _SHIFTED for token in sentence):
        return None
    clauses = _part(tokens, values)
    subject = list_words(sentence)
    opening = set(_list_in_order(sentence)[:_OPENING])
    holding = clauses[values.index(supporting)] if clauses else None
    if holding is None or not holding.head - subject or not subject <= _join(tokens, values):
        return None
    for other, clause in zip(values, clauses, strict=True):
        if not clause.words & holding.words:
            continue  # "lasts at least 25 years" may have the subject of the clause before
        names_other = clause.head & opening - holding.words and not (subject & holding.head) - clause.words
        if names_other and holding.head - clause.words - subject and relate(value, other) == "differs":
            return other
    return None


def _part(tokens: Sequence[Token], values: Sequence[Value]) -> list[_Clause]:
    """The clause of each value; empty where nothing parts two of them."""
    clauses: list[_Clause] = []
    end = -1
    for value in values:
        before = [token for token in tokens if token.start >= end and token.end <= value.start]
        if clauses:
            cut = next((index for index, token in enumerate(before) if token.lower in _SEPARATORS), None)
            if cut is None:
                return []
            before = before[cut + 1 :]
        words = _list_in_order(before)
        clauses.append(_Clause(set(words[:_HEAD]), set(words)))
        end = value.end
    return clauses


def _join(tokens: Sequence[Token], values: Sequence[Value]) -> Set[str]:
    """The words of a sentence but for those of its values."""
    return list_words([token for token in tokens if not any(v.start <= token.start < v.end for v in values)])


def _list_in_order(tokens: Sequence[Token]) -> list[str]:
    return [word for token in tokens for word in list_words([token])]
