"""Orders the sentences of knowledge by how many words they share with a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .sentences import Sentence, sentences
from .words import words


class PassageSentence(NamedTuple):
    """A sentence of one of several passages."""

    passage: int
    """Index of the passage."""
    sentence: Sentence


def split_passages(passages: Sequence[str]) -> list[PassageSentence]:
    """The sentences of all passages, in order."""
    return [PassageSentence(index, sentence) for index, text in enumerate(passages) for sentence in sentences(text)]


def rank_by_overlap(candidates: Sequence[PassageSentence], response: str) -> list[PassageSentence]:
    """The sentences by the number of different content words that they share with ``response``, most first.

    Ties keep their order. Case does not count.

    >>> ranked = rank_by_overlap(split_passages(["It is old. The Rhine is long."]), "The Rhine rises here.")
    >>> [candidate.sentence.text for candidate in ranked]
    ['The Rhine is long.', 'It is old.']
    """
    asked = _content(response)
    return sorted(candidates, key=lambda candidate: -len(asked & _content(candidate.sentence.text)))


def _content(text: str) -> set[str]:
    return {word.lower for word in words(text) if word.content}
