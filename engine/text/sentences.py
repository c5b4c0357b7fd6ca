"""Splits a response into sentences by spaCy's rules: no model, the same for every bundle."""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from groundwire.runtime.linear_tokenizer import LinearTokenizer

from .words import RECENT, SHORT

if TYPE_CHECKING:
    from spacy.language import Language


class Sentence(NamedTuple):
    """A sentence of a text: ``text == whole[start:end]``, without spaces at its ends."""

    text: str
    start: int
    end: int


def sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of ``text``, in order and disjoint; pieces without a letter or digit are left out.

    A line break ends a sentence. A text without any word is one sentence, so every response has at least one.

    >>> [sentence.text for sentence in sentences("me too! it’s by Dr. Dre, no?")]
    ['me too!', 'it’s by Dr. Dre, no?']
    """
    return _recent(text) if len(text) <= SHORT else _split(text)


def _split(text: str) -> tuple[Sentence, ...]:
    result: list[Sentence] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        result += [
            _strip(text, offset + start, offset + end)
            for start, end in _find_bounds(line)
            if any(character.isalnum() for character in line[start:end])
        ]
        offset += len(line)
    return tuple(result) or (_strip(text, 0, len(text)),)


_recent = lru_cache(RECENT)(_split)
_lock = threading.Lock()


@cache
def _pipeline() -> Language:
    import spacy  # on first use, as in ``words``

    nlp = spacy.blank("en")
    nlp.tokenizer = LinearTokenizer(nlp.tokenizer)
    nlp.add_pipe("sentencizer")
    nlp.max_length = 1 << 30  # callers limit their texts; these rules need little memory
    return nlp


def _find_bounds(line: str) -> list[tuple[int, int]]:
    # spaCy does not promise that a pipeline is thread-safe. The memory zone frees the strings of this line.
    with _lock:
        nlp = _pipeline()
        with nlp.memory_zone():
            return [(span.start_char, span.end_char) for span in nlp(line).sents]


def _strip(text: str, start: int, end: int) -> Sentence:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Sentence(text[start:end], start, end)
