"""Finds the parts of long knowledge that a response is about, so that models read those and not all of it.

A part is a paragraph or some sentences of one. Texts are compared by their words, and the fewer parts have a word, the
more it counts. The time grows with the length of the knowledge, and no model is asked. Sentences of knowledge are also
ordered by how many words they share with a response.
"""

from __future__ import annotations

import math
import re
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from groundwire.runtime.texts.characters import is_letters

from ..schema.explanations import PassageRange
from .calendar import SHORT_MONTHS
from .reading import count_pieces
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


class Reach(NamedTuple):
    """How much of the knowledge is read for a sentence or a window of the response."""

    whole: int
    """Characters of knowledge that are read whole; of longer knowledge an excerpt is read."""
    excerpt: int
    """Size of an excerpt in units (``count_pieces``)."""


NEAR = Reach(whole=1_500, excerpt=240)
"""What a model reads that labels a sentence: about 250 words whole, or 190 words that it is about, in one or two
windows. More text hides what matters, and each window is a chance that a false sentence seems supported."""
FAR = Reach(whole=20_000, excerpt=640)
"""What is read of all knowledge that is not too long, as the papers' metrics do: about 3,300 words, or 500."""
PART_SIZE = 80
"""Size of a part of the knowledge in units, unless a sentence is longer."""
PARTS_AT_ONCE = 500
"""Parts that are indexed in one go: about 20 ms."""
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_STEM = 6
"""Letters of a word that are compared: "refunds", "refunded" and "refundable" are one word."""
_BREAK = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\s*\n\s*|(?<=\}),\s*(?=\{)")
"""The end of a sentence, of a line or of a record of JSON."""
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))?\s?[ap]\.?m\b|\b(\d{1,2}):(\d\d)\b", re.IGNORECASE)
_MONTH = "|".join(SHORT_MONTHS)
_DATE = re.compile(
    rf"\b\d{{4}}-(\d\d)-(\d\d)\b|\b({_MONTH})[a-z]*\.? (\d{{1,2}})(?!\d)"
    rf"|\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})",
    re.IGNORECASE,
)
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=#)")


class Excerpt(NamedTuple):
    """The parts of the knowledge that are read."""

    passages: tuple[str, ...]
    """Texts, one for each passage that has parts in it."""
    ranges: tuple[PassageRange, ...]
    """Where the parts are, in the order of the knowledge and disjoint."""


class KnowledgeIndex:
    """The words of long knowledge: ``for _ in index.read(): ...`` before ``find``."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.passages = tuple(passages)
        self._parts: list[PassageRange] = []
        self._sizes: list[int] = []
        self._parts_of: dict[str, array[int]] = {}
        self._progress = self._read()
        self._lock = threading.Lock()

    def read(self) -> Iterator[None]:
        """Read the knowledge, and yield now and then so that others have a turn; several readers share the work."""
        while True:
            with self._lock:
                if next(self._progress, True):
                    return
            yield

    def _read(self) -> Iterator[bool]:
        for passage, text in enumerate(self.passages):
            for start, end, size in split_passage(text):
                part = len(self._parts)
                self._parts.append(PassageRange(passage, start, end))
                self._sizes.append(size)
                for word in set(find_stems(text[start:end])):
                    self._parts_of.setdefault(word, array("I")).append(part)
                if part % PARTS_AT_ONCE == PARTS_AT_ONCE - 1:
                    yield False

    def find(self, queries: Sequence[str], size: int) -> Excerpt:
        """The parts that share most with the queries, in the order of the knowledge.

        Args:
            queries: Sentences; each has its turn to choose, so that every one finds what it is about.
            size: Pieces of the excerpt at most, but for its first part.
        """
        rankings = [iter(self._rank(query)) for query in queries]
        chosen: set[int] = set()
        read = 0
        while rankings:
            remaining = []
            for ranking in rankings:
                part = next((part for part in ranking if part not in chosen), None)
                if part is None:
                    continue
                if not chosen or read + self._sizes[part] <= size:
                    chosen.add(part)
                    read += self._sizes[part]
                    remaining.append(ranking)
            rankings = remaining
        return self._join(sorted(chosen) or [0][: len(self._parts)])

    def _rank(self, query: str) -> list[int]:
        weights: defaultdict[int, float] = defaultdict(float)
        total = len(self._parts)
        for word in sorted(set(find_stems(query))):  # sums depend on the order
            parts = self._parts_of.get(word, array("I"))
            weight = math.log((total + 1) / (len(parts) + 0.5))
            for part in parts if 2 * len(parts) <= total else ():
                weights[part] += weight
        return sorted(weights, key=lambda part: (-weights[part], part))

    def _join(self, parts: Sequence[int]) -> Excerpt:
        ranges: list[PassageRange] = []
        texts: dict[int, list[str]] = {}
        previous = -2
        for part in parts:
            passage, start, end = self._parts[part].passage, self._parts[part].start, self._parts[part].end
            if part - 1 == previous and ranges[-1].passage == passage:
                start = ranges.pop().start
                texts[passage].pop()
            ranges.append(PassageRange(passage, start, end))
            texts.setdefault(passage, []).append(self.passages[passage][start:end])
            previous = part
        return Excerpt(tuple("\n".join(of_passage) for of_passage in texts.values()), tuple(ranges))


def find_stems(text: str) -> Iterator[str]:
    """The words of a text as they are compared: lower-case, without a plural's "s", and their first letters; then
    times and dates, which have other words in other forms.

    >>> list(find_stems("The refunds of 2024"))
    ['the', 'refund', 'of', '2024']
    >>> list(find_stems("8 pm"))[-1] == list(find_stems("20:00"))[-1]
    True
    """
    for match in _WORD.finditer(text.casefold()):
        word = match[0]
        if is_letters(word):
            word = word[:-1] if len(word) > 3 and word[-1] == "s" else word
            word = word[:_STEM]
        yield word
    if _DIGIT.search(text):
        yield from _find_times(text)


def _find_times(text: str) -> Iterator[str]:
    """Times of a clock of twelve hours, since a response may leave morning and afternoon out; dates without a year."""
    for match in _CLOCK.finditer(text):
        yield f"{int(match[1] or match[3]) % 12}:{match[2] or match[4] or '00'}"
    for match in _DATE.finditer(text):
        month = match[3] or match[6]
        number = SHORT_MONTHS[month.lower()] if month else int(match[1])
        yield f"{number}/{int(match[2] or match[4] or match[5])}"


def split_passage(text: str) -> Iterator[tuple[int, int, int]]:
    """Parts of a passage with their sizes: paragraphs, joined or cut at the ends of sentences to ``PART_SIZE``."""
    begin = end = -1
    size = 0
    for start, stop, opens in _find_units(text):
        count = count_pieces(text[start:stop])
        if begin >= 0 and (size + count > PART_SIZE or (opens and 2 * size > PART_SIZE)):
            yield begin, end, size
            begin, size = -1, 0
        begin = start if begin < 0 else begin
        end, size = stop, size + count
    if begin >= 0:
        yield begin, end, size


def _find_units(text: str) -> Iterator[tuple[int, int, bool]]:
    """Lines and sentences, roughly, and whether a paragraph begins with them."""
    start, opens = 0, True
    for match in _BREAK.finditer(text):
        if text[start : match.start()].strip():
            yield start, match.start(), opens
            opens = False
        opens = opens or _PARAGRAPH.search(match[0] + text[match.end() : match.end() + 1]) is not None
        start = match.end()
    if text[start:].strip():
        yield start, len(text.rstrip()), opens
