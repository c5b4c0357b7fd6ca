"""A response beside its knowledge: shared words, numbers to compute with, and what is said of a value.

The knowledge supports a value, contradicts it, or does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from functools import cached_property, partial
from itertools import permutations
from typing import NamedTuple

from ..schema.explanations import ValueOutcome
from .clauses import find_owned
from .codes import is_source_name
from .comparing import (
    UNITS_BY_STEM,
    bound_alike,
    compare,
    count_alike,
    find_side,
    gap,
    have_one_end,
    have_one_kind,
    have_one_role,
    is_bound,
    is_hour,
    is_inside,
    is_limit,
    is_loose,
    is_other_end,
    is_past,
    relate,
)
from .contacts import CONTACTS, find_contact_of
from .dates import ZONE
from .knowledge import HISTORY, Knowledge, Location, SentenceKey, find_values, list_content
from .names import differ_as_titles
from .numbers import stem
from .tokens import NEGATIONS, Clock, Content, Date, Days, ExactCode, Measure, Name, Token, Value, tokenize
from .units import MONEY

MAX_OPERANDS = 24
"""Numbers of each text that are computed with; of more of them any number is a sum."""
_HALF_A_POINT = 0.005 * (1 + 1e-6)


class Operand(NamedTuple):
    """A number that may be computed with."""

    value: Value
    text: str
    sentence_key: SentenceKey
    """Its passage and sentence; ``RESPONSE`` and ``HISTORY`` are passages too."""
    related: bool = True
    """Whether its sentence shares a content word with the response's."""
    certain: bool = True
    """Whether the knowledge has it; the response may add numbers of its own, "two packs"."""
    words: Set[str] = frozenset()
    """The content words of its sentence."""


def go_together(left: Operand, right: Operand) -> bool:
    """Whether two numbers may be computed with: of one passage, of sentences about the value, or of the response."""
    spans = [item.value.content.span for item in (left, right) if isinstance(item.value.content, Measure)]
    if len(spans) == 2 and spans[0] is not None and spans[0] == spans[1]:
        return False  # the ends of one range
    passages = (left.sentence_key[0], right.sentence_key[0])
    return min(passages) < 0 or passages[0] == passages[1] or (left.related and right.related)


def are_linked(duration: Operand, moment: Operand) -> bool:
    """Whether a duration may begin or end at a date or time: "within 15 days of payout", and "payout: 5 June"."""
    return go_together(duration, moment) or not duration.words.isdisjoint(moment.words)


def list_pairs(items: Iterable[Operand]) -> Iterator[tuple[Operand, Operand]]:
    """Pairs of numbers in both orders that may be computed with."""
    return (pair for pair in permutations(items, 2) if go_together(*pair))


def is_alike(target: Measure, content: object) -> bool:
    """Whether a content is an amount of what the target measures."""
    return isinstance(content, Measure) and content.measure == target.measure


def share_nouns(target: Measure, item: Operand) -> bool:
    """Whether two amounts count the same thing, or measure in one unit."""
    assert isinstance(item.value.content, Measure)
    return target.measure != "count" or bool(target.nouns & item.value.content.nouns)


def is_bare(item: Operand) -> bool:
    """Whether a number does not say what it counts: "a pack of 12"."""
    return isinstance(item.value.content, Measure) and not item.value.content.nouns


def get_amount(item: Operand) -> float:
    """The amount of an operand that is a measure, in its base unit."""
    assert isinstance(item.value.content, Measure)
    return item.value.content.amount


def get_factor(item: Operand) -> float:
    """A number as a factor: 2 of "two packs", 3 of "3 hours"; 0 for what is none."""
    content = item.value.content
    if not isinstance(content, Measure) or content.measure in MONEY or content.measure in ("share", "rank"):
        return 0.0
    return content.amount / content.factor


def list_durations(items: Sequence[Operand]) -> Iterator[tuple[Operand, Measure]]:
    """The operands that are durations, each with its content."""
    for item in items:
        if isinstance(item.value.content, Measure) and item.value.content.measure == "duration":
            yield item, item.value.content


def equals(target: Measure, amount: float) -> bool:
    """Whether an amount is the target, rounded as the target is written."""
    return abs(target.amount - amount) <= find_margin(target)


def is_difference(target: Measure, left: float, right: float) -> bool:
    """Whether an amount is the difference of two others; of percentages to half a point, and never of nothing."""
    within = find_margin(target) if target.measure != "share" else min(find_margin(target), _HALF_A_POINT)
    return right != 0 and abs(target.amount - (left - right)) <= within


def find_margin(target: Measure) -> float:
    """How far an amount may be from the target that is rounded."""
    share = 0.05 if target.hedge == "about" else 1.0 if target.measure == "share" else 0.001
    rounded = min(0.5 * target.step, share * abs(target.amount)) * (1 + 1e-6)
    return max(1e-6 * max(abs(target.amount), 1.0), rounded)


MAX_OWNERS = 8
"""Values that support one of a response, at most, whose clauses are read."""
TURNS, TURN_CHARACTERS = 6, 5_000
"""The newest turns of the history whose numbers are read, and the characters that are read of each."""
TAIL = 20
"""Characters before a date, or after a code, in which a preposition is looked for."""
_IN = re.compile(r"\b(?:in|during|for)\s+$", re.IGNORECASE)
_AFTER = re.compile(r"\bafter\s+$", re.IGNORECASE)
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
        self.response, self.passages, self.turns = response, passages, turns
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

    @cached_property
    def named(self) -> Set[Content]:
        """The names of source code that the response has: none of them is in the place of another."""
        return {value.content for value in self.values if is_source_name(value.content)}

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

    def counts_alike(self, value: Value, theirs: Value, location: Location) -> bool:
        """Whether two sentences name what one of them counts, and the other measures in a unit.

        "22 paid vacation days" are "22 days of paid vacation", and "5 unused days" are not "5 days of paid vacation". A
        year counts nothing: "1984 seats", and "it opened in 1984".
        """
        ours, other = value.content, theirs.content
        if isinstance(ours, Measure) and isinstance(other, Date) and ours.nouns:
            return bool(ours.nouns & self.knowledge.content[location.key])
        if not (isinstance(ours, Measure) and isinstance(other, Measure)) or ours.measure == other.measure:
            return True
        nouns = frozenset[str]().union(*(side.nouns for side in (ours, other) if side.measure == "count"))
        nouns -= UNITS_BY_STEM.keys()
        return not nouns or bool(nouns & self.content[value.sentence] & self.knowledge.content[location.key])

    def is_within(self, value: Value, theirs: Value, location: Location) -> bool:
        """Whether a value of another time says nothing of this one.

        "In June" may be after "from 1 May", a fifth year after the first, and "after 20 days" is "within 30 days".
        """
        if isinstance(value.content, Measure):
            if value.content.measure == "rank":
                return bool(value.content.nouns & _RATES)
            assert isinstance(theirs.content, Measure)
            is_earlier = find_side(theirs.content) == "upper" and value.content.amount < theirs.content.amount
            return is_earlier and _AFTER.search(self.response[: value.start][-TAIL:]) is not None
        if not isinstance(value.content, Date) or value.content.month is None or value.content.day is not None:
            return False
        before = self.response[: value.start], self.passages[location.passage][: location.start]
        return bool(_IN.search(before[0][-TAIL:]) and _LIMIT.search(before[1][-TAIL:]))

    def find_owned(self, value: Value, supporting: Sequence[Location]) -> Location | None:
        """What the knowledge says instead, if all that supports a value is said of something else in its sentence."""
        if len(supporting) > MAX_OWNERS:
            return None
        if value.kind in CONTACTS:
            names = [other.content for other in self.values if other.sentence == value.sentence]
            named = [name for name in names if isinstance(name, Name)]
            return find_contact_of(named[0], self.knowledge, value, supporting) if len(named) == 1 else None
        if not isinstance(value.content, Measure | Clock):
            return None
        tokens = [token for token in self.tokens if token.sentence == value.sentence]
        amounts = [other for other in self.values if other.sentence == value.sentence and other.is_amount]
        if sum(other.kind == value.kind for other in amounts) > 1:
            return None
        tokens = [token for token in tokens if not any(other.start <= token.start < other.end for other in amounts)]
        owned: Location | None = None
        for location in supporting:
            values = self.knowledge.by_sentence.get(location.key, ())
            equal = next((other for other in values if other.start == location.start), None)
            if equal is None:
                return None
            alike = [other for other in values if other.kind == equal.kind]
            other = find_owned(value, tokens, self.knowledge.list_tokens(location.key), alike, equal)
            if other is None:
                return None
            owned = owned or Location(location.passage, other.start, other.end, other.sentence)
        return owned

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


_GOES_ON = re.compile(r"\s*(?:to|-|–)\s*\d")
_CLOSED = frozenset({"closed", "close", "shut", "except", "excluding", "unavailable", *NEGATIONS})


class CheckedValue(NamedTuple):
    """A value of a response and what the knowledge says about it."""

    value: Value
    outcome: ValueOutcome
    evidence: Location | None
    """What supports or contradicts it; another of its kind for an absent value, None where there is none."""
    derivation: str = ""
    """How a derived number follows from others: "15 + 12 = 27"."""


def check_value(sides: Sides, value: Value) -> CheckedValue:
    """What the knowledge says about a value of the response."""
    if isinstance(value.content, Name):
        return _check_name(sides, value, value.content)
    if isinstance(value.content, Clock):
        return _check_clock(sides, value, value.content)
    if is_source_name(value.content):
        return _check_source_name(sides, value, value.content)
    supporting: list[tuple[Location, Value]] = []
    differing: list[tuple[Location, Value]] = []
    compatible: list[Location] = []
    counts_others = False
    for location, theirs in sides.knowledge.values:
        relation = relate(value, theirs)
        if relation is None:
            continue
        alike = count_alike(value, theirs)
        if relation == "supports" and not sides.counts_alike(value, theirs, location):
            continue
        if relation == "supports" and is_loose(value, theirs) and not sides.share(value, location):
            continue
        if relation == "supports" and not (alike is False and _is_counted_elsewhere(sides, value, location)):
            supporting.append((location, theirs))
            counts_others |= alike is False
        elif relation == "compatible":
            # A limit of something else allows nothing: "orders above £40" and "delivery costs £5".
            if alike is not False and (not is_limit(theirs) or sides.share(value, location)):
                compatible.append(location)
        elif (
            have_one_kind(value, theirs)
            and (alike or is_other_end(value, theirs))
            and sides.says_alike(value, location)
            and not sides.is_within(value, theirs, location)
            and not _is_range_of_codes(sides, value, location)
        ):
            differing.append((location, theirs))
    differing.sort(key=lambda other: gap(value.content, other[1].content))
    ranges = [item for item in differing if is_other_end(value, item[1])]
    role = ranges or [item for item in differing if sides.share(value, item[0])]
    if is_bound(value) and any(map(is_limit, (theirs for _, theirs in role))):
        # "Up to ten tablets" is not supported by "two tablets" where the knowledge has another bound.
        supporting = [
            (location, theirs)
            for location, theirs in supporting
            if bound_alike(value, theirs) and gap(value.content, theirs.content)[1] < 1e-6
        ]
    # "Six strings" is contradicted by "four strings and six pegs".
    if supporting and not (role and counts_others and len(supporting) == 1):
        return _support(sides, value, [location for location, _ in supporting])
    # A bare number is one of anything.
    bare = isinstance(value.content, Measure) and value.content.measure == "count" and not value.content.nouns
    others = [] if bare else differing
    if not role and (value.kind in CONTACTS or (isinstance(value.content, ExactCode) and len(others) == 1)):
        role = others  # a number that one calls is right or wrong, whatever else is said
    closest = max((sides.count_shared(value, location) for location, _ in role), default=0)
    is_allowed = any(sides.count_shared(value, location) >= closest for location in compatible)
    if role and not is_allowed and not _is_exception(sides, value):
        return CheckedValue(value, "contradicted", _choose_alike(sides, value, role))
    if value.kind == "ordinal":
        # "It was first made in Mexico" ranks nothing, but supports "the first".
        words = tokenize(sides.response[value.start : value.end])
        word_location = sides.knowledge.find_name([word.lower for word in words])
        return CheckedValue(value, "supported" if word_location else "absent", word_location)
    return CheckedValue(value, "absent", _choose_alike(sides, value, others) if others and not compatible else None)


def _support(sides: Sides, value: Value, supporting: Sequence[Location]) -> CheckedValue:
    """A value as supported, or as contradicted where the knowledge has it of something else alone."""
    owned = sides.find_owned(value, supporting)
    if owned is not None:
        return CheckedValue(value, "contradicted", owned)
    return CheckedValue(value, "supported", sides.choose(value, supporting))


def _check_name(sides: Sides, value: Value, name: Name) -> CheckedValue:
    location = sides.knowledge.find_name(name.words)
    if location is None and name.optional and len(name.words) > 1:
        location = sides.knowledge.find_name(name.words[1:])
        value = value._replace(start=value.start + name.optional)
    if location is not None:
        return CheckedValue(value, "supported", location)
    differing = [
        other
        for other, theirs in sides.knowledge.names
        if (have_one_role(name, theirs) and sides.share(value, other))
        or (differ_as_titles(name, theirs) and sides.share_more(value, name, other))
    ]
    if differing:
        return CheckedValue(value, "contradicted", sides.choose(value, differing))
    return CheckedValue(value, "absent", None)


def _check_source_name(sides: Sides, value: Value, code: ExactCode) -> CheckedValue:
    """What the knowledge says about a name of source code: whether it has it anywhere, or others of its kind."""
    location = sides.knowledge.find_source_name(code.key)
    if location is not None:
        return CheckedValue(value, "supported", location)
    if any(code.key in turn.lower() for turn in sides.turns):
        return CheckedValue(value, "absent", None)
    others = [
        (other, theirs.content.key)
        for other, theirs in sides.knowledge.values
        if is_source_name(theirs.content) and theirs.content.label == code.label and theirs.content not in sides.named
    ]
    related = [item for item in others if sides.share(value, item[0])] or (others if len(others) == 1 else [])
    peers = related or others
    if not peers:
        return CheckedValue(value, "absent", None)
    # Names are exchanged for similar ones.
    nearest = max(peers, key=lambda item: SequenceMatcher(None, code.key, item[1]).ratio())[0]
    return CheckedValue(value, "contradicted" if related else "absent", nearest)


def _check_clock(sides: Sides, value: Value, clock: Clock) -> CheckedValue:
    """What the knowledge says about a time of day, on its days of the week if it has some."""
    times = [(location, theirs.content) for location, theirs in sides.knowledge.values if theirs.kind == "time"]
    clocks = [(location, theirs) for location, theirs in times if isinstance(theirs, Clock)]
    same_days = [(location, theirs) for location, theirs in clocks if theirs.days & clock.days]
    if clock.days:
        # What is said of other days says nothing of these.
        clocks = same_days or [(location, theirs) for location, theirs in clocks if not theirs.days]
    equal = [(location, theirs) for location, theirs in clocks if compare(clock, theirs) == "supports"]
    supporting = [location for location, theirs in equal if have_one_end(clock, theirs)]
    wrong = [
        location
        for location, theirs in clocks
        if (same_days or sides.share(value, location))
        and compare(clock, theirs) == "differs"
        and have_one_end(clock, theirs)
        and not (theirs.role == clock.role == "" and same_days)
    ]
    missed = clock.days - frozenset().union(*(theirs.days for _, theirs in equal), frozenset())
    misses = missed and any(theirs.days & missed and theirs.role == clock.role != "" for _, theirs in clocks)
    if supporting and not (same_days and misses):
        return _support(sides, value, supporting)
    others = [location for location, _ in clocks]
    inside = any(is_inside(clock, theirs) for _, theirs in clocks) or (
        clock.role == "" and any(is_past(clock, theirs) for _, theirs in clocks if theirs.role)
    )
    if wrong and not (inside and clock.role == ""):
        return CheckedValue(value, "contradicted", sides.choose(value, wrong))
    if equal and not supporting and not wrong:
        return CheckedValue(value, "supported", equal[0][0])
    return CheckedValue(value, "absent", sides.choose(value, others) if others and not inside else None)


def _choose_alike(sides: Sides, value: Value, items: Sequence[tuple[Location, Value]]) -> Location:
    """The location whose sentence shares the most words with a value's."""
    return sides.choose(value, [location for location, _ in items])


def _is_counted_elsewhere(sides: Sides, value: Value, location: Location) -> bool:
    """Whether a number of a sentence counts other things than the knowledge has in another: "three gift cards"."""
    assert isinstance(value.content, Measure)
    nouns, content = value.content.nouns, sides.knowledge.content
    return nouns.isdisjoint(content[location.key]) and any(nouns <= words for words in content.values())


def _is_range_of_codes(sides: Sides, value: Value, location: Location) -> bool:
    """Whether a code is an end of a range, which others may be in: "rows 6 to 15"."""
    after = sides.passages[location.passage][location.end : location.end + TAIL]
    return isinstance(value.content, ExactCode) and _GOES_ON.match(after) is not None


def _is_exception(sides: Sides, value: Value) -> bool:
    """Whether a sentence says of days that something is not on them: "closed on Sundays"."""
    return isinstance(value.content, Days) and bool(sides.words[value.sentence] & _CLOSED)
