"""What the knowledge says about a single value of a response: it supports it, contradicts it, or does not have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..schema.explanations import ValueOutcome
from .comparing import compare, gap
from .knowledge import Location
from .names import differ_as_titles
from .records import Clock, Days, ExactCode, Measure, Name, Value
from .relations import count_alike, have_one_end, have_one_role, is_bound, is_inside, is_limit, is_past, relate
from .sides import TAIL, Sides
from .tokens import NEGATIONS, tokenize

_CALLED = frozenset({"phone", "email"})
"""The knowledge is expected to have every right value of these kinds."""
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
    supporting: list[tuple[Location, Value]] = []
    differing: list[tuple[Location, Value]] = []
    compatible: list[Location] = []
    counts_others = False
    for location, theirs in sides.knowledge.values:
        relation = relate(value, theirs)
        if relation is None:
            continue
        alike = count_alike(value, theirs)
        if relation == "supports" and not (alike is False and _is_counted_elsewhere(sides, value, location)):
            supporting.append((location, theirs))
            counts_others |= alike is False
        elif relation == "compatible":
            # A limit of something else allows nothing: "orders above £40" and "delivery costs £5".
            if alike is not False and (not is_limit(theirs) or sides.share(value, location)):
                compatible.append(location)
        elif (
            value.kind == theirs.kind
            and alike
            and sides.says_alike(value, location)
            and not sides.is_within(value, theirs, location)
            and not _is_range_of_codes(sides, value, location)
        ):
            differing.append((location, theirs))
    differing.sort(key=lambda other: gap(value.content, other[1].content))
    role = [item for item in differing if sides.share(value, item[0])]
    if is_bound(value) and any(map(is_limit, (theirs for _, theirs in role))):
        # "Up to ten tablets" is not supported by "two tablets" where the knowledge has another bound.
        supporting = [item for item in supporting if is_limit(item[1])]
    # "Six strings" is contradicted by "four strings and six pegs".
    if supporting and not (role and counts_others and len(supporting) == 1):
        return CheckedValue(value, "supported", sides.choose(value, [location for location, _ in supporting]))
    # A bare number is one of anything.
    bare = isinstance(value.content, Measure) and value.content.measure == "count" and not value.content.nouns
    others = [] if bare else differing
    if not role and (value.kind in _CALLED or (isinstance(value.content, ExactCode) and len(others) == 1)):
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
        return CheckedValue(value, "supported", sides.choose(value, supporting))
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
