"""What the knowledge says about each value of a response: it supports it, contradicts it, or does not have it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple

from groundwire.runtime.errors import TooLong

from ..scheduling.steps import Steps
from ..schema.explanations import ValueOutcome
from .comparing import Relation, compare, compare_codes, gap
from .counterparts import Counterparts
from .dates import ZONE
from .demonyms import REGIONS
from .derived import (
    CHANGES,
    COMPUTING,
    FACTORS,
    HISTORY,
    MAX_OPERANDS,
    RESPONSE,
    RESTS,
    SERVINGS,
    Operand,
    derive,
    keep_computing,
    may_be_factor,
    may_follow,
)
from .equations import MAY_COMPUTE, Equation, read_equations
from .knowledge import Knowledge, Location, SentenceKey, find_values, list_content
from .names import differ_as_titles, split_by_case
from .numbers import stem
from .quotes import find_quotations, find_quoted
from .records import Clock, Date, Days, ExactCode, Measure, Name, Value
from .roles import is_rival
from .statements import ReadStatement, exchanges, find_mentioned, may_state, read_statements
from .tokens import NEGATIONS, Token, iterate_tokens, tokenize

MAX_COMPARISONS = 500_000
"""Values of the response times numbers, capitals and sentences of the knowledge: a second of plain Python."""
COMPARISONS_AT_ONCE = 50_000
TOKENS_AT_ONCE = 10_000
"""Tokens that are read in one go, and comparisons that are made: about 100 ms."""
LARGE_COUNT = 100.0
"""Smaller counts without a noun are of anything: "two of them". A larger one, "69 million", is compared."""
TURNS, TURN_CHARACTERS = 6, 5_000
"""The newest turns of the history whose numbers are read, and the characters that are read of each."""
_CALLED = frozenset({"phone", "email"})
"""The knowledge is expected to have every right value of these kinds."""
_IN = re.compile(r"\b(?:in|during|for)\s+$", re.IGNORECASE)
_LIMIT = re.compile(r"\b(?:from|since|until|till|before|after|outside)\s+(?:the\s+|late\s+|early\s+)?$", re.IGNORECASE)
_AROUND = re.compile(r"\b(?:before|after)\s+$", re.IGNORECASE)
_PARTS = re.compile(r" [×+/=-] ")
_GOES_ON = re.compile(r"\s*(?:to|-|–)\s*\d")
TAIL = 20
"""Characters before a date, or after a code, in which a preposition is looked for."""
MAX_LINES = 8
"""Lines of a list or a table, at most, whose numbers may be computed with."""
LISTED = 1
"""Sentences before a value's and the one before it whose numbers it may be the sum of."""
_MARKERS = frozenset("|-*•–")
_CLOSED = frozenset({"closed", "close", "shut", "except", "excluding", "unavailable", *NEGATIONS})


_RATES = frozenset(map(stem, ("second", "minute", "hour", "day", "week", "month", "year", "night")))


class CheckedValue(NamedTuple):
    """A value of a response and what the knowledge says about it."""

    value: Value
    outcome: ValueOutcome
    evidence: Location | None
    """What supports or contradicts it; another of its kind for an absent value, None where there is none."""
    derivation: str = ""
    """How a derived number follows from others: "15 + 12 = 27"."""


def check_values(response: str, passages: Sequence[str], history: Sequence[str] = ()) -> tuple[CheckedValue, ...]:
    """The values of ``response`` that can be checked, in order; TooLong beyond ``MAX_COMPARISONS``.

    A number that may be computed is left out, and nothing contradicts a number that the history names: "For your order
    of £45 that makes £90".

    >>> text = "It has 3 strings, and Ann made it in 1999."
    >>> for check in check_values(text, ["Made in 1999, it has four strings."]):
    ...     print(text[check.value.start : check.value.end], check.outcome)
    3 contradicted
    Ann absent
    1999 supported
    """
    steps = check_in_steps(response, passages, history)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            checked: tuple[CheckedValue, ...] = end.value
            return checked


def check_in_steps(
    response: str, passages: Sequence[str], history: Sequence[str] = ()
) -> Steps[tuple[CheckedValue, ...]]:
    """The steps of ``check_values``: empty rounds, between which a request with long knowledge may be stopped."""
    tokens, passage_tokens = yield from _tokenize((response, *passages))
    capitalised, lower = split_by_case([token for part in (tokens, *passage_tokens) for token in part])
    values = find_values(tokens, capitalised, lower)
    knowledge = Knowledge(passage_tokens, capitalised, lower)
    stated = _list_statements(tokens, knowledge)
    quotations = find_quotations(response, tokens)
    if not values and not stated and not quotations:
        return ()
    size = len(knowledge.values) + knowledge.sentences + sum(map(_count_capitals, passage_tokens))
    if max(len(values), len(stated)) * size > MAX_COMPARISONS:
        raise TooLong(
            f"The values of up to {MAX_COMPARISONS:,} pairs are compared; the response has {len(values):,} values, the "
            f"knowledge {size:,} numbers, capitals and sentences. Retrieve fewer passages, or leave this metric out."
        )
    negations: dict[int, list[int]] = {}
    for token in tokens:
        if token.lower in NEGATIONS:
            negations.setdefault(token.sentence, []).append(token.start)
    turns = [turn[:TURN_CHARACTERS] for turn in history[-TURNS:]]
    said = [
        Operand(value, turn[value.start : value.end], (HISTORY, number - len(turns)), True, False)
        for number, turn in enumerate(turns)
        for value in find_values(tokenize(turn))
    ][-MAX_OPERANDS:]
    sides = _Sides(response, passages, tokens, values, knowledge, said, turns[-1] if turns else "")
    checked: list[CheckedValue] = []
    equations = list(read_equations(response)) if MAY_COMPUTE.search(response) else []
    compared = 0
    for value in values:
        computed = any(item.start <= value.start and value.end <= item.end for item in equations)
        check = sides.decide(value, computed=computed)
        if check is not None and (
            check.outcome in ("supported", "derived")
            or _is_checkable(check.value, negations.get(value.sentence, ()), knowledge)
        ):
            checked.append(check)
        compared += size
        if compared >= COMPARISONS_AT_ONCE:
            compared = 0
            yield []
    checked = list(_leave_factors(response, checked))
    if equations:
        checked = list(_check_equations(checked, equations))
    exchanged = (_check_statement(read, knowledge) for read in stated)
    checked += [check for check in exchanged if check is not None]
    checked += _check_quotations(response, quotations, passages)
    return tuple(sorted(checked, key=lambda check: (check.value.start, check.value.end)))


def _check_quotations(response: str, quotations: Sequence[Value], passages: Sequence[str]) -> Iterator[CheckedValue]:
    """Quotations that the knowledge has, and the changed words of others; the rest may only be mentioned."""
    for value, quoted in zip(quotations, find_quoted(response, quotations, passages), strict=True):
        if quoted is None:
            continue
        location = Location(quoted.passage, quoted.start, quoted.end, 0)
        if quoted.changed is None:
            yield CheckedValue(value, "supported", location)
        else:
            start, end = quoted.changed
            yield CheckedValue(value._replace(start=start, end=end), "contradicted", location)


def _check_equations(checked: Iterable[CheckedValue], equations: Sequence[Equation]) -> Iterator[CheckedValue]:
    """The values, with the results of written computations as these decide; factors that the knowledge lacks go."""
    for check in checked:
        start, end = check.value.start, check.value.end
        item = next((item for item in equations if item.start <= start and end <= item.end), None)
        if item is None or not isinstance(check.value.content, Measure):
            yield check
        elif start < item.result_end and item.result_start < end:
            if not item.holds:
                yield CheckedValue(check.value, "contradicted", None, item.says)
            else:
                yield check if check.outcome == "supported" else CheckedValue(check.value, "derived", None, item.says)
        elif check.outcome in ("supported", "derived") or check.value.content.measure != "count":
            yield check


def _leave_factors(response: str, checked: Sequence[CheckedValue]) -> Iterator[CheckedValue]:
    """The values without the numbers of the response's own that others follow from: "two", of "two cost £15"."""
    parts = {(check.value.sentence, part) for check in checked for part in _PARTS.split(check.derivation)[:-1]}
    for check in checked:
        content = check.value.content
        is_count = isinstance(content, Measure) and content.measure == "count"
        text = response[check.value.start : check.value.end]
        if not (check.outcome == "absent" and is_count and (check.value.sentence, text) in parts):
            yield check


def _list_statements(tokens: Sequence[Token], knowledge: Knowledge) -> list[ReadStatement]:
    """What the response says of two names, where the knowledge makes such statements too."""
    if not may_state(tokens):
        return []
    names = [name for read, _ in knowledge.statements for name in (read.statement.left, read.statement.right)]
    return list(read_statements(tokens, find_mentioned(tokens, names)))


def _check_statement(ours: ReadStatement, knowledge: Knowledge) -> CheckedValue | None:
    """The statement as a contradicted value if the knowledge has it with the sides exchanged, else None."""
    for theirs, location in knowledge.statements:
        one_event = ours.qualifiers <= theirs.words and theirs.is_single
        if one_event and exchanges(ours.statement, theirs.statement):
            together = knowledge.name_together(theirs.statement.left, theirs.statement.right)
            if together == {location.key}:
                value = Value("relation", ours.start, ours.end, ours.sentence, ours.statement)
                return CheckedValue(value, "contradicted", location)
    return None


def _tokenize(texts: Sequence[str]) -> Steps[tuple[list[Token], list[list[Token]]]]:
    """The tokens of the first text, and of each of the others."""
    tokens: list[list[Token]] = []
    count = 0
    for text in texts:
        tokens.append([])
        reader = iterate_tokens(text)
        while part := list(islice(reader, TOKENS_AT_ONCE)):
            tokens[-1] += part
            count += len(part)
            if count >= TOKENS_AT_ONCE:
                count = 0
                yield []
    return tokens[0], tokens[1:]


def _is_checkable(value: Value, negations: Sequence[int], knowledge: Knowledge) -> bool:
    """Whether the knowledge can be expected to have a value that it does not support.

    That a value is not so ("it is not an album by Queen") needs no support. Nor is it known whose name is meant when a
    passage begins with "she" or "the film".
    """
    if negations and (negations[0] < value.start or value.end < next(_list_after(value, negations), 0) < value.end + 6):
        return False
    subject = isinstance(value.content, Name) and value.content.opens
    return not (subject and knowledge.opens_without_name)


def _list_after(value: Value, negations: Sequence[int]) -> Iterator[int]:
    """Where negations begin that follow a value: "1 pm is not offered"."""
    return (start for start in negations if start >= value.end)


class _Sides:
    """A response and its knowledge."""

    def __init__(
        self,
        response: str,
        passages: Sequence[str],
        tokens: Sequence[Token],
        values: Sequence[Value],
        knowledge: Knowledge,
        said: Sequence[Operand] = (),
        asked: str = "",
    ) -> None:
        self._response, self._passages = response, passages
        self._said, self._asked = said, {token.lower for token in tokenize(asked)}
        self._counterparts = Counterparts(response, tokens, passages, knowledge, asked)
        self._tokens, self._values = tokens, values
        self._knowledge = knowledge
        self._shared: dict[tuple[int, SentenceKey], int] = {}

    def check(self, value: Value) -> CheckedValue:
        """What the knowledge says about a value of the response."""
        if isinstance(value.content, Name):
            return self._check_name(value, value.content)
        if isinstance(value.content, Clock):
            return self._check_clock(value, value.content)
        supporting: list[tuple[Location, Value]] = []
        differing: list[tuple[Location, Value]] = []
        compatible = counts_others = False
        for location, theirs in self._knowledge.values:
            relation = _relate(value, theirs)
            if relation is None:
                continue
            alike = _count_alike(value, theirs)
            if relation == "supports" and not (alike is False and self._is_counted_elsewhere(value, location)):
                supporting.append((location, theirs))
                counts_others |= alike is False
            elif relation == "compatible":
                # A limit of something else allows nothing: "orders above £40" and "delivery costs £5".
                compatible |= alike is not False and (not _is_limit(theirs) or self._share(value, location))
            elif (
                value.kind == theirs.kind
                and alike
                and self._says_alike(value, location)
                and not self._is_within(value, theirs, location)
                and not self._is_range_of_codes(value, location)
            ):
                differing.append((location, theirs))
        differing.sort(key=lambda other: gap(value.content, other[1].content))
        role = [item for item in differing if self._share(value, item[0])]
        if _is_bound(value) and any(map(_is_limit, (theirs for _, theirs in role))):
            # "Up to ten tablets" is not supported by "two tablets" where the knowledge has another bound.
            supporting = [item for item in supporting if _is_limit(item[1])]
        # "Six strings" is contradicted by "four strings and six pegs".
        if supporting and not (role and counts_others and len(supporting) == 1):
            return CheckedValue(value, "supported", self._choose(value, [location for location, _ in supporting]))
        # A bare number is one of anything.
        bare = isinstance(value.content, Measure) and value.content.measure == "count" and not value.content.nouns
        others = [] if bare else differing
        if not role and (value.kind in _CALLED or (isinstance(value.content, ExactCode) and len(others) == 1)):
            role = others  # a number that one calls is right or wrong, whatever else is said
        if role and not compatible and not self._is_exception(value):
            return CheckedValue(value, "contradicted", self._choose_alike(value, role))
        if value.kind == "ordinal":
            # "It was first made in Mexico" ranks nothing, but supports "the first".
            words = tokenize(self._response[value.start : value.end])
            word_location = self._knowledge.find_name([word.lower for word in words])
            return CheckedValue(value, "supported" if word_location else "absent", word_location)
        return CheckedValue(value, "absent", self._choose_alike(value, others) if others and not compatible else None)

    def _choose_alike(self, value: Value, items: Sequence[tuple[Location, Value]]) -> Location:
        """The location whose clause, then whose sentence, shares the most words with a value's."""
        if len(items) > 1:
            items, _ = self._counterparts.find(value, items)
        return self._choose(value, [location for location, _ in items])

    def _is_counted_elsewhere(self, value: Value, location: Location) -> bool:
        """Whether a number of a sentence counts other things than the knowledge has in another: "three gift cards"."""
        assert isinstance(value.content, Measure)
        nouns, content = value.content.nouns, self._knowledge.content
        return nouns.isdisjoint(content[location.key]) and any(nouns <= words for words in content.values())

    def _is_within(self, value: Value, theirs: Value, location: Location) -> bool:
        """Whether a value of another time says nothing of this one.

        "In June" may be after "from 1 May", and a fifth year after the first.
        """
        if isinstance(value.content, Measure):
            return value.content.measure == "rank" and bool(value.content.nouns & _RATES)
        if not isinstance(value.content, Date) or value.content.month is None or value.content.day is not None:
            return False
        before = self._response[: value.start], self._passages[location.passage][: location.start]
        return bool(_IN.search(before[0][-TAIL:]) and _LIMIT.search(before[1][-TAIL:]))

    def _is_range_of_codes(self, value: Value, location: Location) -> bool:
        """Whether a code is an end of a range, which others may be in: "rows 6 to 15"."""
        after = self._passages[location.passage][location.end : location.end + TAIL]
        return isinstance(value.content, ExactCode) and _GOES_ON.match(after) is not None

    def _says_alike(self, value: Value, location: Location) -> bool:
        """Whether a sentence of the knowledge says what kind of value it has as the response's does.

        It does not where it has times of days that it does not name ("7–10, on Sundays until 11"), or counts per minute
        and the response per hour.
        """
        if isinstance(value.content, Days):
            return location.key not in self._dayless
        ours, theirs = self._content[value.sentence] & _RATES, self._knowledge.content[location.key] & _RATES
        return not (ours and theirs and value.kind in ("number", "money")) or bool(ours & theirs)

    @cached_property
    def _dayless(self) -> Set[SentenceKey]:
        of_knowledge = self._knowledge.values
        return {
            where.key for where, theirs in of_knowledge if isinstance(theirs.content, Clock) and not theirs.content.days
        }

    def _is_exception(self, value: Value) -> bool:
        """Whether a sentence says of days that something is not on them: "closed on Sundays"."""
        return isinstance(value.content, Days) and bool(self._words[value.sentence] & _CLOSED)

    def _check_clock(self, value: Value, clock: Clock) -> CheckedValue:
        """What the knowledge says about a time of day, on its days of the week if it has some."""
        times = [(location, theirs.content) for location, theirs in self._knowledge.values if theirs.kind == "time"]
        clocks = [(location, theirs) for location, theirs in times if isinstance(theirs, Clock)]
        same_days = [(location, theirs) for location, theirs in clocks if theirs.days & clock.days]
        if clock.days:
            # What is said of other days says nothing of these.
            clocks = same_days or [(location, theirs) for location, theirs in clocks if not theirs.days]
        equal = [(location, theirs) for location, theirs in clocks if compare(clock, theirs) == "supports"]
        supporting = [location for location, theirs in equal if _have_one_end(clock, theirs)]
        wrong = [
            location
            for location, theirs in clocks
            if (same_days or self._share(value, location))
            and compare(clock, theirs) == "differs"
            and _have_one_end(clock, theirs)
            and not (theirs.role == clock.role == "" and same_days)
        ]
        missed = clock.days - frozenset().union(*(theirs.days for _, theirs in equal), frozenset())
        misses = missed and any(theirs.days & missed and theirs.role == clock.role != "" for _, theirs in clocks)
        if supporting and not (same_days and misses):
            return CheckedValue(value, "supported", self._choose(value, supporting))
        others = [location for location, _ in clocks]
        inside = any(_is_inside(clock, theirs) for _, theirs in clocks) or (
            clock.role == "" and any(_is_past(clock, theirs) for _, theirs in clocks if theirs.role)
        )
        if wrong and not (inside and clock.role == ""):
            return CheckedValue(value, "contradicted", self._choose(value, wrong))
        if equal and not supporting and not wrong:
            return CheckedValue(value, "supported", equal[0][0])
        return CheckedValue(value, "absent", self._choose(value, others) if others and not inside else None)

    def decide(self, value: Value, *, computed: bool) -> CheckedValue | None:
        """What the knowledge says about a value, or how it is ``derived``; None for a number that may be computed.

        An amount that is not ``computed`` in writing is contradicted by the clause that says what its own says.
        """
        check = self.check(value)
        derived = self.derive(check)
        is_moment = isinstance(value.content, Date | Clock) and derived.outcome == "derived"
        other = None if computed or is_moment else self._find_mismatch(check)
        if other is not None:
            return CheckedValue(value, "contradicted", other)
        return derived if computed else self.leave_alone(derived)

    def _find_mismatch(self, check: CheckedValue) -> Location | None:
        """What the knowledge's clause that says what the clause of a value says has instead of the value.

        None for a value in a row of a table, or that may be computed, and where the clause allows it. An
        equal value elsewhere counts if its clause shares a word with the value's, or its sentence in that passage.
        """
        value = check.value
        if not isinstance(value.content, Measure | Date | Clock):
            return None
        if "|" in self._words[value.sentence] or (isinstance(value.content, Clock) and self._is_of_another_zone):
            return None
        if any(_relate(value, item.value) == "supports" or _is_hour(value, item.value) for item in self._said):
            return None
        is_coarse = isinstance(value.content, Date) and value.content.day is None
        if is_coarse and _AROUND.search(self._response[: value.start][-TAIL:]):
            return None  # "before September" may be "by 31 August"
        rivals = [item for item in self._knowledge.values if self._is_rival(value, *item)]
        rivals.sort(key=lambda item: (_differ_in_unit(value, item[1]), gap(value.content, item[1].content)))
        same, is_clear = self._counterparts.find(value, rivals)
        if not is_clear or self._may_be_computed(value, {location.passage for location, _ in same}):
            return None
        if not all(_relate(value, theirs) == "differs" for _, theirs in same):
            return None
        passages = {location.passage for location, _ in same}
        is_elsewhere = any(
            self._counterparts.share(value, location, theirs)
            or (location.passage in passages and self._share(value, location))
            for location, theirs in (self._knowledge.values if check.outcome == "supported" else ())
            if _relate(value, theirs) == "supports"
        )
        return None if is_elsewhere else same[0][0]

    def _is_rival(self, value: Value, location: Location, theirs: Value) -> bool:
        """Whether a value of the knowledge could stand in the place of another, and their sentences have a word."""
        ours, other = value.content, theirs.content
        if not is_rival(value, theirs) or not self._share(value, location) or not self._says_alike(value, location):
            return False
        if isinstance(ours, Clock) and isinstance(other, Clock):
            return _have_one_end(ours, other) and bool(not ours.days or not other.days or ours.days & other.days)
        return not self._is_within(value, theirs, location)

    def _may_be_computed(self, value: Value, passages: Set[int]) -> bool:
        """Whether the response says that a value is computed, or has a number with which it may be.

        So may a passage: "doubled to £34m, the rest".
        """
        words = keep_computing(value, self._words[value.sentence] | (self._asked & COMPUTING))
        words |= {word for word in (*CHANGES, *RESTS) if self._knowledge.has_word(word, passages)}
        asked = [item.value for item in self._said if item.sentence_key[1] == -1]
        return bool(words) or any(
            isinstance(other.content, Measure) and may_be_factor(value, other.content)
            for other in (*self._counterparts.list_beside(value), *asked)
        )

    def derive(self, check: CheckedValue) -> CheckedValue:
        """A value that the knowledge does not have as derived, if it follows from numbers of the knowledge."""
        value = check.value
        if check.outcome == "supported" or isinstance(value.content, Name | ExactCode | Days):
            return check
        located = self._find_operands(value)
        operands = [
            Operand(
                theirs,
                self._passages[location.passage][location.start : location.end],
                location.key,
                self._count_shared(value, location) > 0,
                words=self._knowledge.content[location.key],
            )
            for location, theirs in located
        ]
        stated = [
            Operand(
                other, self._response[other.start : other.end], (RESPONSE, other.sentence), True, self._is_known(other)
            )
            for other in self._own(value)
        ]
        text = self._response[value.start : value.end]
        words = self._words[value.sentence]
        passages = {location.passage for location, _ in located}
        factors = {word for word in FACTORS if word in words or self._knowledge.has_word(word, passages)}
        serves = {word for word in SERVINGS if self._knowledge.has_word(word, passages)}
        if serves:
            factors |= serves
            stated += self._said
        derivation = derive(value, text, operands, stated, words, factors)
        if not derivation:
            return check
        return CheckedValue(value, "derived", None, derivation)

    def leave_alone(self, check: CheckedValue) -> CheckedValue | None:
        """The check; None for a number without support that may be computed.

        Nothing contradicts a number that the history names: the user may speak of what the knowledge does not.
        """
        value = check.value
        if check.outcome not in ("contradicted", "absent") or isinstance(value.content, Name):
            return check
        if any(_relate(value, item.value) == "supports" or _is_hour(value, item.value) for item in self._said):
            return CheckedValue(value, "absent", None)
        if isinstance(value.content, Clock) and self._is_of_another_zone:
            return None
        if isinstance(value.content, ExactCode):
            return check
        if isinstance(value.content, Clock) and self._content[value.sentence]:
            return check  # times of day are many; only of a short answer, "At ten", it is not known what it is about
        located = self._find_operands(value)
        operands = [
            Operand(theirs, "", location.key, self._count_shared(value, location) > 0) for location, theirs in located
        ]
        passages = {location.passage for location, _ in located}
        lines = self._find_lines(value.sentence)
        stated = [Operand(other, "", (RESPONSE, other.sentence)) for other in self._list_others(value, lines)]
        numbers = [*operands, *self._said, *stated]
        words = self._words[value.sentence] | (self._asked & COMPUTING)
        words |= {word for word in (*CHANGES, *RESTS) if self._knowledge.has_word(word, passages)}
        listed = self._list_others(value, range(lines.start - LISTED, lines.stop + 1))
        return None if may_follow(value, numbers, words, listed) else check

    @cached_property
    def _is_of_another_zone(self) -> bool:
        """Whether the knowledge names a time zone for its times of day that the response does not name."""
        zones = {match[0].lower() for text in self._passages for match in ZONE.finditer(text)}
        return bool(zones) and zones.isdisjoint(match[0].lower() for match in ZONE.finditer(self._response))

    def _find_operands(self, value: Value) -> list[tuple[Location, Value]]:
        """Numbers of the knowledge to compute with: all if they are few, or numbers whose sentences share a word.

        An amount is computed from passages that have a sentence which shares a word with its own, if there are any.
        """
        operands = self._knowledge.values
        if len(operands) > MAX_OPERANDS:
            operands = [item for item in operands if self._share(value, item[0])]
        about = {key[0] for key, words in self._knowledge.content.items() if words & self._content[value.sentence]}
        if about and isinstance(value.content, Measure):
            operands = [item for item in operands if item[0].passage in about]
        return operands if len(operands) <= MAX_OPERANDS else []

    def _own(self, value: Value) -> list[Value]:
        """The other numbers of a value's sentence, and of the sentence before it."""
        return self._list_others(value, (value.sentence, value.sentence - 1))

    def _find_lines(self, sentence: int) -> range:
        """A sentence and the one before it; of a list or a table, its lines around the sentence."""
        first, last = sentence - 1, sentence
        while self._is_line(sentence) and last - first < MAX_LINES and self._is_line(first):
            first -= 1
        while self._is_line(sentence) and last - first < MAX_LINES and self._is_line(last + 1):
            last += 1
        return range(first, last + 1)

    def _list_others(self, value: Value, sentences: Iterable[int]) -> list[Value]:
        """The other numbers of some sentences, in order, or the nearest to a value."""
        others = [other for number in sentences for other in self._numbers.get(number, ()) if other != value]
        nearest = sorted(others, key=lambda other: abs(other.start - value.start))[:MAX_OPERANDS]
        return sorted(nearest, key=lambda other: other.start)

    def _is_line(self, sentence: int) -> bool:
        """Whether a sentence is an item of a list or a row of a table."""
        return self._first.get(sentence, "") in _MARKERS

    @cached_property
    def _first(self) -> Mapping[int, str]:
        """The first token of each sentence."""
        return {token.sentence: token.text for token in reversed(self._tokens)}

    def _is_known(self, value: Value) -> bool:
        return any(_relate(value, theirs) == "supports" for _, theirs in self._knowledge.values)

    @cached_property
    def _numbers(self) -> Mapping[int, tuple[Value, ...]]:
        """The values other than names, codes and days of the week, by their sentence."""
        numbers: dict[int, list[Value]] = {}
        for value in self._values:
            if not isinstance(value.content, Name | ExactCode | Days):
                numbers.setdefault(value.sentence, []).append(value)
        return {sentence: tuple(values) for sentence, values in numbers.items()}

    @cached_property
    def _words(self) -> Mapping[int, Set[str]]:
        """The words of each sentence."""
        words: dict[int, set[str]] = {}
        for token in self._tokens:
            words.setdefault(token.sentence, set()).add(token.lower)
        return words

    def _check_name(self, value: Value, name: Name) -> CheckedValue:
        location = self._knowledge.find_name(name.words)
        if location is None and name.optional and len(name.words) > 1:
            location = self._knowledge.find_name(name.words[1:])
            value = value._replace(start=value.start + name.optional)
        if location is not None:
            return CheckedValue(value, "supported", location)
        differing = [
            other
            for other, theirs in self._knowledge.names
            if (_have_one_role(name, theirs) and self._share(value, other))
            or (differ_as_titles(name, theirs) and self._share_more(value, name, other))
        ]
        if differing:
            return CheckedValue(value, "contradicted", self._choose(value, differing))
        return CheckedValue(value, "absent", None)

    @cached_property
    def _content(self) -> Mapping[int, Set[str]]:
        return list_content(self._tokens, self._values)

    def _share(self, value: Value, location: Location) -> bool:
        """Whether two sentences share a content word, or the response's sentence has none: "She is 43 years old"."""
        return self._count_shared(value, location) > 0 or not self._content[value.sentence]

    def _share_more(self, value: Value, name: Name, location: Location) -> bool:
        """Whether two sentences share a content word that is not in the title that ``name`` may be."""
        shared = self._content[value.sentence] & self._knowledge.content[location.key]
        return bool(shared - {stem(word) for word in name.title})

    def _count_shared(self, value: Value, location: Location) -> int:
        """Content words that the sentence of a value shares with the sentence of a location."""
        key = (value.sentence, location.key)
        if key not in self._shared:
            self._shared[key] = len(self._content[value.sentence] & self._knowledge.content[location.key])
        return self._shared[key]

    def _choose(self, value: Value, locations: Sequence[Location]) -> Location:
        """The location whose sentence shares the most content words with the value's; the first of several."""
        if len(locations) == 1:
            return locations[0]
        return max(locations, key=partial(self._count_shared, value))


def _count_capitals(tokens: Sequence[Token]) -> int:
    return sum(token.text[0].isupper() for token in tokens)


def _relate(ours: Value, theirs: Value) -> Relation | None:
    """What a value of the knowledge says about one of the response; None for what cannot be compared."""
    if isinstance(ours.content, ExactCode) or isinstance(theirs.content, ExactCode):
        if ours.kind == theirs.kind and isinstance(ours.content, ExactCode) and isinstance(theirs.content, ExactCode):
            return compare_codes(ours.kind, ours.content, theirs.content)
        return "supports" if _is_numbered(ours, theirs) or _is_numbered(theirs, ours) else None
    return compare(ours.content, theirs.content)


def _is_numbered(number: Value, code: Value) -> bool:
    """Whether a number without a noun is the number of a code: 12, of room 12."""
    content = number.content
    if not isinstance(content, Measure) or content.measure != "count" or content.nouns:
        return False
    key = code.content.key if isinstance(code.content, ExactCode) else ""
    return code.kind in ("identifier", "version") and key == f"{content.amount:g}"


def _is_hour(ours: Value, theirs: Value) -> bool:
    """Whether a time is the full hour that a bare number of the history may be: noon, of "lunch at 12"."""
    clock, number = ours.content, theirs.content
    if not (isinstance(clock, Clock) and isinstance(number, Measure)) or number.measure != "count" or number.nouns:
        return False
    return (clock.minutes - 60 * number.amount) % 720 == 0


def _have_one_end(ours: Clock, theirs: Clock) -> bool:
    """Whether two times are not one the beginning and one the end of something."""
    return ours.role == theirs.role or not (ours.role and theirs.role)


def _differ_in_unit(ours: Value, theirs: Value) -> bool:
    """Whether two amounts are written in other units: 14 days, and three years."""
    mine, other = ours.content, theirs.content
    return isinstance(mine, Measure) and isinstance(other, Measure) and mine.factor != other.factor


def _is_limit(value: Value) -> bool:
    return isinstance(value.content, Measure) and value.content.hedge in ("more", "at_least", "less", "at_most")


def _is_bound(value: Value) -> bool:
    """Whether a count has an upper bound, as amounts that are allowed have: "up to ten tablets"."""
    content = value.content
    return isinstance(content, Measure) and content.measure == "count" and content.hedge in ("less", "at_most")


def _is_past(ours: Clock, theirs: Clock) -> bool:
    """Whether a time is after something opens, or before it closes, and the other end is not known."""
    if theirs.span is not None or not (ours.half_known and theirs.half_known):
        return False
    return ours.minutes > theirs.minutes if theirs.role == "opens" else ours.minutes < theirs.minutes


def _is_inside(ours: Clock, theirs: Clock) -> bool:
    """Whether a time is between the ends of a range."""
    if theirs.span is None:
        return False
    first, last = theirs.span
    times = (ours.minutes,) if ours.half_known else (ours.minutes, (ours.minutes + 720) % 1440)
    return any(first <= time <= last if first <= last else time >= first or time <= last for time in times)


def _count_alike(ours: Value, theirs: Value) -> bool | None:
    """Whether two numbers count the same thing; None when one of them, or neither, says what it counts.

    Values with a unit, dates and times are alike.
    """
    nouns = [value.content.nouns for value in (ours, theirs) if isinstance(value.content, Measure)]
    if len(nouns) < 2:
        return True
    if not any(nouns):
        assert isinstance(ours.content, Measure)
        return None if ours.content.measure == "count" and ours.content.amount < LARGE_COUNT else True
    return bool(nouns[0] & nouns[1]) if all(nouns) else None


def _have_one_role(ours: Name, theirs: Name) -> bool:
    """Whether two names say the same of something: both are nationalities, or follow the same words."""
    if ours.words == theirs.words:
        return False
    if "nationality" in (ours.type, theirs.type):
        return ours.type == theirs.type and not {*ours.words, *theirs.words} & REGIONS
    return bool(ours.role[0] and ours.role[1]) and ours.role == theirs.role
