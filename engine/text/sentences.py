"""The sentences of a response, by spaCy's rules: no model, the same for every bundle."""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .words import RECENT, SHORT

if TYPE_CHECKING:
    from spacy.language import Language


class Sentence(NamedTuple):
    """``text == whole[start:end]``, without blanks around it."""

    text: str
    start: int
    end: int


def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of ``text``, in order and disjoint; pieces without a letter or digit are left out.

    A line break ends a sentence. A text without any word is one sentence, so that no response is without one.

    >>> [sentence.text for sentence in sentences("me too! it’s by Dr. Dre, no?")]
    ['me too!', 'it’s by Dr. Dre, no?']
    """
    return _recent(text) if len(text) <= SHORT else _cut(text)


def _cut(text: str) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    begin = 0
    for line in text.splitlines(keepends=True):
        found += [
            _trimmed(text, begin + start, begin + end)
            for start, end in _bounds(line)
            if any(character.isalnum() for character in line[start:end])
        ]
        begin += len(line)
    return tuple(found) or (_trimmed(text, 0, len(text)),)


_recent = lru_cache(RECENT)(_cut)
_lock = threading.Lock()


@cache
def _pipeline() -> Language:
    import spacy  # as in ``words``: only for those who need it

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.max_length = 1 << 30  # callers bound their texts; these rules need little memory
    return nlp


def _bounds(line: str) -> list[tuple[int, int]]:
    # spaCy does not promise that a pipeline may run in two threads; the zone returns the words of this line.
    with _lock:
        nlp = _pipeline()
        with nlp.memory_zone():
            return [(span.start_char, span.end_char) for span in nlp(line).sents]


def _trimmed(text: str, start: int, end: int) -> Sentence:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Sentence(text[start:end], start, end)
