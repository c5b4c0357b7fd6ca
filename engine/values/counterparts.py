"""Finds the values of the knowledge whose clauses say what the clause of a response's value says.

"Standard delivery is £4.95" has its counterpart in "Standard delivery costs £3.95", whatever other amounts the
knowledge has. Clauses are read as ``clauses`` reads them, in the sentences of the knowledge that are asked for alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from .clauses import ReadClause, join_words, list_own_words, read_clauses
from .knowledge import RESPONSE, Knowledge, Location, SentenceKey, find_bounds
from .numbers import stem
from .records import Measure, Value
from .tokens import Token

CLEAR = 2
"""Words that two clauses share, at least, to say the same thing."""
MAX_SENTENCE = 1_000
"""Characters of a sentence, at most, that is read: the time grows faster than its length."""
_WITHIN = stem("within")
"""It says nothing of what a value belongs to."""


class Counterparts:
    """The clauses of a response and of the knowledge, by their sentence, as far as they are asked for."""

    def __init__(
        self, response: str, tokens: Sequence[Token], passages: Sequence[str], knowledge: Knowledge, asked: str
    ) -> None:
        """``asked`` is the last turn: a clause without words of its own speaks of what it names."""
        self._response, self._tokens = response, tokens
        self._passages, self._knowledge = passages, knowledge
        self._asked = asked[:MAX_SENTENCE]
        self._clauses: dict[SentenceKey, list[tuple[int, ReadClause]]] = {}

    def find(self, value: Value, rivals: Iterable[tuple[Location, Value]]) -> tuple[list[tuple[Location, Value]], bool]:
        """The rivals whose clauses share the most words with the clause of ``value``.

        Args:
            value: A value of the response.
            rivals: Values of the knowledge that could stand in its place, in the order of preference.

        Returns:
            The rivals of the best clauses, and whether these clearly say the same thing: they share ``CLEAR`` words at
            least, and half of the words of the response's clause; or one alone has all of these words. None may
            have the value in words ("a year"), and what is counted does not count.
        """
        words, value_words = self._list_words(value), list_own_words(value)
        nouns = value.content.nouns if isinstance(value.content, Measure) else frozenset[str]()
        heads = {word for word in words - nouns if not word.startswith("#")}
        scored = [(self._list_known(*rival), rival) for rival in rivals]
        most = max((len(words & their_words) for their_words, _ in scored), default=0)
        best = [(their_words, rival) for their_words, rival in scored if len(words & their_words) == most]
        shared = min((len(words & their_words - nouns) for their_words, _ in best), default=0)
        has_all = len(best) == 1 and bool(heads) and heads <= best[0][0]
        is_clear = has_all or (shared >= CLEAR and 2 * shared >= len(heads))
        is_clear = is_clear and all(value_words.isdisjoint(their_words) for their_words, _ in best)
        return [rival for _, rival in best], is_clear

    def share(self, value: Value, location: Location, theirs: Value) -> bool:
        """Whether the clauses of two values share a word."""
        return not self._list_words(value).isdisjoint(self._list_known(location, theirs))

    def list_beside(self, value: Value) -> list[Value]:
        """The other values of the clause of a value of the response."""
        clause = self._find_clause((RESPONSE, value.sentence), value)
        return [] if clause is None else [other for other in clause.values if other.content != value.content]

    def _list_words(self, value: Value) -> Set[str]:
        """The words of the clause of a value; of its sentence or of the last turn if the clause has none."""
        key = (RESPONSE, value.sentence)
        clause = self._find_clause(key, value)
        if clause is None:
            return frozenset()
        plain = join_words(other for _, other in self._read(key) if not other.amounts)
        for words in (clause.words, plain, self._asked_words):
            heads = words - list_own_words(value) - {_WITHIN}
            if not all(word.startswith("#") for word in heads):
                return heads
        return frozenset()

    def _list_known(self, location: Location, value: Value) -> Set[str]:
        """The words of the clause of a value of the knowledge."""
        clause = self._find_clause(location.key, value)
        return frozenset() if clause is None else clause.words - list_own_words(value) - {_WITHIN}

    def _find_clause(self, key: SentenceKey, value: Value) -> ReadClause | None:
        return next(
            (
                clause
                for start, clause in self._read(key)
                if any(start + other.start == value.start for other in clause.values)
            ),
            None,
        )

    def _read(self, key: SentenceKey) -> list[tuple[int, ReadClause]]:
        """The clauses of a sentence, each with where the sentence begins; none of a very long one."""
        if key not in self._clauses:
            passage, sentence = key
            text = self._response if passage == RESPONSE else self._passages[passage]
            start, end = self._bounds[sentence] if passage == RESPONSE else self._knowledge.find_sentence(key)
            is_read = end - start <= MAX_SENTENCE
            self._clauses[key] = [(start, clause) for clause in read_clauses(text[start:end])] if is_read else []
        return self._clauses[key]

    @cached_property
    def _bounds(self) -> dict[int, tuple[int, int]]:
        return find_bounds(self._tokens)

    @cached_property
    def _asked_words(self) -> frozenset[str]:
        return join_words(read_clauses(self._asked))
