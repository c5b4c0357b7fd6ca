"""Finds where quoted words are in other texts, letter for letter or nearly so, in time linear in both.

Words of the texts are read once, and only pairs and sixes of words that a quotation has are noted, ``MAX_PLACES``
places of each. From the rarest of them a quotation is followed in both directions; where words differ, it is taken up
again a few words later. What is left on either side is looked for elsewhere.
"""

from __future__ import annotations

import itertools
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import is_digits

from .normalization import FUNCTION_WORDS, fold_word

MAX_PLACES = 16
"""Places of a pair or six of words that are tried."""
ANCHORS = 8
"""Rarest pairs and sixes from which a quotation is followed."""
REACH = 8
"""Words that may differ, or be left out, before a quotation goes on."""
MAX_PIECES = 8
"""Pieces that a quotation is looked for in; one of more is not found."""
ELLIPSIS, BRACKETS = 60, 15
"""Words that "…" and brackets may stand for."""
WORDS_AT_ONCE = 20_000
"""Words that are read in one go: about 50 ms."""
_GRAMS = (2, 6)
_TOKEN = re.compile(
    r"(?P<gap>\[?(?:\.(?:[ ]?\.){2,}|…)\]?)|(?P<note>\[\d{1,3}\])|\[(?P<letter>\w)\](?P<rest>\w*(?:['’]\w+)*)"
    r"|\[(?P<brackets>[^\[\]\n]{1,80})\]"
    r"|[^\W_]+(?:['’.,:](?=\w)[^\W_]+|-\n[ ]*(?=[a-z])[^\W_]+)*|[$€£¥₹%‰°±×+=]|(?<![\w)])[-−](?=\d)"
)
_HYPHENATED = re.compile(r"-\n[ ]*")
_LINE_MARK = re.compile(r"(?m)^[ ]{0,3}(?:>[ ]?)+")
_SQUEEZED = str.maketrans({**dict.fromkeys('“”„«»"‘’‚‹›`', "'"), **dict.fromkeys("–—−‐‑", "-"), "…": "..."})
Gram: TypeAlias = tuple[int, ...]


class QuotedWord(NamedTuple):
    """A word of a quotation: characters of the text that quotes."""

    word: str
    """As it is compared."""
    start: int
    end: int
    gap: int = 0
    """Words of the source that may be left out before it, by an ellipsis or in brackets."""


class WordEdit(NamedTuple):
    """Words ``start`` to ``end`` of a quotation, which are not those of the source; either may be none."""

    start: int
    end: int
    first: int
    last: int
    """Words of the source, as numbers of ``SourceWords``."""


class Piece(NamedTuple):
    """Words ``start`` to ``end`` of a quotation, and where they are."""

    start: int
    end: int
    first: int
    last: int
    """Words of the source, as numbers of ``SourceWords``."""
    matched: int
    changes: tuple[WordEdit, ...]

    @property
    def gain(self) -> int:
        """Words that are equal, less those that differ."""
        return self.matched - sum(max(change.end - change.start, change.last - change.first) for change in self.changes)


def read_quotation(text: str, start: int, end: int) -> list[QuotedWord]:
    """Return the words of a quotation, without what is in brackets.

    >>> [(word.word, word.gap) for word in read_quotation("“[W]e lend … works [of art] a year”", 0, 36)]
    [('we', 0), ('lend', 0), ('works', 60), ('a', 15), ('year', 0)]
    """
    quoted: list[QuotedWord] = []
    gap = 0
    for match in _TOKEN.finditer(text, start, end):
        if match["gap"] or match["brackets"]:
            gap = max(gap, ELLIPSIS if match["gap"] else BRACKETS)
        elif not match["note"]:
            for word in _list_words(match):
                quoted.append(QuotedWord(word, *match.span(), gap if quoted else 0))
                gap = 0
    return quoted


def _list_words(match: re.Match[str]) -> tuple[str, ...]:
    """The words of a token: "won't" is "will" and "not"."""
    word = _fold(match)
    short = _SHORT_FORM.fullmatch(word) if "'" in word or word == "cannot" else None
    if short is None:
        return (word,)
    first = short["denied"] or short["pronoun"] or short["first"] or short["can"]
    return _FULL_FORMS.get(first, first), "is" if short["pronoun"] else _FULL_FORMS.get(short["rest"] or "", "not")


def _fold(match: re.Match[str]) -> str:
    word = (match["letter"] + match["rest"]) if match["letter"] else match[0]
    word = _HYPHENATED.sub("", word).replace("’", "'").replace("−", "-")
    if is_digits(word[0]):
        word = word.replace(",", "")
    return word.lower() if word.isascii() else fold_word(word) or word


_SHORT_FORM = re.compile(
    r"(?P<denied>[a-z]+)n't|(?P<pronoun>it|he|she|that|there|what|who|here)'s|(?P<first>[a-z]+)'(?P<rest>re|ve|ll|m)"
    r"|(?P<can>can)not"
)
_FULL_FORMS = {"wo": "will", "ca": "can", "sha": "shall", "re": "are", "ve": "have", "ll": "will", "m": "am"}


def squeeze(text: str) -> str:
    """Return a text without differences that no reader sees: kinds of marks and dashes, spaces, marks of lines.

    >>> squeeze("the “old” house –\\n> and  more") == squeeze('the "old" house - and more')
    True
    """
    return " ".join(_LINE_MARK.sub(" ", text).translate(_SQUEEZED).split())


class SourceWords:
    """The words of several texts, and the places of what quotations have of them: ``for _ in words.read()`` first."""

    def __init__(self, texts: Sequence[str], quotations: Sequence[Sequence[QuotedWord]]) -> None:
        """Take the texts, and the words of all quotations that will be looked for."""
        self.texts = texts
        self._numbers: dict[str, int] = {}
        for quotation in quotations:
            for word in quotation:
                self._numbers.setdefault(word.word, len(self._numbers) + 1)
        self._words = array("i")
        self._starts, self._ends = array("l"), array("l")
        self._bounds = array("l")
        """The first word of each text."""
        self._places: dict[Gram, list[int]] = {
            gram: [] for quotation in quotations for _, gram in self._list_grams(quotation, 0, len(quotation))
        }
        self._counts: dict[Gram, int] = dict.fromkeys(self._places, 0)

    def read(self) -> Iterator[None]:
        """Read the texts, and yield now and then so that others have a turn."""
        for text in self.texts:
            self._bounds.append(len(self._words))
            run = 0
            for match in _TOKEN.finditer(text) if self._places else ():
                if match["gap"] or match["note"]:
                    continue
                if match["brackets"]:
                    inner = list(_TOKEN.finditer(text, match.start() + 1, match.end() - 1))
                else:
                    inner = [match]
                for token in inner:
                    for word in _list_words(token):
                        run = self._add(word, token, run)
                if len(self._words) % WORDS_AT_ONCE < len(inner):
                    yield
            self._words.append(-1)
            self._starts.append(len(text))
            self._ends.append(len(text))

    def _add(self, word: str, match: re.Match[str], run: int) -> int:
        """Append a word; returns how many words up to it quotations have."""
        number = self._numbers.get(word, 0)
        self._words.append(number)
        self._starts.append(match.start())
        self._ends.append(match.end())
        if not number:
            return 0
        run += 1
        for size in _GRAMS:
            if run >= size:
                first = len(self._words) - size
                gram = tuple(self._words[first:])
                if gram in self._places:
                    self._counts[gram] += 1
                    if self._counts[gram] <= MAX_PLACES:
                        self._places[gram].append(first)
        return run

    def _list_grams(self, quotation: Sequence[QuotedWord], start: int, end: int) -> Iterator[tuple[int, Gram]]:
        numbers = [self._numbers[word.word] for word in quotation[start:end]]
        gaps = {index for index in range(start + 1, end) if quotation[index].gap}
        for size in _GRAMS:
            for index in range(start, end - size + 1):
                if not gaps or not gaps.intersection(range(index + 1, index + size)):
                    yield index, tuple(numbers[index - start : index - start + size])

    def find(
        self, quotation: Sequence[QuotedWord], prefer: Callable[[Piece], bool] = lambda piece: True
    ) -> tuple[Piece, ...]:
        """Return where a quotation is, in its order: one piece if it is in one place, none if it is nowhere.

        Args:
            quotation: The words of a quotation that the texts were read for.
            prefer: Says which of two equal places is taken.
        """
        starts = [0, *(index for index, word in enumerate(quotation) if word.gap), len(quotation)]
        pieces: list[Piece] = []
        for start, end in itertools.pairwise(starts):
            pieces += self._find_segment(quotation, start, end, pieces[-1] if pieces else None, prefer)
        if pieces and starts[1] == pieces[0].start == 1:
            pieces = [*self._find_single(quotation, 0, pieces[0].first - 1, quotation[1].gap, -1), *pieces]
        return tuple(pieces)

    def _find_segment(
        self,
        quotation: Sequence[QuotedWord],
        start: int,
        end: int,
        before: Piece | None,
        prefer: Callable[[Piece], bool],
    ) -> list[Piece]:
        if end - start == 1 and before is not None:
            return self._find_single(quotation, start, before.last, quotation[start].gap, 1)
        pieces: list[Piece] = []
        waiting = [(start, end)]
        while waiting and len(pieces) < MAX_PIECES:
            first, last = waiting.pop()
            piece = self._find_best(quotation, first, last, before, prefer)
            if piece is None:
                continue
            pieces.append(piece)
            waiting += [(piece.end, last), (first, piece.start)]
        return sorted(pieces)

    def _find_single(
        self, quotation: Sequence[QuotedWord], index: int, position: int, gap: int, step: int
    ) -> list[Piece]:
        """A single word before or after a gap, at ``position`` or at most so many words from it."""
        number = self._numbers[quotation[index].word]
        for _ in range(gap + 1):
            if not 0 <= position < len(self._words) or self._words[position] < 0:
                break
            if self._words[position] == number:
                return [Piece(index, index + 1, position, position + 1, 1, ())]
            position += step
        return []

    def _find_best(
        self,
        quotation: Sequence[QuotedWord],
        start: int,
        end: int,
        before: Piece | None,
        prefer: Callable[[Piece], bool],
    ) -> Piece | None:
        grams = [(self._counts[gram], index, gram) for index, gram in self._list_grams(quotation, start, end)]
        numbers = [self._numbers[word.word] for word in quotation[start:end]]
        best: list[Piece] = []
        tried: list[Piece] = []
        for count, index, gram in sorted(item for item in grams if item[0])[:ANCHORS]:
            for position in self._places[gram][:count]:
                if any(p.start <= index < p.end and p.first <= position < p.last for p in tried):
                    continue
                piece = self._follow_both(numbers, start, index, position, len(gram))
                tried.append(piece)
                if not best or piece.gain >= best[0].gain:
                    best = [piece] if not best or piece.gain > best[0].gain else [*best, piece]
        if not best:
            return None

        def rank(piece: Piece) -> tuple[bool, int, int]:
            distance = piece.first - before.last if before else 0
            return not prefer(piece), abs(distance) + (1 << 30) * (distance < 0), piece.first

        return best[0] if len(best) == 1 else min(best, key=rank)

    def _follow_both(self, numbers: Sequence[int], start: int, index: int, position: int, size: int) -> Piece:
        after = self._follow(numbers, index + size - start, position + size, 1)
        ahead = self._follow(numbers, index - 1 - start, position - 1, -1)
        changes = [
            *(WordEdit(start + c + 1, start + a + 1, d + 1, b + 1) for a, c, b, d in reversed(ahead[3])),
            *(WordEdit(start + a, start + c, b, d) for a, c, b, d in after[3]),
        ]
        return Piece(
            start + ahead[0] + 1, start + after[0], ahead[1] + 1, after[1], size + ahead[2] + after[2], tuple(changes)
        )

    def _follow(
        self, numbers: Sequence[int], index: int, position: int, step: int
    ) -> tuple[int, int, int, list[tuple[int, int, int, int]]]:
        """Follow a quotation in one direction.

        Returns:
            The next word of both, how many were equal, and what differed: words of the quotation, then of the source.
        """
        words, stop = self._words, len(numbers) if step > 0 else -1
        low, high = self.find_bounds(max(position, 0))
        matched = lost = 0
        changes: list[tuple[int, int, int, int]] = []
        while index != stop and low <= position < high:
            if words[position] == numbers[index]:
                matched += 1
                index, position = index + step, position + step
                continue
            skipped = self._take_up(numbers, index, position, step, low, high)
            if skipped is None or lost + max(skipped) > matched + REACH:
                break
            lost += max(skipped)
            ours, theirs = skipped
            changes.append((index, index + ours * step, position, position + theirs * step))
            index, position = index + ours * step, position + theirs * step
        return index, position, matched, changes

    def _take_up(
        self, numbers: Sequence[int], index: int, position: int, step: int, low: int, high: int
    ) -> tuple[int, int] | None:
        """How many words of quotation and source differ before two of both are equal again, or the last one is."""
        words = self._words
        for ours, theirs in _SKIPS:
            i, p = index + ours * step, position + theirs * step
            if not (0 <= i < len(numbers) and low <= p < high) or words[p] != numbers[i]:
                continue
            next_i, next_p = i + step, p + step
            if not 0 <= next_i < len(numbers):
                if max(ours, theirs) <= 2:
                    return ours, theirs
            elif low <= next_p < high and words[next_p] == numbers[next_i]:
                return ours, theirs
        return None

    def locate(self, first: int, last: int) -> tuple[int, int, int]:
        """Return the text of the words ``first`` to ``last``, and their first and the following character in it."""
        text = bisect_right(self._bounds, first) - 1
        start = self._starts[first]
        return text, start, max(start, self._ends[last - 1]) if last > first else start

    def clip(self, first: int, last: int) -> tuple[int, int]:
        """Return the words ``first`` to ``last`` as far as they are in the text of ``first``."""
        return first, min(last, self.find_bounds(first)[1])

    def find_bounds(self, position: int) -> tuple[int, int]:
        """Return the first and the following word of the text that a word is in."""
        text = bisect_right(self._bounds, position)
        return self._bounds[text - 1], (self._bounds[text] if text < len(self._bounds) else len(self._words)) - 1

    def is_end(self, position: int) -> bool:
        """Return whether a text ends at a word."""
        return self._words[position] < 0

    def is_begin(self, position: int) -> bool:
        """Return whether a text begins at a word."""
        return position == 0 or self._words[position - 1] < 0


_SKIPS = sorted(
    ((ours, theirs) for ours in range(REACH + 1) for theirs in range(REACH + 1) if ours or theirs),
    key=lambda pair: (max(pair), -min(pair)),
)
"""How many words of quotation and source may be skipped, the fewest first; exchanged words before added ones."""


def count_content(words: Sequence[QuotedWord]) -> int:
    """Return how many words say something on their own."""
    return sum(word.word not in FUNCTION_WORDS for word in words)
