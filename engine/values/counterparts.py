"""Finds the values of the knowledge whose clauses say what the clause of a response's value says.

"Standard delivery is £4.95" has its counterpart in "Standard delivery costs £3.95", whatever other amounts the
knowledge has. Clauses are read as ``roles`` reads them, in the sentences of the knowledge that are asked for alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property

from .knowledge import Knowledge, Location, SentenceKey
from .records import Measure, Value
from .roles import Segment, list_own_words, read_segments

CLEAR = 2
"""Words that two clauses share, at least, to say the same thing."""
_HEDGING = frozenset({"withi"})
"""Stems of words that say nothing of what a value belongs to."""


class Counterparts:
    """The clauses of a response, and those of the knowledge as far as they are asked for."""

    def __init__(self, response: str, passages: Sequence[str], knowledge: Knowledge, asked: str) -> None:
        """``asked`` is the last turn, of which a clause without words of its own speaks."""
        self._response, self._passages, self._knowledge = response, passages, knowledge
        self._asked = asked
        self._known: dict[SentenceKey, list[tuple[int, Segment]]] = {}

    def find(self, value: Value, rivals: Iterable[tuple[Location, Value]]) -> tuple[list[tuple[Location, Value]], bool]:
        """The rivals whose clauses share the most words with the clause of ``value``.

        Args:
            value: A value of the response.
            rivals: Values of the knowledge that could stand in its place, in the order of preference.

        Returns:
            The rivals of the best clauses, and whether these clearly say the same thing: they share ``CLEAR`` words at
            least, and half of the words of the response's clause; or there is one that has all of these words. None may
            have the value in words ("a year"), and what is counted does not count.
        """
        words, own = self._list_words(value), list_own_words(value)
        nouns = value.content.nouns if isinstance(value.content, Measure) else frozenset[str]()
        heads = {word for word in words - nouns if not word.startswith("#")}
        scored = [(self._list_known(*rival), rival) for rival in rivals]
        most = max((len(words & known) for known, _ in scored), default=0)
        best = [(known, rival) for known, rival in scored if len(words & known) == most]
        shared = min((len(words & known - nouns) for known, _ in best), default=0)
        has_all = len(best) == 1 and bool(heads) and heads <= best[0][0]
        is_clear = has_all or (shared >= CLEAR and 2 * shared >= len(heads))
        is_clear = is_clear and all(own.isdisjoint(known) for known, _ in best)
        return [rival for _, rival in best], is_clear

    def list_beside(self, value: Value) -> tuple[Value, ...]:
        """The other values of the clause of a value of the response."""
        segment = self._by_start.get(value.start)
        return () if segment is None else tuple(other for other in segment.values if other.start != value.start)

    def _list_words(self, value: Value) -> Set[str]:
        """The words of the clause of a value; of its sentence or of the last turn if the clause has none."""
        segment = self._by_start.get(value.start)
        if segment is None:
            return frozenset()
        sentence = [other for other in self._segments if other.sentence == segment.sentence and not other.amounts]
        for words in (segment.words, frozenset[str]().union(*(other.words for other in sentence)), self._asked_words):
            heads = words - list_own_words(value) - _HEDGING
            if not all(word.startswith("#") for word in heads):
                return heads
        return frozenset()

    def _list_known(self, location: Location, value: Value) -> Set[str]:
        """The words of the clause of a value of the knowledge."""
        if location.key not in self._known:
            start, end = self._knowledge.find_sentence(location.key)
            text = self._passages[location.passage][start:end]
            self._known[location.key] = [
                (start + other.start, segment) for segment in read_segments(text) for other in segment.values
            ]
        segments = self._known[location.key]
        words = next((segment.words for start, segment in segments if start == location.start), frozenset[str]())
        return words - list_own_words(value) - _HEDGING

    @cached_property
    def _segments(self) -> Sequence[Segment]:
        return read_segments(self._response)

    @cached_property
    def _by_start(self) -> Mapping[int, Segment]:
        return {value.start: segment for segment in self._segments for value in segment.values}

    @cached_property
    def _asked_words(self) -> frozenset[str]:
        return frozenset[str]().union(*(segment.words for segment in read_segments(self._asked)))
