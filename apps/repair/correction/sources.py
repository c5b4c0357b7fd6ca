"""The sentences of the knowledge that corrections take their words from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from groundwire.engine.extend import PassageSentence, count_shared_in, rank_by_overlap, read_passages
from groundwire.engine.schema.explanations import PassageRange
from groundwire.engine.values import Name, Value, read_values
from groundwire.runtime.texts.characters import is_lower_case

MAX_SENTENCES = 1_000
"""Sentences of long knowledge that are compared with one of the response; later sentences are not looked at."""
NEAREST = 3
"""Sentences of the knowledge, most similar first, whose words are compared with the words of a sentence."""


class SourceSentence:
    """A sentence of the knowledge."""

    def __init__(self, passage: int, text: str, start: int) -> None:
        """The sentence ``text``, which begins at the character ``start`` of a passage."""
        self.passage = passage
        self.text = text
        self.start = start

    @cached_property
    def parts(self) -> list[Value]:
        """The numbers, dates and names that it states, in order."""
        return find_free_parts(self.text)

    def write(self, start: int, end: int) -> str:
        """Characters of it as within a sentence: a word at its beginning gets a small letter unless a name begins."""
        text = self.text[start:end]
        is_word = is_lower_case(text[1:2]) or text.startswith("A ")
        is_first = start == 0 and is_word and not any(part.start == 0 for part in self.parts)
        return text[:1].lower() + text[1:] if is_first else text

    def covers(self, evidence: PassageRange | None) -> bool:
        """Whether it has these characters of the knowledge."""
        if evidence is None or evidence.passage != self.passage:
            return False
        return self.start <= evidence.start and evidence.end <= self.start + len(self.text)

    def cite(self, start: int, end: int) -> PassageRange:
        """Where characters of it are in the knowledge."""
        return PassageRange(self.passage, self.start + start, self.start + end)


def find_free_parts(text: str) -> list[Value]:
    """The values of a text without numbers that belong to a name, as in "Super Bowl 50"."""
    parts = read_values(text)
    ends = {part.end for part in parts if isinstance(part.content, Name)}
    return [part for part in parts if part.kind != "number" or part.start - 1 not in ends]


class Sources:
    """The knowledge of a request."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.passages = passages
        self._known: dict[PassageSentence, SourceSentence] = {}

    @cached_property
    def _sentences(self) -> list[PassageSentence]:
        return list(islice(read_passages(self.passages), MAX_SENTENCES))

    def find_nearest(self, text: str) -> list[SourceSentence]:
        """The sentences that share the most content words with ``text``, most first; none that shares no word."""
        counted = [item for item in count_shared_in(self._sentences, text) if item.shared]
        return [self._get(candidate) for candidate in rank_by_overlap(counted)[:NEAREST]]

    def list_nearest(self, text: str, count: int) -> list[SourceSentence]:
        """The sentences that share the most content words with ``text``, most first, ``count`` at most."""
        ranked = rank_by_overlap(list(count_shared_in(self._sentences, text)))
        return [self._get(candidate) for candidate in ranked[:count]]

    def list_sentences(self) -> list[SourceSentence]:
        """The sentences of the knowledge, up to ``MAX_SENTENCES``."""
        return [self._get(candidate) for candidate in self._sentences]

    def find_around(self, evidence: PassageRange) -> SourceSentence | None:
        """The sentence that has these characters; None if no single one has them, or they are not in the knowledge."""
        if not evidence.start < evidence.end:
            return None
        key = (evidence.passage, evidence.start)
        index = bisect_right(self._sentences, key, key=lambda item: (item.passage, item.sentence.start)) - 1
        if index < 0 or self._sentences[index].passage != evidence.passage:
            return None
        return self._get(self._sentences[index]) if evidence.end <= self._sentences[index].sentence.end else None

    def _get(self, candidate: PassageSentence) -> SourceSentence:
        if candidate not in self._known:
            self._known[candidate] = SourceSentence(
                candidate.passage, candidate.sentence.text, candidate.sentence.start
            )
        return self._known[candidate]
