"""Splits a text into words by spaCy's English tokenizer: no model, the same for every bundle."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from groundwire.runtime.errors import TooLong
from groundwire.runtime.linear_tokenizer import LinearTokenizer
from groundwire.runtime.memory_zone import LongZone

if TYPE_CHECKING:
    from spacy.tokens import Token


T = TypeVar("T")
WORD = re.compile(r"\w+(?:['’.,\-]\w+)*")
"""A word with its apostrophes, hyphens and the points of numbers: what is marked in a response as a whole."""


class Word(NamedTuple):
    """A token of a text: ``text == whole[start:end]``, never a space."""

    text: str
    start: int
    end: int
    lower: str
    content: bool
    """Neither a stop word nor punctuation."""


def words(text: str) -> tuple[Word, ...]:
    """Return the tokens of ``text``, in order.

    spaCy makes a run of spaces a token of its own; those are left out, so a text of spaces has no words.

    >>> [word.text for word in words("It isn't Dr. Dre's!") if word.content]
    ['Dr.', 'Dre']
    """
    return _recent(text) if len(text) <= SHORT else _split(text)


def read_words(text: str) -> Iterator[Word]:
    """Yield what ``words`` returns, reading the text as far as somebody asks."""
    return (word for word in read_tokens(text, _make_word) if word is not None)


def read_tokens(text: str, build: Callable[[Token, int], T]) -> Iterator[T]:
    """Yield ``build(token, offset)`` of each token of ``text``; the token's ``idx`` counts from ``offset``.

    Between two parts of a long text, whoever else waits for the tokenizer has a turn. What ``build`` returns may
    have nothing of spaCy.
    """
    # spaCy does not promise that a tokenizer is thread-safe. The memory zone frees the strings of words, so the memory
    # of a service does not grow with those it has seen.
    zone, tokenizer = _tokenizer()
    parts = tokenizer.cut(text)
    for start, part in parts:
        with _lock, zone.read(len(part)):
            built = [build(token, start) for token in tokenizer.read(part)]
        yield from built


def settle_tokens(text: str, begin: int = 0) -> int:
    """How many of the first characters of a line have the same tokens whatever is appended to it.

    See ``LinearTokenizer.settle``.
    """
    return _tokenizer()[1].settle(text, begin)


def check_words(texts: Iterable[str], limit: int, title: str, pattern: re.Pattern[str] | None = None) -> None:
    """Raise TooLong if ``texts`` have more than ``limit`` words together, for a metric that is called ``title``.

    Counted are runs of letters and digits, and every other character but spaces: about as many as ``words`` returns,
    in a fiftieth of the time; or what ``pattern`` matches, for a metric that splits otherwise.
    """
    count = sum(sum(1 for _ in (pattern or _COUNTED).finditer(text)) for text in texts)
    if count > limit:
        raise TooLong(
            f"{title} reads up to {limit} words and punctuation marks; response and knowledge have {count}. "
            "Retrieve fewer passages, or leave this metric out."
        )


_COUNTED = re.compile(r"\w+|[^\w\s]")
SHORT = 2_000
"""Longest text, in characters, whose words and sentences are cached for the other metrics of the request."""
RECENT = 128
"""Texts in the cache: at most about 15 MB of words."""


def _split(text: str) -> tuple[Word, ...]:
    return tuple(read_words(text))


def _make_word(token: Token, offset: int) -> Word | None:
    if token.is_space:
        return None
    start = offset + token.idx
    return Word(token.text, start, start + len(token), token.lower_, not token.is_stop and not token.is_punct)


_recent = lru_cache(RECENT)(_split)
_lock = threading.Lock()


@cache
def _tokenizer() -> tuple[LongZone, LinearTokenizer]:
    import spacy  # on first use: it takes 70 MB and half a second

    nlp = spacy.blank("en")
    return LongZone(nlp.vocab), LinearTokenizer(nlp.tokenizer)
