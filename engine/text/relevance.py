"""Orders the sentences of knowledge by how many words they share with a response."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .sentences import Sentence, read_sentences
from .words import words


class PassageSentence(NamedTuple):
    """A sentence of one of several passages."""

    passage: int
    """Index of the passage."""
    sentence: Sentence


class RelevantSentence(NamedTuple):
    """A sentence, and the number of different content words that it shares with a response; case does not count."""

    candidate: PassageSentence
    shared: int


def count_shared_words(passages: Sequence[str], response: str) -> Iterator[RelevantSentence]:
    """Yield the sentences of all passages, in order, reading them as far as somebody asks.

    >>> found = count_shared_words(["It is old. The Rhine is long."], "The Rhine rises here.")
    >>> [(item.candidate.sentence.text, item.shared) for item in found]
    [('It is old.', 0), ('The Rhine is long.', 1)]
    """
    return count_shared_in(read_passages(passages), response)


def read_passages(passages: Sequence[str]) -> Iterator[PassageSentence]:
    """Yield the sentences of all passages, in order, reading them as far as somebody asks."""
    return (
        PassageSentence(passage, sentence) for passage, text in enumerate(passages) for sentence in read_sentences(text)
    )


def count_shared_in(sentences: Iterable[PassageSentence], response: str) -> Iterator[RelevantSentence]:
    """``count_shared_words`` for sentences that were read before."""
    asked = content_words(response)
    # Most sentences of long knowledge have no such word, which this sees in a hundredth of the time.
    any_asked = re.compile("|".join(re.escape(word.casefold()) for word in asked) or "(?!)")
    for candidate in sentences:
        text = candidate.sentence.text
        shared = len(asked & content_words(text)) if any_asked.search(text.casefold()) else 0
        yield RelevantSentence(candidate, shared)


def rank_by_overlap(sentences: Sequence[RelevantSentence]) -> list[PassageSentence]:
    """The sentences with the most shared words first; ties keep their order."""
    return [item.candidate for item in sorted(sentences, key=lambda item: -item.shared)]


def content_words(text: str) -> set[str]:
    """The different content words of ``text``, in lower case."""
    return {word.lower for word in words(text) if word.content}
