"""How a value of a response relates to one of the knowledge: what it says of it, and whether both are of one kind.

Contents are compared in ``comparing``; here the kinds of values, what they count, and their bounds are read too.
"""

from __future__ import annotations

from .comparing import Relation, compare, compare_codes
from .demonyms import REGIONS
from .records import Clock, ExactCode, Measure, Name, Value

LARGE_COUNT = 100.0
"""Smaller counts without a noun are of anything: "two of them". A larger one, "69 million", is compared."""


def relate(ours: Value, theirs: Value) -> Relation | None:
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


def count_alike(ours: Value, theirs: Value) -> bool | None:
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


def is_hour(ours: Value, theirs: Value) -> bool:
    """Whether a time is the full hour that a bare number of the history may be: noon, of "lunch at 12"."""
    clock, number = ours.content, theirs.content
    if not (isinstance(clock, Clock) and isinstance(number, Measure)) or number.measure != "count" or number.nouns:
        return False
    return (clock.minutes - 60 * number.amount) % 720 == 0


def have_one_end(ours: Clock, theirs: Clock) -> bool:
    """Whether two times are not one the beginning and one the end of something."""
    return ours.role == theirs.role or not (ours.role and theirs.role)


def is_past(ours: Clock, theirs: Clock) -> bool:
    """Whether a time is after something opens, or before it closes, and the other end is not known."""
    if theirs.span is not None or not (ours.half_known and theirs.half_known):
        return False
    return ours.minutes > theirs.minutes if theirs.role == "opens" else ours.minutes < theirs.minutes


def is_inside(ours: Clock, theirs: Clock) -> bool:
    """Whether a time is between the ends of a range."""
    if theirs.span is None:
        return False
    first, last = theirs.span
    times = (ours.minutes,) if ours.half_known else (ours.minutes, (ours.minutes + 720) % 1440)
    return any(first <= time <= last if first <= last else time >= first or time <= last for time in times)


def is_limit(value: Value) -> bool:
    """Whether an amount is a bound: "more than 20", "at most 5"."""
    return isinstance(value.content, Measure) and value.content.hedge in ("more", "at_least", "less", "at_most")


def is_bound(value: Value) -> bool:
    """Whether a count has an upper bound, as amounts that are allowed have: "up to ten tablets"."""
    content = value.content
    return isinstance(content, Measure) and content.measure == "count" and content.hedge in ("less", "at_most")


def have_one_role(ours: Name, theirs: Name) -> bool:
    """Whether two names say the same of something: both are nationalities, or follow the same words."""
    if ours.words == theirs.words:
        return False
    if "nationality" in (ours.type, theirs.type):
        return ours.type == theirs.type and not {*ours.words, *theirs.words} & REGIONS
    return bool(ours.role[0] and ours.role[1]) and ours.role == theirs.role
