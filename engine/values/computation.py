"""Computes a value of a response from the numbers that its sentences, the knowledge and the history have for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from operator import attrgetter

from .computable import may_follow
from .computing_words import BOUNDS, CHANGES, COMPUTING, FACTORS, RESTS, SERVINGS
from .derived import derive
from .knowledge import RESPONSE, Location
from .operands import MAX_OPERANDS, Operand
from .outcomes import CheckedValue
from .records import Clock, Days, ExactCode, Measure, Name, Value
from .relations import is_limit, relate
from .sides import Sides

MAX_LINES = 8
"""Lines of a list or a table, at most, whose numbers may be computed with."""
LISTED = 1
"""Sentences before a value's and the one before it whose numbers it may be the sum of."""
_MARKERS = frozenset("|-*•–")


class Computation:
    """The numbers with which the values of a response may be computed."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides

    def derive(self, check: CheckedValue) -> CheckedValue:
        """A value that the knowledge does not have as derived, if it follows from numbers of the knowledge."""
        sides = self._sides
        value = check.value
        if check.outcome == "supported" or isinstance(value.content, Name | ExactCode | Days):
            return check
        located = self._find_operands(value)
        operands = [
            Operand(
                theirs,
                sides.passages[location.passage][location.start : location.end],
                location.key,
                sides.count_shared(value, location) > 0,
                words=sides.knowledge.content[location.key],
            )
            for location, theirs in located
        ]
        stated = [
            Operand(
                other, sides.response[other.start : other.end], (RESPONSE, other.sentence), True, self._is_known(other)
            )
            for other in self._list_others(value, (value.sentence, value.sentence - 1))
        ]
        text = sides.response[value.start : value.end]
        words = self._list_own_words(value)
        passages = {location.passage for location, _ in located}
        factors = {word for word in FACTORS if word in words or sides.knowledge.has_word(word, passages)}
        serves = {word for word in SERVINGS if sides.knowledge.has_word(word, passages)}
        if serves:
            factors |= serves
            stated += sides.said
        derivation = derive(value, text, operands, stated, words, factors)
        if not derivation:
            return check
        return CheckedValue(value, "derived", None, derivation)

    def leave_alone(self, check: CheckedValue) -> CheckedValue | None:
        """The check; None for a number without support that may be computed.

        Nothing contradicts a number that the history names: the user may speak of what the knowledge does not.
        """
        sides = self._sides
        value = check.value
        if check.outcome not in ("contradicted", "absent") or isinstance(value.content, Name):
            return check
        if sides.is_said(value):
            return CheckedValue(value, "absent", None)
        if isinstance(value.content, Clock) and sides.is_of_another_zone:
            return None
        if isinstance(value.content, ExactCode):
            return check
        if isinstance(value.content, Clock) and sides.content[value.sentence]:
            return check  # times of day are many; only of a short answer, "At ten", it is not known what it is about
        located = self._find_operands(value)
        operands = [
            Operand(theirs, "", location.key, sides.count_shared(value, location) > 0) for location, theirs in located
        ]
        passages = {location.passage for location, _ in located}
        lines = self._find_lines(value.sentence)
        stated = [Operand(other, "", (RESPONSE, other.sentence)) for other in self._list_others(value, lines)]
        numbers = [*operands, *sides.said, *stated]
        words = self._list_words(value, passages)
        listed = self._list_others(value, range(lines.start - LISTED, lines.stop + 1))
        return None if may_follow(value, numbers, words, listed) else check

    def _list_words(self, value: Value, passages: Set[int]) -> Set[str]:
        """The words of a value's sentence; with words of the last turn and of passages that say that it is computed."""
        sides = self._sides
        words = self._list_own_words(value) | (sides.asked & COMPUTING)
        return words | {word for word in (*CHANGES, *RESTS) if sides.knowledge.has_word(word, passages)}

    def _list_own_words(self, value: Value) -> Set[str]:
        """The words of a value's sentence; beside a limit, "more" and "less" say nothing about a percentage."""
        words = self._sides.words[value.sentence]
        is_share = isinstance(value.content, Measure) and value.content.measure == "share"
        limits = is_share and any(map(is_limit, self._numbers.get(value.sentence, ())))
        return words - BOUNDS if limits else words

    def _find_operands(self, value: Value) -> list[tuple[Location, Value]]:
        """Numbers of the knowledge to compute with: all if they are few, or numbers whose sentences share a word.

        An amount is computed from passages that have a sentence which shares a word with its own, if there are any.
        """
        sides = self._sides
        operands = sides.knowledge.values
        if len(operands) > MAX_OPERANDS:
            operands = [item for item in operands if sides.share(value, item[0])]
        about = {key[0] for key, words in sides.knowledge.content.items() if words & sides.content[value.sentence]}
        if about and isinstance(value.content, Measure):
            operands = [item for item in operands if item[0].passage in about]
        return operands if len(operands) <= MAX_OPERANDS else []

    def _list_others(self, value: Value, sentences: Iterable[int]) -> list[Value]:
        """The other numbers of some sentences, in order, or the nearest to a value."""
        others = [
            other
            for numbers in (self._numbers.get(number, ()) for number in sentences)
            for other in _take_around(numbers, value.start)
            if other != value
        ]
        nearest = sorted(others, key=lambda other: abs(other.start - value.start))[:MAX_OPERANDS]
        return sorted(nearest, key=lambda other: other.start)

    def _find_lines(self, sentence: int) -> range:
        """A sentence and the one before it; of a list or a table, its lines around the sentence."""
        first, last = sentence - 1, sentence
        while self._is_line(sentence) and last - first < MAX_LINES and self._is_line(first):
            first -= 1
        while self._is_line(sentence) and last - first < MAX_LINES and self._is_line(last + 1):
            last += 1
        return range(first, last + 1)

    def _is_line(self, sentence: int) -> bool:
        """Whether a sentence is an item of a list or a row of a table."""
        return self._first.get(sentence, "") in _MARKERS

    @cached_property
    def _first(self) -> Mapping[int, str]:
        """The first token of each sentence."""
        return {token.sentence: token.text for token in reversed(self._sides.tokens)}

    @cached_property
    def _numbers(self) -> Mapping[int, tuple[Value, ...]]:
        """The values other than names, codes and days of the week, by their sentence."""
        numbers: dict[int, list[Value]] = {}
        for value in self._sides.values:
            if not isinstance(value.content, Name | ExactCode | Days):
                numbers.setdefault(value.sentence, []).append(value)
        return {sentence: tuple(values) for sentence, values in numbers.items()}

    def _is_known(self, value: Value) -> bool:
        return any(relate(value, theirs) == "supports" for _, theirs in self._sides.knowledge.values)


def _take_around(values: Sequence[Value], start: int) -> Sequence[Value]:
    """Of values in order those that may be among the ``MAX_OPERANDS`` nearest to a character."""
    index = bisect_left(values, start, key=attrgetter("start"))
    return values[max(0, index - MAX_OPERANDS) : index + MAX_OPERANDS + 1]
