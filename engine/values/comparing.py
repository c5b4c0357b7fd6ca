"""Compares two values: does one support the other, may both be true, or do they differ?

Amounts are intervals ("more than 20", "almost 5,000"), dates are as coarse as they are written. A coarser value is
supported by a finer one; a finer one is compatible with a coarser one, and not supported. Whole values are compared by
their kinds, what they count, and their bounds too.
"""

from __future__ import annotations

from collections.abc import Set
from math import inf
from typing import Literal, TypeAlias

from groundwire.runtime.texts.characters import is_digits

from ..schema.explanations import ValueKind
from ..text.calendar import DAYS
from .codes import SHORT_PHONE, parse_version
from .hedges import SIDES
from .numbers import stem
from .tokens import Clock, Content, Date, Days, ExactCode, Hedge, Measure, Name, Side, Value
from .units import AMBIGUOUS, REGIONS, UNITS

Relation: TypeAlias = Literal["supports", "compatible", "differs"]
_ABOUT = 0.1
"""Share of an amount by which "about" may be off, if that is less than half of its last digit's place."""
_ROUNDED = 0.005
"""Share of an amount that may be rounded off without a hedge: 5,000 for 4,993."""
UNITS_BY_STEM = {stem(name): unit for name, unit in UNITS.items()}
_CONVERTED = 0.05
"""Share of an amount that may be rounded off in another unit: 5 km for 3.1 miles."""


def compare(ours: Content, theirs: Content) -> Relation | None:
    """What ``theirs``, of the knowledge, says about ``ours``, of the response; None for values of different types.

    Names are compared with the words of the knowledge instead (``outcomes``).
    """
    if isinstance(ours, Measure) and isinstance(theirs, Measure):
        return _compare_measures(ours, theirs)
    if isinstance(ours, Date) and isinstance(theirs, Date):
        return _compare_dates(ours, theirs)
    if isinstance(ours, Clock) and isinstance(theirs, Clock):
        return _compare_clocks(ours, theirs)
    if isinstance(ours, Days) and isinstance(theirs, Days):
        return _compare_sets(ours.days, theirs.days)
    # A number that may be a year, and a year.
    if isinstance(ours, Date) and isinstance(theirs, Measure):
        ours, theirs = theirs, ours
    if isinstance(ours, Measure) and isinstance(theirs, Date) and ours.measure == "count":
        same = theirs.first == theirs.last == ours.amount and theirs.month is None
        return "supports" if same else None
    return None


def gap(ours: Content, theirs: Content) -> tuple[int, float]:
    """How far two values that differ are apart: parts of a date that differ, then the distance of years or amounts."""
    if isinstance(ours, Measure) and isinstance(theirs, Measure):
        return 0, abs(ours.amount - theirs.amount)
    if isinstance(ours, Date) and isinstance(theirs, Date):
        parts = (ours.month != theirs.month) + (ours.day != theirs.day)
        return parts, abs((ours.first or 0) - (theirs.first or 0))
    return 0, 0.0


def _compare_measures(ours: Measure, theirs: Measure) -> Relation | None:
    if ours.measure != theirs.measure:
        readings = [
            *(_compare_measures(reading, theirs) for reading in _list_readings(ours, theirs.measure)),
            *(_compare_measures(ours, reading) for reading in _list_readings(theirs, ours.measure)),
        ]
        if readings:
            return "supports" if "supports" in readings else readings[0]
        if _is_same_number(ours, theirs):
            return "supports"
        return "differs" if _are_other_ages(ours, theirs) else None
    if ours.measure == "rank":
        return "supports" if ours.amount == theirs.amount else "differs"
    side = find_side(ours)
    if side != "none" and theirs.span is not None and theirs.amount != theirs.span[side == "upper"]:
        return None  # the other end of a range: the longest of "3 to 5 days" is 5
    if _is_equal(ours, theirs):
        return "supports" if _agree_hedges(ours.hedge, theirs.hedge) else "compatible"
    bounds = _compare_bounds(ours, theirs)
    if bounds is not None:
        return bounds
    low, high = _find_interval(ours._replace(hedge="at_most") if ours.hedge == "within" else ours)
    their_low, their_high = _find_interval(theirs)
    if low <= their_low and their_high <= high and ours.hedge != "exact":
        return "supports"
    if low <= their_high and their_low <= high:
        return "compatible"
    if theirs.span is not None and theirs.span[0] <= ours.amount <= theirs.span[1]:
        return "compatible"
    return "differs"


def find_side(measure: Measure) -> Side:
    """The side on which an amount is a limit or a bound."""
    return SIDES.get(measure.hedge, measure.limit)


def _compare_bounds(ours: Measure, theirs: Measure) -> Relation | None:
    """What a limit says about another one, and about an amount that is tried against it; None for no limit.

    "Up to 25 MB" contradicts "up to 50 MB", and "25 MB", and says nothing about "a file of 30 MB"; "at least 24 hours"
    contradicts "at least 48 hours". Of things that are counted only what is required does: "more than 100 companies" is
    right where they are more than 120. Numbers alone are ages: "over 16".
    """
    side, other = find_side(ours), find_side(theirs)
    is_limit = ours.limit != "none" or (theirs.span is not None and ours.hedge in ("at_least", "at_most"))
    if ours.hedge != "exact" and is_limit and other == "none":
        return "differs"
    alike = side == other != "none" and (ours.hedge != "exact" or theirs.hedge != "exact")
    if ours.measure == "count":
        if not (ours.nouns or theirs.nouns):
            return "differs" if alike else None
        required = side == "upper" or "lower" in (ours.limit, theirs.limit) or ours.hedge == theirs.hedge == "at_least"
        return "differs" if alike and required and ours.nouns & theirs.nouns else None
    if ours.hedge == "exact" and theirs.hedge in SIDES and theirs.hedge != "within" and not alike:
        return "compatible"
    return "differs" if alike else None


def _list_readings(ambiguous: Measure, measure: str) -> list[Measure]:
    """What "20 pounds" or "40 degrees" is as a ``measure``."""
    return [
        ambiguous._replace(
            measure=measure,
            amount=ambiguous.amount * unit.factor + unit.offset,
            step=ambiguous.step * unit.factor,
            factor=unit.factor,
        )
        for unit in AMBIGUOUS.get(ambiguous.measure, ())
        if unit.measure == measure
    ]


def _is_same_number(ours: Measure, theirs: Measure) -> bool:
    """Whether two numbers are written alike, and one of them has no unit and no noun, or the other's unit as a noun.

    34, and 34 years; 22 days of paid vacation, and 22 paid vacation days.
    """
    counts = any(
        number.measure == "count" and (not number.nouns or _has_noun(number.nouns, other))
        for number, other in ((ours, theirs), (theirs, ours))
    )
    return counts and _is_close(ours.amount / ours.factor, theirs.amount / theirs.factor, 1e-9)


def _are_other_ages(ours: Measure, theirs: Measure) -> bool:
    """Whether two lower limits differ, one of years and one a bare number: "at least 16 years old", "18 or over"."""
    years, bare = (theirs, ours) if ours.measure == "count" else (ours, theirs)
    if bare.measure != "count" or bare.nouns or years.measure != "duration" or years.factor != UNITS["year"].factor:
        return False
    return find_side(years) == find_side(bare) == "lower" and years.amount / years.factor != bare.amount


def _has_noun(nouns: Set[str], measure: Measure) -> bool:
    """Whether one of the stems of nouns is the unit of a measure."""
    units = [UNITS_BY_STEM[noun] for noun in nouns if noun in UNITS_BY_STEM]
    return any((unit.measure, unit.factor) == (measure.measure, measure.factor) for unit in units)


def _is_equal(ours: Measure, theirs: Measure) -> bool:
    """Whether two amounts are the same, rounded as they are written."""
    gap = abs(ours.amount - theirs.amount)
    if gap <= 1e-9 * max(abs(ours.amount), 1.0):
        return True
    largest = max(abs(ours.amount), abs(theirs.amount))
    if ours.factor != theirs.factor:
        return gap <= _CONVERTED * largest and gap <= 0.5 * max(ours.step, theirs.step)
    fine = theirs.step <= abs(theirs.amount) / 1000
    return fine and theirs.step < ours.step and gap <= 0.5 * ours.step and gap <= _ROUNDED * largest


def _agree_hedges(ours: Hedge, theirs: Hedge) -> bool:
    """Whether a number supports another of the same amount. A hedge may be left out, as people do, but not be added."""
    if ours in ("exact", "about") or ours == theirs:
        return True
    if ours == "almost":
        return theirs in ("exact", "about")
    if "within" in (ours, theirs):
        return ours == "at_most" or theirs in ("exact", "at_most", "less")
    return (ours, theirs) in (("at_least", "more"), ("at_least", "exact"), ("at_most", "less"), ("at_most", "exact"))


def _find_interval(measure: Measure) -> tuple[float, float]:
    """Lowest and highest amount that a hedged number may have."""
    amount, margin = measure.amount, min(_ABOUT * abs(measure.amount), 0.5 * measure.step or inf)
    if measure.hedge in ("more", "at_least"):
        return amount, inf
    if measure.hedge in ("less", "at_most"):
        return -inf, amount
    if measure.hedge == "almost":
        return amount - _ABOUT * abs(amount), amount
    return (amount - margin, amount + margin) if measure.hedge == "about" else (amount, amount)


def _is_close(left: float, right: float, share: float) -> bool:
    return abs(left - right) <= share * max(abs(left), abs(right), 1.0)


def compare_codes(kind: ValueKind, ours: ExactCode, theirs: ExactCode) -> Relation | None:
    """What a code says about another of the same kind; None for codes of different things."""
    if kind == "version":
        return _compare_versions(ours, theirs)
    if kind == "identifier":
        if ours.key == theirs.key:
            same = ours.label == theirs.label or not (ours.label and theirs.label) or not is_digits(ours.key)
            return "supports" if same else None
        alike = ours.label == theirs.label if ours.label or theirs.label else _shape(ours.key) == _shape(theirs.key)
        return "differs" if alike else None
    if ours.key == theirs.key:
        return "supports"
    if kind == "phone":
        return _compare_phones(ours.key, theirs.key)
    if kind == "url":
        if ours.key.startswith("/") != theirs.key.startswith("/"):
            longer, path = sorted((ours.key, theirs.key), key=lambda key: key.startswith("/"))
            return "compatible" if longer.endswith(path) else None
        if theirs.key.startswith(f"{ours.key}/"):
            return "supports"
        return "compatible" if ours.key.startswith(f"{theirs.key}/") else "differs"
    return "supports" if kind == "postcode" and theirs.key.startswith(ours.key) else "differs"


def _compare_phones(ours: str, theirs: str) -> Relation | None:
    """The same number with and without its area or country."""
    short, long = sorted((ours.lstrip("+0"), theirs.lstrip("+0")), key=len)
    if (len(short) <= SHORT_PHONE) != (len(long) <= SHORT_PHONE):
        return None  # an emergency's number, and one of a shop
    return "supports" if len(short) > SHORT_PHONE and long.endswith(short) else "differs"


def _compare_versions(ours: ExactCode, theirs: ExactCode) -> Relation | None:
    if ours.label and theirs.label and ours.label != theirs.label:
        return None
    left, right = parse_version(ours.key), parse_version(theirs.key)
    if left == right[: len(left)]:
        return "supports" if ours.hedge in ("exact", theirs.hedge) else "compatible"
    if right == left[: len(right)]:
        return "compatible"
    for bound, hedge, other in ((right, theirs.hedge, left), (left, ours.hedge, right)):
        if (hedge == "at_least" and other > bound) or (hedge == "at_most" and other < bound):
            return "compatible"
    return "differs"


def _shape(key: str) -> str:
    """The letters and digits of a code by their kind: "aa00" for "ba17"."""
    return "".join("0" if is_digits(character) else "a" for character in key)


def _compare_sets(ours: Set[int], theirs: Set[int]) -> Relation:
    if ours <= theirs:
        return "supports"
    return "compatible" if ours & theirs else "differs"


def _compare_dates(ours: Date, theirs: Date) -> Relation | None:
    if ours.either or theirs.either:
        relations = [_compare_dates(left, right) for left in _list_orders(ours) for right in _list_orders(theirs)]
        return "supports" if "supports" in relations else min(relations, key=str)
    relations = [
        _compare_years(ours, theirs),
        _compare_parts(ours.month, theirs.month),
        _compare_parts(ours.day, theirs.day),
    ]
    comparable = [relation for relation in relations if relation is not None]
    if "differs" in comparable:
        return "compatible" if relations[0] != "differs" and _is_between(ours, theirs) else "differs"
    if not comparable:
        return None
    both = (ours.first is None or theirs.first is not None) and (ours.month is None or theirs.month is not None)
    complete = both and (ours.day is None or theirs.day is not None)
    return "supports" if complete and "compatible" not in comparable else "compatible"


def _list_orders(date: Date) -> list[Date]:
    """A date whose month and day may be the other way round, both ways."""
    plain = date._replace(either=False)
    return [plain, plain._replace(month=date.day, day=date.month)] if date.either else [plain]


def _is_between(ours: Date, theirs: Date) -> bool:
    """Whether a day is one of a period that the other is an end of: 6 November, of "5–8 November"."""
    if theirs.days is None or ours.month is None:
        return False
    first, last = theirs.days
    ours_first = ours.month * 32 + (ours.day or 31)
    ours_last = ours.month * 32 + (ours.day or 1)
    if first > last:  # over the end of the year
        return ours_first >= first or ours_last <= last
    return ours_first >= first and ours_last <= last


def _compare_years(ours: Date, theirs: Date) -> Relation | None:
    if ours.first is None or ours.last is None or theirs.first is None or theirs.last is None:
        return None
    if ours.first <= theirs.first and theirs.last <= ours.last:
        return "supports"
    if ours.first <= theirs.last and theirs.first <= ours.last:
        return "compatible"
    inside = theirs.span is not None and theirs.span[0] <= ours.first and ours.last <= theirs.span[1]
    return "compatible" if inside else "differs"


def _compare_parts(ours: int | None, theirs: int | None) -> Relation | None:
    if ours is None or theirs is None:
        return None
    return "supports" if ours == theirs else "differs"


def _compare_clocks(ours: Clock, theirs: Clock) -> Relation:
    if ours.minutes == theirs.minutes:
        return "supports"
    half = not (ours.half_known and theirs.half_known) and ours.minutes % 720 == theirs.minutes % 720
    return "supports" if half else "differs"


_SIGNS: dict[Hedge, str] = {
    "exact": "", "about": "≈ ", "almost": "⪅ ", "more": "> ", "at_least": "≥ ", "less": "< ", "at_most": "≤ ",
    "within": "≤ ",
}  # fmt: skip
_BASE_UNITS = {
    "length": "m", "area": "m²", "volume": "l", "mass": "kg", "speed": "m/s", "duration": "days", "data": "bytes",
    "power": "W", "energy": "cal", "frequency": "Hz", "temperature": "°C", "share": "%", "count": "",
}  # fmt: skip


def normalize(content: Content) -> str:
    """A value as text: amounts in their base unit, dates and times as ISO 8601 has them, names without case.

    >>> from .tokens import Name
    >>> normalize(Measure("length", 5000.0, 1000.0, "about")), normalize(Clock(570, True))
    ('≈ 5000 m', '09:30')
    >>> [normalize(date) for date in (Date(1887, 1887, 5), Date(1880, 1889), Date(None, None, 7, 4))]
    ['1887-05', '1880/1889', '--07-04']
    >>> normalize(Name(("bob", "ross"), "name", ("", "")))
    'bob ross'
    """
    if isinstance(content, Measure):
        amount = content.amount * (100 if content.measure == "share" else 1)
        if content.measure == "rank":
            return f"rank {amount:g}"
        return f"{_SIGNS[content.hedge]}{amount:.10g} {_BASE_UNITS.get(content.measure, content.measure)}".rstrip()
    if isinstance(content, Date):
        parts = "".join(f"-{part:02}" for part in (content.month, content.day) if part is not None)
        if content.first is None:
            return f"-{parts}"
        years = f"{content.first}" if content.first == content.last else f"{content.first}/{content.last}"
        return years + parts
    if isinstance(content, Clock):
        return f"{content.minutes // 60:02}:{content.minutes % 60:02}"
    if isinstance(content, Days):
        return " ".join(DAYS[day][:3].capitalize() for day in sorted(content.days))
    if isinstance(content, ExactCode):
        return f"{content.label} {_SIGNS[content.hedge]}{content.key}".lstrip()
    return " ".join(content.words)


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
        assert isinstance(theirs.content, Measure)
        if bound_alike(ours, theirs):
            return True
        return None if ours.content.measure == "count" and ours.content.amount < LARGE_COUNT else True
    return bool(nouns[0] & nouns[1]) if all(nouns) else None


def is_other_end(ours: Value, theirs: Value) -> bool:
    """Whether two amounts are one end of two ranges that have the other end in common: 1.9 of "1.3 to 1.9", and 1.7."""
    left, right = ours.content, theirs.content
    if not (isinstance(left, Measure) and isinstance(right, Measure)) or left.span is None or right.span is None:
        return False
    index = int(left.amount == left.span[1])
    return left.amount != right.amount == right.span[index] and left.span[1 - index] == right.span[1 - index]


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


def have_one_kind(ours: Value, theirs: Value) -> bool:
    """Whether two values that can be compared are of one kind: "20 pounds" may be money, and limits in years ages."""
    kinds = {ours.kind, theirs.kind}
    return len(kinds) == 1 or kinds == {"money", "quantity"} or bound_alike(ours, theirs)


def bound_alike(ours: Value, theirs: Value) -> bool:
    """Whether two amounts are upper limits, or lower ones: "at least 16", "the minimum age is 18"."""
    left, right = ours.content, theirs.content
    return isinstance(left, Measure) and isinstance(right, Measure) and find_side(left) == find_side(right) != "none"


def is_loose(ours: Value, theirs: Value) -> bool:
    """Whether an amount is within a time or distance that is another: "within 500 m", of 300 m."""
    left, right = ours.content, theirs.content
    if not (isinstance(left, Measure) and isinstance(right, Measure)):
        return False
    return left.hedge == "within" and not _is_equal(left, right)


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
