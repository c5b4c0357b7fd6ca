"""Words of a text with their characters, ranges that overlap, and the words that a token classifier flags."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, chain
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from groundwire.runtime.calls import ClassifiedTokens
from groundwire.runtime.errors import TooLong
from groundwire.runtime.protocol import RoleInfo
from groundwire.runtime.texts.linear_tokenizer import LinearTokenizer, LongZone

from ..schema.explanations import FlaggedToken

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
    return tuple(read_words(text))


def read_words(text: str) -> Iterator[Word]:
    """Yield what ``words`` returns, reading the text as far as somebody asks."""
    return chain.from_iterable(read_tokens(text, _make_word))


def read_tokens(text: str, build: Callable[[Token, int], T | None]) -> Iterator[list[T]]:
    """Yield ``build(token, offset)`` of the tokens of ``text``, a list for each part of it, without what is None.

    The token's ``idx`` counts from ``offset``. Between two parts of a long text, whoever else waits for the tokenizer
    has a turn. What ``build`` returns may have nothing of spaCy.
    """
    # spaCy does not promise that a tokenizer is thread-safe. The memory zone frees the strings of words, so the memory
    # of a service does not grow with those it has seen.
    zone, tokenizer = _tokenizer()
    parts = tokenizer.cut(text)
    for start, part in parts:
        with _lock, zone.read(len(part)):
            built = [item for token in tokenizer.read(part) if (item := build(token, start)) is not None]
        yield built


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
    counted = pattern or _COUNTED
    count = sum(counted.subn("", text)[1] for text in texts)
    if count > limit:
        raise TooLong(
            f"{title} reads up to {limit} words and punctuation marks; response and knowledge have {count}. "
            "Retrieve fewer passages, or leave this metric out."
        )


_COUNTED = re.compile(r"\w+|[^\w\s]")
SHORT = 2_000
"""Longest text, in characters, that is read in one go."""


def _make_word(token: Token, offset: int) -> Word | None:
    if token.is_space:
        return None
    start = offset + token.idx
    return Word(token.text, start, start + len(token), token.lower_, not token.is_stop and not token.is_punct)


_lock = threading.Lock()


@cache
def _tokenizer() -> tuple[LongZone, LinearTokenizer]:
    import spacy  # on first use: it takes 70 MB and half a second
    from spacy.attrs import IS_PUNCT, IS_SPACE, IS_STOP, LOWER

    nlp = spacy.blank("en")
    # What ``_make_word`` and ``sentences`` read of a word: spaCy computes 23 attributes of each new one.
    nlp.vocab.lex_attr_getters = {
        name: nlp.vocab.lex_attr_getters[name] for name in (LOWER, IS_STOP, IS_PUNCT, IS_SPACE)
    }
    return LongZone(nlp.vocab), LinearTokenizer(nlp.tokenizer)


class Range(Protocol):
    """A part of a text, in characters."""

    @property
    def start(self) -> int:
        """Offset of the first character."""
        ...

    @property
    def end(self) -> int:
        """Offset after the last character."""
        ...


Item = TypeVar("Item", bound=Range)


def find_overlaps(bounds: Iterable[tuple[int, int]], items: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield, for each pair of a start and an end, the items that overlap it, in the order of ``items``.

    ``bounds`` must be sorted by start; ``items`` may have any order. The time grows with the numbers of items and
    overlaps.

    >>> from groundwire.runtime.calls import TextSpan
    >>> spans = [TextSpan("a b", 0, 3, ""), TextSpan("a", 0, 1, "")]
    >>> [[span.text for span in overlaps] for overlaps in find_overlaps([(0, 1), (2, 3), (4, 5)], spans)]
    [['a b', 'a'], ['a b'], []]
    """
    starts = [item.start for item in items]
    waiting = sorted(range(len(items)), key=starts.__getitem__, reverse=True)
    active: list[int] = []
    for start, end in bounds:
        while waiting and starts[waiting[-1]] < end:
            active.append(waiting.pop())
        if active:
            active = sorted([index for index in active if start < items[index].end])
        yield [items[index] for index in active if starts[index] < end]


def within(items: Sequence[Item], start: int, end: int) -> tuple[Item, ...]:
    """Those of ``items``, which are in the order of their starts, that lie in the characters ``start`` to ``end``."""
    first = bisect_left(items, start, key=_find_start)
    last = bisect_right(items, end, lo=first, key=_find_start)
    return tuple([item for item in items[first:last] if item.end <= end])


def starting_in(items: Sequence[Item], start: int, end: int) -> Sequence[Item]:
    """Those of ``items``, which are in the order of their starts, that begin in the characters ``start`` to ``end``."""
    first = bisect_left(items, start, key=_find_start)
    return items[first : bisect_left(items, end, lo=first, key=_find_start)]


_find_start = attrgetter("start")


class RangeIndex(Generic[Item]):
    """Ranges of a text; finds the ranges that overlap some characters without a look at all of them."""

    def __init__(self, items: Iterable[Item]) -> None:
        """Take ranges in any order; they are kept in the order of their starts."""
        self.items = sorted(items, key=attrgetter("start"))
        self._starts = [item.start for item in self.items]
        self._reach = list(accumulate((item.end for item in self.items), max))
        """How far the ranges up to each of them go."""

    def find_overlapping(self, start: int, end: int) -> Iterator[Item]:
        """Yield the ranges that overlap the characters ``start`` to ``end``, in order.

        >>> from groundwire.runtime.calls import TextSpan
        >>> index = RangeIndex([TextSpan("b", 2, 3, ""), TextSpan("a b", 0, 3, ""), TextSpan("a", 0, 1, "")])
        >>> [span.text for span in index.find_overlapping(1, 3)]
        ['a b', 'b']
        """
        last = bisect_left(self._starts, end)
        first = bisect_right(self._reach, start, hi=last)
        return (self.items[index] for index in range(first, last) if start < self.items[index].end)

    def overlaps(self, item: Range) -> bool:
        """Return whether one of the ranges overlaps another range."""
        return next(self.find_overlapping(item.start, item.end), None) is not None

    def find_from(self, start: int, end: float = inf) -> Iterator[Item]:
        """Yield the ranges that begin at the character ``start`` or later, and before ``end``, in order."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return (self.items[index] for index in range(first, last))


def flag_tokens(answer: ClassifiedTokens, info: RoleInfo) -> tuple[FlaggedToken, ...]:
    """Each token with the probability of all labels but the supported ones, and whether label B exceeds label I.

    Labels B and I have this name or this prefix, such as ``B-Halluc``.
    """
    supported = [index for index, label in enumerate(answer.labels) if label in info.supported]
    begin, inside = (_find_labels(answer.labels, prefix) for prefix in ("B", "I"))
    flags = []
    for token in answer.tokens:
        doubt = 1.0 - _sum(token.probabilities, supported)
        begins = bool(inside) and _sum(token.probabilities, begin) > _sum(token.probabilities, inside)
        flags.append(FlaggedToken(token.start, token.end, min(1.0, max(0.0, doubt)), begins))
    return tuple(flags)


def _find_labels(labels: Sequence[str], prefix: str) -> list[int]:
    return [index for index, label in enumerate(labels) if label.upper().partition("-")[0] == prefix]


def _sum(probabilities: Sequence[float], indices: Sequence[int]) -> float:
    return sum([probabilities[index] for index in indices])
