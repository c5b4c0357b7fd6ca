"""The mentions of a response, in which each word and each link looks at all tokens, all links and the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from groundwire.engine.metrics.mentions import EntityLink
from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.engine.text.words import WORD, words
from groundwire.runtime.calls import TextSpan


class _ScoredWord(NamedTuple):
    start: int
    end: int
    content: bool
    capitalised: bool
    probability: float
    begins: bool


def find_mentions(
    response: str, tokens: Sequence[FlaggedToken], threshold: float, links: Iterable[EntityLink] = ()
) -> tuple[FlaggedMention, ...]:
    """Return the flagged names of ``response``, disjoint and in its order.

    ``links`` must be disjoint. A run of flagged words that are all stop words or punctuation is not a name.
    """
    scored_words = list(_score_words(response, tokens))
    linked = sorted(links, key=lambda link: link.start)
    flagged: list[FlaggedMention] = []
    for link in linked:
        probability = max_probability(tokens, link.start, link.end)
        if probability >= threshold:
            flagged.append(
                FlaggedMention(response[link.start : link.end], link.start, link.end, probability, link.entity)
            )
    unlinked = [
        word for word in scored_words if not any(link.start < word.end and word.start < link.end for link in linked)
    ]
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
    and of the recognised ``entities`` those that overlap neither."""
    mentions = list(flagged)
    ranges = [(link.start, link.end, link.entity) for link in links]
    for start, end, entity in (*ranges, *((span.start, span.end, None) for span in entities)):
        if not any(mention.start < end and start < mention.end for mention in mentions):
            mentions.append(
                FlaggedMention(response[start:end], start, end, max_probability(tokens, start, end), entity)
            )
    return tuple(sorted(mentions, key=lambda mention: mention.start))


def max_probability(tokens: Iterable[FlaggedToken], start: int, end: int) -> float:
    """Return the highest probability of the tokens in a range of the response, without tokens of no characters."""
    return max(
        (token.probability for token in tokens if token.start < end and start < token.end and token.start < token.end),
        default=0.0,
    )


def _score_words(response: str, tokens: Sequence[FlaggedToken]) -> Iterator[_ScoredWord]:
    content_words = [word for word in words(response) if word.content]
    for match in WORD.finditer(response):
        start, end = match.span()
        possessive = re.search(r"['’]s$", match[0])
        if possessive:  # the "'s" belongs to the sentence, not to the name
            end -= len(possessive[0])
        content = any(word.start < end and start < word.end for word in content_words)
        first = next(
            (token for token in tokens if token.start < token.end and token.start < end and start < token.end), None
        )
        yield _ScoredWord(
            start,
            end,
            content,
            match[0][:1].isupper(),
            max_probability(tokens, start, end),
            begins=first is not None and first.begins,
        )


def _find_runs(response: str, unlinked: Sequence[_ScoredWord], threshold: float) -> Iterator[list[_ScoredWord]]:
    """Runs of flagged words with only spaces between them, cut where a mention begins, and extended to the ends of a
    capitalised name."""

    def continues(index: int) -> bool:
        """Whether the word at ``index`` may belong to the same name as the word before it."""
        word = unlinked[index]
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
                and _begins_name(response, unlinked[first - 1], threshold)
            ):
                first -= 1
        if unlinked[last].capitalised:
            while last + 1 < len(unlinked) and unlinked[last + 1].capitalised and continues(last + 1):
                last += 1
        index = max(index, last + 1)
        previous_end = last + 1
        yield list(unlinked[first : last + 1])


def _begins_name(response: str, word: _ScoredWord, threshold: float) -> bool:
    """Whether a word before a flagged one belongs to its name; at the start of a sentence a capital says nothing."""
    starts_sentence = re.search(r"(?:^|[.!?…:\n])\W*$", response[: word.start]) is not None
    return word.capitalised and word.content and (not starts_sentence or word.probability >= threshold / 2)


def _is_adjacent(response: str, unlinked: Sequence[_ScoredWord], index: int) -> bool:
    """Whether there are only spaces between a word and the next one."""
    between = response[unlinked[index].end : unlinked[index + 1].start]
    return bool(between) and not between.strip()
