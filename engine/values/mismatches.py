"""Finds what the knowledge has instead of a value, by the clause of the knowledge that says what the value's says."""

from __future__ import annotations

import re

from .comparing import gap
from .computation import Computation
from .knowledge import Location
from .outcomes import CheckedValue
from .records import Clock, Date, Measure, Value
from .relations import differ_in_unit, have_one_end, is_rival, relate
from .sides import TAIL, Sides

_AROUND = re.compile(r"\b(?:before|after)\s+$", re.IGNORECASE)


def find_mismatch(sides: Sides, computation: Computation, check: CheckedValue) -> Location | None:
    """What the knowledge's clause that says what the clause of a value says has instead of the value.

    None for a value in a row of a table, or that may be computed, and where the clause allows it. An
    equal value elsewhere counts if its clause shares a word with the value's, or its sentence in that passage.
    """
    value = check.value
    if not isinstance(value.content, Measure | Date | Clock):
        return None
    if "|" in sides.words[value.sentence] or (isinstance(value.content, Clock) and sides.is_of_another_zone):
        return None
    if sides.is_said(value):
        return None
    is_coarse = isinstance(value.content, Date) and value.content.day is None
    if is_coarse and _AROUND.search(sides.response[: value.start][-TAIL:]):
        return None  # "before September" may be "by 31 August"
    rivals = [item for item in sides.knowledge.values if _may_replace(sides, value, *item)]
    rivals.sort(key=lambda item: (differ_in_unit(value, item[1]), gap(value.content, item[1].content)))
    same, is_clear = sides.counterparts.find(value, rivals)
    if not is_clear or computation.may_give(value, {location.passage for location, _ in same}):
        return None
    if not all(relate(value, theirs) == "differs" for _, theirs in same):
        return None
    passages = {location.passage for location, _ in same}
    is_elsewhere = any(
        sides.counterparts.share(value, location, theirs)
        or (location.passage in passages and sides.share(value, location))
        for location, theirs in (sides.knowledge.values if check.outcome == "supported" else ())
        if relate(value, theirs) == "supports"
    )
    return None if is_elsewhere else same[0][0]


def _may_replace(sides: Sides, value: Value, location: Location, theirs: Value) -> bool:
    """Whether a value of the knowledge could stand in the place of another, and their sentences have a word."""
    ours, other = value.content, theirs.content
    if not is_rival(value, theirs) or not sides.share(value, location) or not sides.says_alike(value, location):
        return False
    if isinstance(ours, Clock) and isinstance(other, Clock):
        return have_one_end(ours, other) and bool(not ours.days or not other.days or ours.days & other.days)
    return not sides.is_within(value, theirs, location)
