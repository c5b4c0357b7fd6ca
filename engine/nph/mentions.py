"""From the critic's tokens to the names they belong to.

A critic flags word pieces; what can be replaced is a whole name. A flagged piece flags the word it stands in, a flagged
word the name that the graph knows there, and what the graph does not know is a run of flagged words without the small
words at its ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.engine.text.words import words
from groundwire.runtime.calls import ClassifiedTokens
from groundwire.runtime.protocol import RoleInfo

_WORD = re.compile(r"\w+(?:['’.,\-]\w+)*")
_POSSESSIVE = re.compile(r"['’]s$")


class Named(Protocol):
    """A name of a node in a text, as ``KnowledgeGraph.link`` finds it."""

    @property
    def start(self) -> int:
        """First character."""
        ...

    @property
    def end(self) -> int:
        """Behind the last character."""
        ...

    @property
    def entity(self) -> str:
        """The node."""
        ...


class _Word(NamedTuple):
    """A word of the response and how much the critic doubts it."""

    start: int
    end: int
    content: bool
    capital: bool
    probability: float


def doubts(answer: ClassifiedTokens, info: RoleInfo) -> tuple[FlaggedToken, ...]:
    """Each token with the probability, 0–1, of all labels but the supported one."""
    fine = [index for index, label in enumerate(answer.labels) if label in info.supported]
    return tuple(
        FlaggedToken(
            token.start, token.end, min(1.0, max(0.0, 1.0 - sum(token.probabilities[index] for index in fine)))
        )
        for token in answer.tokens
    )


def mentions(
    response: str, tokens: Sequence[FlaggedToken], threshold: float, links: Iterable[Named] = ()
) -> tuple[FlaggedMention, ...]:
    """The flagged names of ``response``, disjoint and in its order.

    ``links`` are disjoint. A run of flagged words that are all stop words or punctuation is no name.
    """
    found = list(_words(response, tokens))
    known = sorted(links, key=lambda link: link.start)
    out: list[FlaggedMention] = []
    for link in known:
        doubt = probability(tokens, link.start, link.end)
        if doubt >= threshold:
            out.append(FlaggedMention(response[link.start : link.end], link.start, link.end, doubt, link.entity))
    free = [word for word in found if not any(link.start < word.end and word.start < link.end for link in known)]
    for run in _runs(response, free, threshold):
        start, end = run[0].start, run[-1].end
        out.append(FlaggedMention(response[start:end], start, end, max(word.probability for word in run)))
    return tuple(sorted(out, key=lambda mention: mention.start))


def probability(tokens: Iterable[FlaggedToken], start: int, end: int) -> float:
    """How much the critic doubts a range of the response: the highest of the tokens in it that have characters."""
    return max(
        (token.probability for token in tokens if token.start < end and start < token.end and token.start < token.end),
        default=0.0,
    )


def _words(response: str, tokens: Sequence[FlaggedToken]) -> Iterator[_Word]:
    content = [word for word in words(response) if word.content]
    for match in _WORD.finditer(response):
        start, end = match.span()
        owned = _POSSESSIVE.search(match[0])
        if owned:  # the "'s" belongs to the sentence, not to the name
            end -= len(owned[0])
        says = any(word.start < end and start < word.end for word in content)
        yield _Word(start, end, says, match[0][:1].isupper(), probability(tokens, start, end))


def _runs(response: str, free: Sequence[_Word], threshold: float) -> Iterator[list[_Word]]:
    """Runs of flagged words with nothing but blanks between them, out to the ends of a capitalised name."""
    at = 0
    while at < len(free):
        if free[at].probability < threshold:
            at += 1
            continue
        first = last = at
        while last + 1 < len(free) and free[last + 1].probability >= threshold and _next_to(response, free, last):
            last += 1
        at = last + 1
        while first < last and not (free[first].content or free[first].capital):
            first += 1
        while last > first and not (free[last].content or free[last].capital):
            last -= 1
        if not any(word.content for word in free[first : last + 1]):
            continue
        if free[first].capital:
            while (
                first > 0 and _next_to(response, free, first - 1) and _same_name(response, free[first - 1], threshold)
            ):
                first -= 1
        if free[last].capital:
            while last + 1 < len(free) and free[last + 1].capital and _next_to(response, free, last):
                last += 1
        at = max(at, last + 1)
        yield list(free[first : last + 1])


def _same_name(response: str, word: _Word, threshold: float) -> bool:
    """Whether a word before a flagged one belongs to its name; any word has a capital where a sentence begins."""
    begins = re.search(r"(?:^|[.!?…:\n])\W*$", response[: word.start]) is not None
    return word.capital and word.content and (not begins or word.probability >= threshold / 2)


def _next_to(response: str, free: Sequence[_Word], index: int) -> bool:
    """Whether only blanks stand between a word and the next one."""
    between = response[free[index].end : free[index + 1].start]
    return bool(between) and not between.strip()
