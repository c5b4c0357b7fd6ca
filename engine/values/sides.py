"""A response beside its knowledge: the words that their sentences share, and whether they speak of the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial

from .dates import ZONE
from .knowledge import HISTORY, Knowledge, Location, SentenceKey, find_values, list_content
from .numbers import stem
from .operands import MAX_OPERANDS, Operand
from .records import Clock, Date, Days, Measure, Name, Value
from .relations import is_hour, relate
from .tokens import Token, tokenize

TURNS, TURN_CHARACTERS = 6, 5_000
"""The newest turns of the history whose numbers are read, and the characters that are read of each."""
TAIL = 20
"""Characters before a date, or after a code, in which a preposition is looked for."""
_IN = re.compile(r"\b(?:in|during|for)\s+$", re.IGNORECASE)
_LIMIT = re.compile(r"\b(?:from|since|until|till|before|after|outside)\s+(?:the\s+|late\s+|early\s+)?$", re.IGNORECASE)
_RATES = frozenset(map(stem, ("second", "minute", "hour", "day", "week", "month", "year", "night")))


class Sides:
    """A response, its knowledge and the history before it."""

    def __init__(
        self,
        response: str,
        passages: Sequence[str],
        tokens: Sequence[Token],
        values: Sequence[Value],
        knowledge: Knowledge,
        history: Sequence[str],
    ) -> None:
        """Take the response with its tokens and values, and the passages with what they state (``knowledge``)."""
        turns = [turn[:TURN_CHARACTERS] for turn in history[-TURNS:]]
        asked = turns[-1] if turns else ""
        self.response, self.passages = response, passages
        self.tokens, self.values = tokens, values
        self.knowledge = knowledge
        self.said = [
            Operand(value, turn[value.start : value.end], (HISTORY, number - len(turns)), True, False)
            for number, turn in enumerate(turns)
            for value in find_values(tokenize(turn))
        ][-MAX_OPERANDS:]
        """The last numbers of the history."""
        self.asked = {token.lower for token in tokenize(asked)}
        """The words of the last turn."""
        self._shared: dict[tuple[int, SentenceKey], int] = {}

    def is_said(self, value: Value) -> bool:
        """Whether the history names a number."""
        return any(relate(value, item.value) == "supports" or is_hour(value, item.value) for item in self.said)

    def share(self, value: Value, location: Location) -> bool:
        """Whether two sentences share a content word, or the response's sentence has none: "She is 43 years old"."""
        return self.count_shared(value, location) > 0 or not self.content[value.sentence]

    def share_more(self, value: Value, name: Name, location: Location) -> bool:
        """Whether two sentences share a content word that is not in the title that ``name`` may be."""
        shared = self.content[value.sentence] & self.knowledge.content[location.key]
        return bool(shared - {stem(word) for word in name.title})

    def count_shared(self, value: Value, location: Location) -> int:
        """Content words that the sentence of a value shares with the sentence of a location."""
        key = (value.sentence, location.key)
        if key not in self._shared:
            self._shared[key] = len(self.content[value.sentence] & self.knowledge.content[location.key])
        return self._shared[key]

    def choose(self, value: Value, locations: Sequence[Location]) -> Location:
        """The location whose sentence shares the most content words with the value's; the first of several."""
        if len(locations) == 1:
            return locations[0]
        return max(locations, key=partial(self.count_shared, value))

    def says_alike(self, value: Value, location: Location) -> bool:
        """Whether a sentence of the knowledge says what kind of value it has as the response's does.

        It does not where it has times of days that it does not name ("7–10, on Sundays until 11"), or counts per minute
        and the response per hour.
        """
        if isinstance(value.content, Days):
            return location.key not in self._dayless
        ours, theirs = self.content[value.sentence] & _RATES, self.knowledge.content[location.key] & _RATES
        return not (ours and theirs and value.kind in ("number", "money")) or bool(ours & theirs)

    def is_within(self, value: Value, theirs: Value, location: Location) -> bool:
        """Whether a value of another time says nothing of this one.

        "In June" may be after "from 1 May", and a fifth year after the first.
        """
        if isinstance(value.content, Measure):
            return value.content.measure == "rank" and bool(value.content.nouns & _RATES)
        if not isinstance(value.content, Date) or value.content.month is None or value.content.day is not None:
            return False
        before = self.response[: value.start], self.passages[location.passage][: location.start]
        return bool(_IN.search(before[0][-TAIL:]) and _LIMIT.search(before[1][-TAIL:]))

    @cached_property
    def is_of_another_zone(self) -> bool:
        """Whether the knowledge names a time zone for its times of day that the response does not name."""
        zones = {match[0].lower() for text in self.passages for match in ZONE.finditer(text)}
        return bool(zones) and zones.isdisjoint(match[0].lower() for match in ZONE.finditer(self.response))

    @cached_property
    def _dayless(self) -> Set[SentenceKey]:
        of_knowledge = self.knowledge.values
        return {
            where.key for where, theirs in of_knowledge if isinstance(theirs.content, Clock) and not theirs.content.days
        }

    @cached_property
    def content(self) -> Mapping[int, Set[str]]:
        """Stems of the content words of each sentence of the response."""
        return list_content(self.tokens, self.values)

    @cached_property
    def words(self) -> Mapping[int, Set[str]]:
        """The words of each sentence of the response."""
        words: dict[int, set[str]] = {}
        for token in self.tokens:
            words.setdefault(token.sentence, set()).add(token.lower)
        return words
