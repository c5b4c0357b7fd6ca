"""Reads a long text slice by slice, and joins the slices to the tokens that the text has as a whole.

A tokenizer holds the GIL until it has read a whole text, and reports the length only then. Slices overlap. Two slices
are joined between tokens that both contain; where they disagree, as inside a word longer than a slice, the first slice
is read again at twice its length. Callers may stop early.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .characters import is_space
from .unread import NOTHING_UNREAD, Unread

SLICE = 8_192
"""Characters of a slice: about 10 ms. A text of no more is read as a whole."""
OVERLAP = 1_024
"""Characters that two slices share."""
MARGIN = 128
"""Characters at either end that are not compared: words are cut there, and WordPiece knows none of more than
100 letters."""
AGREED_TOKENS = 4
"""Tokens before and after a joint that both slices must have, at least."""
KEPT_TOKENS = 500_000
"""Tokens of long texts that are kept for the next call about the same text: 6 MB."""


class Tokens(NamedTuple):
    """Tokens of a text, in order."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int32]
    """[N, 2]: first character and the one after the last, in the whole text."""


class TextPart(NamedTuple):
    """The characters ``start`` to ``end - 1`` of a text, and their tokens."""

    start: int
    end: int
    tokens: Tokens


Tokenize = Callable[[str], Tokens]
"""The tokens of a slice, with the slice's own offsets."""
FindUnread = Callable[[str, TextPart], Unread]
"""What the tokenizer does not read of a part of a text."""


def read_slices(text: str, tokenize: Tokenize) -> Iterator[TextPart]:
    """Yield parts of ``text`` that follow one another; together they are the text and its tokens.

    ``tokenize`` is called when the next part is asked for.
    """

    def read(start: int, end: int) -> Tokens:
        ids, offsets = tokenize(text[start:end])
        return Tokens(ids, offsets + start)

    begin, end = 0, min(SLICE, len(text))
    tokens = read(begin, end)
    done, first = 0, 0  # what was yielded: characters of the text, and tokens of this slice
    while end < len(text):
        next_begin = end - OVERLAP
        next_end = min(next_begin + SLICE, len(text))
        following = read(next_begin, next_end)
        joint = find_joint(text, tokens, following, (next_begin + MARGIN, end - MARGIN))
        if joint is None:
            end = min(begin + 2 * (end - begin), len(text))
            tokens = read(begin, end)
            continue
        last, next_first = joint
        bound = int(following.offsets[next_first, 0])
        yield TextPart(done, bound, Tokens(tokens.ids[first:last], tokens.offsets[first:last]))
        begin, end, tokens, done, first = next_begin, next_end, following, bound, next_first
    yield TextPart(done, len(text), Tokens(tokens.ids[first:], tokens.offsets[first:]))


def find_joint(text: str, left: Tokens, right: Tokens, shared: tuple[int, int]) -> tuple[int, int] | None:
    """The token at which ``right`` continues what ``left`` has before it, by its index in both.

    Both must have the same tokens inside the characters ``shared``; None if they do not. A joint is between two of
    these tokens. The last joint at a space is chosen, where no tokenizer's word goes on; without one, the last joint.
    """
    ours, theirs = (
        np.flatnonzero((tokens.offsets[:, 0] >= shared[0]) & (tokens.offsets[:, 1] <= shared[1]))
        for tokens in (left, right)
    )
    offsets = left.offsets[ours]
    if not (np.array_equal(left.ids[ours], right.ids[theirs]) and np.array_equal(offsets, right.offsets[theirs])):
        return None
    # A character may have several tokens, which stay together.
    apart = np.flatnonzero(offsets[:-1, 1] <= offsets[1:, 0]) + 1
    joints = apart[(apart >= AGREED_TOKENS) & (apart <= len(ours) - AGREED_TOKENS)].tolist()
    if not joints:
        return None
    starts = offsets[:, 0].tolist()
    at_spaces = [joint for joint in joints if any(map(is_space, text[starts[joint] - 1 : starts[joint] + 1]))]
    joint = (at_spaces or joints)[-1]
    return int(ours[joint]), int(theirs[joint])


class LongText:
    """The tokens of a long text, read as far as they were asked for. Safe to share between threads."""

    def __init__(self, text: str, tokenize: Tokenize, find_unread: FindUnread) -> None:
        self._text = text
        self._remaining = read_slices(text, tokenize)
        self._find_unread = find_unread
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self.parts: list[TextPart] = []
        self.count = 0
        """Tokens of the parts."""
        self.unread = NOTHING_UNREAD
        """What the tokenizer does not read of the parts."""

    def read(self) -> None:
        """Read all of the text."""
        self.exceeds(None)

    def exceeds(self, limit: int | None) -> bool:
        """Read until there are more than ``limit`` tokens or the text ends; return whether there are more."""
        with self._lock:
            if self._error is not None:
                raise self._error
            try:
                while limit is None or self.count <= limit:
                    part = next(self._remaining, None)
                    if part is None:
                        return False
                    self.parts.append(part)
                    self.count += len(part.tokens.ids)
                    self.unread = self.unread.join(self._find_unread(self._text, part))
            except Exception as error:
                # A generator that has raised has ended, as if the text had.
                self._error = error
                raise
            return True


class LongTexts:
    """The long texts that one tokenizer read last: several questions about a document read it once."""

    def __init__(self, tokenize: Tokenize, find_unread: FindUnread) -> None:
        self._tokenize = tokenize
        self._find_unread = find_unread
        self._texts: OrderedDict[str, LongText] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> LongText:
        """The tokens of ``text``, perhaps read before."""
        with self._lock:
            long_text = self._texts.pop(text, None) or LongText(text, self._tokenize, self._find_unread)
            while self._texts and sum(tokens.count for tokens in self._texts.values()) > KEPT_TOKENS:
                self._texts.popitem(last=False)
            self._texts[text] = long_text
            return long_text
