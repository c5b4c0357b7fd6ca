"""Turns the tokens that the critic flags into the names they belong to.

A critic flags tokens; only a whole name can be replaced. A flagged token flags the word that contains it, and a
flagged word flags the entity that the graph links there. Where the graph links none, a run of flagged words is one
name, without the function words at its ends. A word whose first token has label B rather than I begins another name:
"The Time Machine and The Invisible Man" are two, although the critic flags the "and" between them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from groundwire.runtime.calls import TextSpan
from groundwire.runtime.texts.characters import starts_upper

from ..schema.explanations import FlaggedMention, FlaggedToken
from ..text.words import WORD, Range, find_overlaps, words

_POSSESSIVE = re.compile(r"['’]s$")
_SENTENCE_END = re.compile(r"[.!?…:\n]")
"""What makes the word after it the first of a sentence."""


class EntityLink(Protocol):
    """The name of a node in a text, as ``KnowledgeGraph.link`` returns it."""

    @property
    def start(self) -> int:
        """Offset of the first character."""
        ...

    @property
    def end(self) -> int:
        """Offset after the last character."""
        ...

    @property
    def entity(self) -> str:
        """Name of the node."""
        ...


class _ScoredWord(NamedTuple):
    """A word of the response, and the probability that it is hallucinated."""

    start: int
    end: int
    content: bool
    capitalised: bool
    probability: float
    begins: bool
    """Whether its first token begins a mention."""
    starts_sentence: bool


def find_mentions(
    response: str, tokens: Sequence[FlaggedToken], threshold: float, links: Iterable[EntityLink] = ()
) -> tuple[FlaggedMention, ...]:
    """Return the flagged names of ``response``, disjoint and in its order.

    ``links`` must be disjoint. A run of flagged words that are all stop words or punctuation is not a name.
    """
    scored_words = list(_score_words(response, tokens))
    linked = sorted(links, key=lambda link: link.start)
    flagged: list[FlaggedMention] = []
    for link, probability in zip(linked, max_probabilities(tokens, map(_bounds_of, linked)), strict=True):
        if probability >= threshold:
            flagged.append(
                FlaggedMention(response[link.start : link.end], link.start, link.end, probability, link.entity)
            )
    links_of_words = find_overlaps(map(_bounds_of, scored_words), linked)
    unlinked = [word for word, word_links in zip(scored_words, links_of_words, strict=True) if not word_links]
    for run in _find_runs(response, unlinked, threshold):
        start, end = run[0].start, run[-1].end
        flagged.append(FlaggedMention(response[start:end], start, end, max(word.probability for word in run)))
    return tuple(sorted(flagged, key=lambda mention: mention.start))


def find_all_mentions(
    response: str,
    tokens: Sequence[FlaggedToken],
    flagged: Sequence[FlaggedMention],
    links: Iterable[EntityLink],
    entities: Iterable[TextSpan] = (),
) -> tuple[FlaggedMention, ...]:
    """Return all names of ``response``, flagged or not, disjoint and in its order: ``flagged``, what the graph links,
    and the recognised ``entities`` that overlap neither."""
    taken = bytearray(len(response))
    for mention in flagged:
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    others: list[tuple[int, int, str | None]] = []
    ranges = [(link.start, link.end, link.entity) for link in links]
    for start, end, entity in (*ranges, *((span.start, span.end, None) for span in entities)):
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            others.append((start, end, entity))
    others.sort(key=lambda other: other[0])
    probabilities = max_probabilities(tokens, ((start, end) for start, end, _ in others))
    mentions = (
        FlaggedMention(response[start:end], start, end, probability, entity)
        for (start, end, entity), probability in zip(others, probabilities, strict=True)
    )
    return tuple(sorted((*flagged, *mentions), key=lambda mention: mention.start))


def max_probabilities(tokens: Iterable[FlaggedToken], bounds: Iterable[tuple[int, int]]) -> list[float]:
    """Return for each range of the response, sorted by start, the highest probability of its tokens, without tokens of
    no characters."""
    readable = [token for token in tokens if token.start < token.end]
    return [
        max((token.probability for token in range_tokens), default=0.0)
        for range_tokens in find_overlaps(bounds, readable)
    ]


def _bounds_of(span: Range) -> tuple[int, int]:
    return span.start, span.end


def _score_words(response: str, tokens: Sequence[FlaggedToken]) -> Iterator[_ScoredWord]:
    matches = list(WORD.finditer(response))
    # A possessive "'s" belongs to the sentence, not to the name.
    bounds = [(match.start(), match.start() + len(_POSSESSIVE.sub("", match[0]))) for match in matches]
    content = find_overlaps(bounds, [word for word in words(response) if word.content])
    readable = find_overlaps(bounds, [token for token in tokens if token.start < token.end])
    previous_end = 0
    for match, (start, end), content_words, word_tokens in zip(matches, bounds, content, readable, strict=True):
        yield _ScoredWord(
            start,
            end,
            bool(content_words),
            starts_upper(match[0]),
            max((token.probability for token in word_tokens), default=0.0),
            begins=bool(word_tokens) and word_tokens[0].begins,
            starts_sentence=previous_end == 0 or _SENTENCE_END.search(response, previous_end, start) is not None,
        )
        previous_end = match.end()


def _find_runs(response: str, unlinked: Sequence[_ScoredWord], threshold: float) -> Iterator[list[_ScoredWord]]:
    """Runs of flagged words with only spaces between them, cut where a mention begins, and extended to the ends of a
    capitalised name."""

    def continues(index: int) -> bool:
        """Whether the word at ``index`` may belong to the same name as the word before it."""
        word = unlinked[index]
        if _is_initial(unlinked[index - 1]) and word.capitalised:
            return _is_adjacent(response, unlinked, index - 1)
        return _is_adjacent(response, unlinked, index - 1) and not (word.begins and word.probability >= threshold)

    index = previous_end = 0
    while index < len(unlinked):
        if unlinked[index].probability < threshold:
            index += 1
            continue
        first = last = index
        while last + 1 < len(unlinked) and unlinked[last + 1].probability >= threshold and continues(last + 1):
            last += 1
        index = last + 1
        while first < last and not (unlinked[first].content or unlinked[first].capitalised):
            first += 1
        while last > first and not (unlinked[last].content or unlinked[last].capitalised):
            last -= 1
        if not any(word.content for word in unlinked[first : last + 1]):
            continue
        if unlinked[first].capitalised:
            while (
                first > previous_end
                and _is_adjacent(response, unlinked, first - 1)
                and _begins_name(unlinked[first - 1], threshold)
            ):
                first -= 1
        if unlinked[last].capitalised:
            while last + 1 < len(unlinked) and unlinked[last + 1].capitalised and continues(last + 1):
                last += 1
        index = max(index, last + 1)
        previous_end = last + 1
        yield list(unlinked[first : last + 1])


def _begins_name(word: _ScoredWord, threshold: float) -> bool:
    """Whether a word before a flagged one belongs to its name; at the start of a sentence a capital says nothing."""
    return word.capitalised and word.content and (not word.starts_sentence or word.probability >= threshold / 2)


def _is_initial(word: _ScoredWord) -> bool:
    return word.capitalised and word.end - word.start == 1


def _is_adjacent(response: str, unlinked: Sequence[_ScoredWord], index: int) -> bool:
    """Whether there are only spaces between a word and the next one, or the point of an initial ("H. G. Wells")."""
    between = response[unlinked[index].end : unlinked[index + 1].start]
    if _is_initial(unlinked[index]):
        between = between.removeprefix(".") or between
    return bool(between) and not between.strip()
