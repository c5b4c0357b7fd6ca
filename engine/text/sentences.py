"""Splits a response into sentences by spaCy's rules: no model, the same for every bundle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .words import RECENT, SHORT, read_tokens

if TYPE_CHECKING:
    from spacy.tokens import Token


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
    return _recent(text) if len(text) <= SHORT else tuple(_read(text))


def read_sentences(text: str) -> Iterator[Sentence]:
    """Yield what ``sentences`` returns, reading a long text as far as somebody asks."""
    return iter(sentences(text)) if len(text) <= SHORT else _read(text)


def _read(text: str) -> Iterator[Sentence]:
    any_word = False
    offset = 0
    for line in text.splitlines(keepends=True):
        for start, end in _find_bounds(line):
            if any(map(str.isalnum, line[start:end])):
                any_word = True
                yield _strip(text, offset + start, offset + end)
        offset += len(line)
    if not any_word:
        yield _strip(text, 0, len(text))


@lru_cache(RECENT)
def _recent(text: str) -> tuple[Sentence, ...]:
    return tuple(_read(text))


def _find_bounds(line: str) -> Iterator[tuple[int, int]]:
    """The sentences of spaCy's sentencizer: one begins with the first token that is no punctuation after a full stop.

    Unlike a pipeline, this reads a long line part by part.
    """
    begin = end = 0
    after_stop = False
    for mark in read_tokens(line, _mark_token):
        if after_stop and not mark.punctuation and not mark.stop:
            yield begin, end
            begin, after_stop = mark.start, False
        after_stop = after_stop or mark.stop
        end = mark.end
    if begin < end:
        yield begin, end


class _Mark(NamedTuple):
    start: int
    end: int
    stop: bool
    """Whether it ends a sentence."""
    punctuation: bool


def _mark_token(token: Token, offset: int) -> _Mark:
    start = offset + token.idx
    return _Mark(start, start + len(token), token.text in _stops(), token.is_punct)


@cache
def _stops() -> frozenset[str]:
    from spacy.pipeline import Sentencizer  # on first use, as in ``words``

    return frozenset(Sentencizer.default_punct_chars)


def _strip(text: str, start: int, end: int) -> Sentence:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Sentence(text[start:end], start, end)
