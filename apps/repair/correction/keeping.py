"""What a correction leaves as it is: code, and values that follow from others.

"Two packs give you 24 batteries" is right where a pack has twelve, although the knowledge has no 24. A value is left as
it is if the values of knowledge and response give it by one or two steps of arithmetic, if it is a time or date that a
duration leads to, or if the words beside it say that it was worked out ("£4 cheaper", "48 in total"). A value that
happens to follow is left as it is, too: a correction that is not made does less harm than a wrong one. But where a
clause of the knowledge says just what the response's clause says, with another value, arithmetic does not keep it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cached_property
from itertools import combinations, islice, permutations
from typing import NamedTuple

from groundwire.engine.extend import LIGHT, UNITS, Clock, Date, Measure, compare, find_code, stem
from groundwire.metrics import sentences

from .sources import SourceSentence, TypedValue, find_parts

_ROW = re.compile(r"^[ \t]*\|[^\n]*$", re.MULTILINE)
"""A row of a table."""
MAX_NUMBERS = 24
"""Numbers of knowledge and response that are combined, at most."""
SMALL = 12
"""Whole numbers up to this follow from two others by chance, so a third is not tried for them."""
_CLOSE = 0.012
"""Share by which a number that is rounded may differ from what it follows from."""
_FACTORS: dict[str, tuple[float, ...]] = {
    "half|halved|halve|twice|double|doubles|doubled|doubling|pair|both|twofold": (2,),
    "third|thirds|triple|threefold": (3,),
    "quarter|quarters|quadruple": (4,),
    "week|weeks|weekly": (7, 52),
    "month|months|monthly|year|years|yearly|annual|annually|dozen": (12, 52, 365),
    "day|days|daily": (7, 24, 365),
    "hour|hours|minute|minutes|min|h|second|seconds": (24, 60, 3600),
    "kilo|kilos|kg|g|gram|grams|litre|litres|liter|liters|ml|l|km|m|cm|mm|metre|metres|tonnes|kilometre|kilometres|"
    "millimetres|gb|tb|mb|ms|milliseconds|cents|euro|euros|megabytes|watt-hours|ah|mah": (10, 100, 1000, 8),
    "kib|mib|gib|bytes": (1024, 1024**2, 1000, 1000_000),
    "percent|percentage|vat|discount|average": (100,),
}
"""Words by which a number may have been multiplied or divided, with what."""
_WORKED_OUT = re.compile(
    r"(?:\b(?:total|totals|altogether|together|in all|combined|overall|sum|adds? up|add up|on average|saves?|"
    r"saving|savings|extra|cheaper|dearer|longer|shorter|older|younger|taller|larger|smaller|bigger|heavier|lighter|"
    r"hotter|colder|faster|slower|higher|lower|later|earlier|sooner|away from|difference|remaining|leaving|leaves?|"
    r"left over|instead of|double|twice|half|gap|per cent more|works out|comes? to|come out|amounts? to|equals|"
    r"multiplied|divided|rounded|roughly|works? out at|so you|so it|so your|therefore|which means|that means|"
    r"would be|you'd|you’d|(?<!it )(?<!them )back)\b|\b(?:more|less|fewer)\b(?!\s+than)|\breach(?:es)?\b)",
    re.IGNORECASE,
)
"""Words that say that the value beside them was worked out."""
_GIVEN = re.compile(
    r"\b(?:if|suppose|assuming|at your|your|you(?:'ve| have|’ve)?\s+(?:already\s+)?(?:opened|ordered|used|bought|got|"
    r"have(?!\s+\S+\s+(?:minutes|hours|days|weeks|months|years)\b)|arrive|started|paid)|for (?:a party|"
    r"a group|\S+ people|\S+ adults|\S+ servings)|picking up|started at|set (?:at|to)|\S+ people)\b",
    re.IGNORECASE,
)
"""Words that say that the value beside them is the reader's, or an example."""
_YOUR = re.compile(r"\byour\b", re.IGNORECASE)
_ZONE = re.compile(
    r"\b(?:utc|gmt|[cepm][se]?t|eastern|pacific|central|time zone|local time|your time|\w+ time)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_CLAUSE = re.compile(r"[.!?;:](?=\s|$)|,\s(?:(?:and|but|while|whereas|so)\s)?|\n|\s(?:and|but|while|whereas|so)\s")
_HALVES = {"half an hour": 30, "quarter of an hour": 15, "half hour": 30, "an hour": 60, "quarter": 15, "half past": 30}
_WEEKDAYS = frozenset({"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "weekend"})
_TIMES = _WEEKDAYS | set(UNITS) | {"morning", "noon", "afternoon", "evening", "night", "midnight"}
_TRIPLES = 2_000
"""Combinations of three numbers that are tried, at most."""
_LIGHT = LIGHT | {"cost", "costs", "price", "pay", "charge", "take", "takes", "get", "gets"}
"""Words of a clause that do not tell what its value is of."""
SHARED = 3
"""Words of a clause with a contradicted value, at least, that the knowledge's clause has, if it does not have all."""


class Clause(NamedTuple):
    """A part of a text between commas, points and conjunctions."""

    start: int
    end: int
    text: str


def find_clause(text: str, start: int, end: int) -> Clause:
    """The clause that has the characters ``start`` to ``end``.

    >>> find_clause("The bar closes at one, the kitchen at nine.", 38, 42).text
    'the kitchen at nine'
    """
    left, right = 0, len(text)
    for match in _CLAUSE.finditer(text):
        if match.end() <= start:
            left = match.end()
        elif match.start() >= end:
            right = match.start()
            break
    return Clause(left, right, text[left:right])


class Kept:
    """The parts of a response that a correction leaves as they are."""

    def __init__(self, response: str, passages: Sequence[str], history: Sequence[str] = ()) -> None:
        """Find the code in ``response``; its values and those in the ``passages`` are read when first needed."""
        self._response = response
        self._passages = passages
        self._question = history[-1] if history else ""
        self._code = [*find_code(response), *(match.span() for match in _ROW.finditer(response))]

    def touches_code(self, start: int, end: int) -> bool:
        """Whether characters ``start`` to ``end`` are in code or a row of a table."""
        return any(first < end and start < last for first, last in self._code)

    def keeps(self, start: int, end: int) -> bool:
        """Whether characters ``start`` to ``end`` touch code, or a value that follows from others."""
        if self.touches_code(start, end) or self._response[start:end].lower().removesuffix("s") in _WEEKDAYS:
            return True
        return any(self._follows(part) for part in self.values if part.start < end and start < part.end)

    def is_plain(self, part: TypedValue, source: SourceSentence, other: TypedValue, *, contradicted: bool) -> bool:
        """Whether a clause of the knowledge says what the clause of a value says, with the value ``other``.

        Args:
            part: The value of the response.
            source: The sentence of the knowledge.
            other: The value there.
            contradicted: Whether ``other`` is known to contradict it. Else the knowledge's clause has to have all words
                of the response's.

        Returns:
            False if words or other amounts say that the value was worked out, or is of something else.
        """
        clause = find_clause(self._response, part.start, part.end)
        if _is_worked_out(_YOUR.sub("", clause.text)) or not all(map(self._is_known, self._find_beside(part))):
            return False
        source_clause = find_clause(source.text, other.start, other.end)
        ours = list_heads(self._response[clause.start : part.start], self._response[part.end : clause.end])
        theirs = list_heads(source_clause.text)
        missing, shared = ours - theirs, ours & theirs
        if not missing:
            return len(shared) > 1
        return (
            contradicted
            and len(shared) >= max(SHARED, len(missing))
            and missing.isdisjoint(self.known_heads | set(UNITS))
        )

    def _find_beside(self, part: TypedValue) -> Iterator[TypedValue]:
        """The other amounts of the sentence of a value, and the amounts of the question."""
        sentence = next(item for item in sentences(self._response) if part.start < item.end)
        yield from (
            other for other in self.values if sentence.start <= other.start < sentence.end and other.start != part.start
        )
        yield from (other for other in self.asked if compare(part.value.content, other.value.content) != "supports")

    @property
    def is_asked_with_amounts(self) -> bool:
        """Whether the question has an amount that the knowledge does not have: the answer may be worked out from it."""
        return not all(map(self._is_known, self.asked))

    @cached_property
    def known_heads(self) -> set[str]:
        """The words of the knowledge that tell what a value is of."""
        return list_heads(*self._passages)

    def _is_known(self, part: TypedValue) -> bool:
        return any(compare(part.value.content, other.value.content) == "supports" for other in self.known)

    @cached_property
    def values(self) -> list[TypedValue]:
        """The numbers, times and dates of the response."""
        return [part for part in find_parts(self._response) if _is_amount(part)]

    @cached_property
    def known(self) -> list[TypedValue]:
        """The amounts of the knowledge; their places are in their passages."""
        every = (part for passage in self._passages for part in find_parts(passage) if _is_amount(part))
        return list(islice(every, MAX_NUMBERS))

    @cached_property
    def asked(self) -> list[TypedValue]:
        """The amounts of the question; their places are in it."""
        return [part for part in find_parts(self._question) if _is_amount(part)]

    @cached_property
    def _words(self) -> set[str]:
        text = " ".join((self._response, *self._passages))
        return {word.lower() for word in _WORD.findall(text)}

    def states_amount(self, start: int, end: int) -> bool:
        """Whether characters ``start`` to ``end`` have a number, time, date or day of the week."""
        text = self._response[start:end]
        if any(map(str.isdigit, text)) or any(word.lower() in _TIMES for word in _WORD.findall(text)):
            return True
        return any(part.start < end and start < part.end for part in self.values)

    def _follows(self, part: TypedValue) -> bool:
        clause = find_clause(self._response, part.start, part.end)
        if part.range.type != "entity" and _is_worked_out(clause.text):
            return True
        pool = [*self.known, *self.asked, *(other for other in self.values if other is not part)][: 2 * MAX_NUMBERS]
        content = part.value.content
        if isinstance(content, Clock):
            return self._clock_follows(content, pool)
        if isinstance(content, Date):
            return _date_follows(content, pool, self._words)
        assert isinstance(content, Measure)
        return self._number_follows(content, pool)

    def _clock_follows(self, clock: Clock, pool: Sequence[TypedValue]) -> bool:
        if any(_ZONE.search(text) for text in (self._response, *self._passages)):
            return True
        clocks = [other.value.content.minutes for other in pool if isinstance(other.value.content, Clock)]
        text = " ".join((self._response, *self._passages)).lower()
        spans = {minutes for words, minutes in _HALVES.items() if words in text} | set(_list_minutes(pool))
        spans |= {first + second for first, second in combinations(sorted(spans), 2)}
        return any(
            (minutes + direction * span - clock.minutes) % 720 == 0
            for minutes in clocks
            for span in spans
            for direction in (1, -1)
        )

    def _number_follows(self, measure: Measure, pool: Sequence[TypedValue]) -> bool:
        numbers = list(dict.fromkeys(number for other in pool for number in _list_readings(other.value.content)))
        clocks = [other.value.content.minutes for other in pool if isinstance(other.value.content, Clock)]
        numbers += [float(abs(first - second)) for first, second in combinations(clocks, 2)]
        factors = [factor for words, more in _FACTORS.items() if self._words & {*words.split("|")} for factor in more]
        targets = set(_list_readings(measure))
        return any(_is_result(target, numbers[: 2 * MAX_NUMBERS], factors) for target in targets)


def _is_worked_out(clause: str) -> bool:
    """Whether words of a clause say that its value was worked out, or is the reader's."""
    return bool(_WORKED_OUT.search(clause) or _GIVEN.search(clause))


def list_heads(*texts: str) -> set[str]:
    """The words that tell what the value of a clause is of; compounds as a whole: "next-day"."""
    lower = (match[0].lower() for text in texts for match in _WORD.finditer(text))
    return {word if "-" in word else stem(word) for word in lower if word not in _LIGHT}


def _is_amount(part: TypedValue) -> bool:
    return isinstance(part.value.content, Measure | Date | Clock)


def _list_readings(content: object) -> Iterator[float]:
    """A number as it is written, and in its base unit where that is different; the year of a date."""
    if isinstance(content, Measure):
        yield round(content.amount / content.factor, 9)
        if content.factor != 1:
            yield round(content.amount, 9)
    elif isinstance(content, Date) and content.first is not None and content.first == content.last:
        yield float(content.first)


def _list_minutes(pool: Iterable[TypedValue]) -> Iterator[int]:
    """The durations among values, in minutes; a bare number may be hours or minutes."""
    for part in pool:
        content = part.value.content
        if isinstance(content, Measure) and content.measure == "duration":
            yield round(content.amount * 1440)
        elif isinstance(content, Measure) and content.measure == "count" and 0 < content.amount < 200:
            yield from (round(content.amount), round(content.amount * 60))


def _is_result(target: float, numbers: Sequence[float], factors: Sequence[float]) -> bool:
    """Whether a number follows from one number and a factor, from two numbers, or, if it is not small, from three."""

    def equals(value: float) -> bool:
        return abs(value - target) <= max(1e-6, _CLOSE * abs(target) if target > SMALL else 0.0)

    for number in numbers:
        if any(equals(number * factor) or equals(number / factor) for factor in factors):
            return True
    for first, second in permutations(numbers, 2):
        if any(equals(value) for value in _combine(first, second)):
            return True
    if target <= SMALL and target == int(target):
        return False
    products = [*numbers, *(number * factor for number in numbers for factor in factors)]
    pairs = ((a, b) for a, b in combinations(numbers, 2))
    for first, second in islice(pairs, _TRIPLES):
        for value in _combine(first, second):
            for third in products:
                if equals(value + third) or equals(value - third) or equals(value * third):
                    return True
                if third and equals(value / third):
                    return True
    return any(
        equals(sum(numbers[start:end])) or equals(sum(numbers[start:end]) / (end - start))
        for start, end in combinations(range(min(len(numbers), MAX_NUMBERS) + 1), 2)
        if end - start > 2
    )


def _combine(first: float, second: float) -> Iterator[float]:
    yield from (first + second, abs(first - second), first * second)
    if second:
        yield first / second
        if first != second:
            yield 100 * abs(first - second) / second
    if 0 < second <= 100:
        yield from (first * second / 100, first * (1 - second / 100), first * (1 + second / 100))
    if 0 < second < 1:
        yield from (first * (1 - second), first * (1 + second))


def _date_follows(ours: Date, pool: Sequence[TypedValue], words: set[str]) -> bool:
    """Whether a date is a number of days, weeks, months or years from another."""
    dates = [part.value.content for part in pool if isinstance(part.value.content, Date)]
    counts = {
        round(number)
        for part in pool
        if isinstance(part.value.content, Measure) and part.value.content.measure != "rank"
        for number in _list_readings(part.value.content)
        if 0 < number < 1_000
    }
    months_too = bool(words & {"month", "months", "year", "years", "quarter", "summer", "winter"})
    for other in dates:
        if ours.first is not None and other.first is not None and ours.month is None:
            if abs(ours.first - other.first) in counts:
                return True
            continue
        mine, theirs = _read_day(ours, other), _read_day(other, ours)
        if mine is None or theirs is None:
            continue
        gap = abs((mine - theirs).days)
        if gap == 0:
            continue
        near = {count * days + slip for count in counts for days in (1, 7) for slip in (-1, 0, 1)}
        if months_too:
            near |= {round(count * 30.44) + slip for count in counts for slip in range(-3, 4)}
        years = {round(count * 365.25) + slip for count in counts for slip in (-2, -1, 0, 1, 2)}
        if gap in near or gap in years or (gap < 8 and words & _WEEKDAYS):
            return True
    return False


def _read_day(ours: Date, other: Date) -> date | None:
    """A date as a day, with the year of the other one if it has none itself."""
    year = ours.first if ours.first is not None else other.first or 2025
    try:
        return date(year, ours.month or other.month or 1, ours.day or 1)
    except ValueError:
        return None
