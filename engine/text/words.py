"""Splits a text into words by spaCy's English tokenizer: no model, the same for every bundle."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from groundwire.runtime.errors import TooLong
from groundwire.runtime.linear_tokenizer import LinearTokenizer

if TYPE_CHECKING:
    from spacy.tokens import Token
    from spacy.vocab import Vocab


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


def check_words(texts: Iterable[str], limit: int, title: str) -> None:
    """Raise TooLong if ``texts`` have more than ``limit`` words together, for a metric that is called ``title``.

    Counted are runs of letters and digits, and every other character but spaces: about as many as ``words`` returns,
    in a fiftieth of the time.
    """
    count = sum(sum(1 for _ in _COUNTED.finditer(text)) for text in texts)
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
    # spaCy does not promise that a tokenizer is thread-safe. The memory zone frees the strings of this text, so the
    # memory of a service does not grow with the words it has seen.
    with _lock:
        vocabulary, tokenizer = _tokenizer()
        with vocabulary.memory_zone():
            return tuple(
                Word(token.text, start + token.idx, start + token.idx + len(token), token.lower_, _is_content(token))
                for start, doc in tokenizer.read_parts(text)
                for token in doc
                if not token.is_space
            )


_recent = lru_cache(RECENT)(_split)
_lock = threading.Lock()


@cache
def _tokenizer() -> tuple[Vocab, LinearTokenizer]:
    import spacy  # on first use: it takes 70 MB and half a second

    nlp = spacy.blank("en")
    return nlp.vocab, LinearTokenizer(nlp.tokenizer)


def _is_content(token: Token) -> bool:
    return not token.is_stop and not token.is_punct
