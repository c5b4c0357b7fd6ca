"""Recognises numbers that follow from others, and numbers that may: sums, products, shares, spans of time.

A number that the knowledge does not have does not contradict it if it can be computed from numbers of the knowledge,
and from numbers that the response names itself: "two packs are 24 batteries", of a pack of 12. Sums of just any numbers
prove nothing, so each way of computing has its condition: a word that names it, a common noun, or a number of the
response. Times and dates follow from others and durations ("30 minutes before closing").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, timedelta
from functools import cached_property
from itertools import accumulate, combinations, islice, permutations, product
from math import inf
from operator import attrgetter

from .comparing import bound_alike, is_limit, relate
from .knowledge import RESPONSE, Location, SentenceKey
from .numbers import stem
from .sides import (
    MAX_OPERANDS,
    CheckedValue,
    Operand,
    Sides,
    are_linked,
    equals,
    find_margin,
    get_amount,
    get_factor,
    go_together,
    is_alike,
    is_bare,
    is_difference,
    list_durations,
    list_pairs,
    share_nouns,
)
from .tokens import Clock, Content, Date, Days, ExactCode, Measure, Name, Value
from .units import (
    AGAIN,
    AVERAGES,
    BOUNDS,
    CHANGES,
    COMPUTING,
    DIFFERENCES,
    FACTORS,
    MONEY,
    NAMED_FACTORS,
    OF_MONEY,
    OF_REDUCTIONS,
    PASSING,
    RESTS,
    SERVINGS,
    SHARE_DIFFERENCES,
    SHARES,
    TOTALS,
    UNITS,
)

_DAY_MINUTES = 1440
_YEAR_DAYS = UNITS["year"].factor
_LEAP_YEAR = 2024
"""The year of dates without one."""
_ONE_DAY = Measure("duration", 1.0, 1.0)


def measure_time(target: Measure, items: Sequence[Operand]) -> Iterator[str]:
    """Ages and spans of time: the years between two dates, the hours between two times of day."""
    if target.measure != "duration" and (target.measure != "count" or target.nouns):
        return
    factor = target.factor if target.measure == "duration" else _YEAR_DAYS
    days = target.amount if target.measure == "duration" else target.amount * _YEAR_DAYS
    dates = [(item, item.value.content) for item in items if isinstance(item.value.content, Date)]
    for (left, start), (right, end) in permutations(dates, 2):
        if not go_together(left, right):
            continue
        years = start.first is not None and end.first is not None and start.first == start.last
        if not (years and end.first == end.last) and (start.day is None or end.day is None):
            continue
        between = _days_between(start, end)
        if between is None:
            continue
        whole = abs(between - days) < 1e-6 or abs(between + 1 - days) < 1e-6
        in_years = factor >= _YEAR_DAYS and start.first is not None and end.first is not None
        passed = in_years and end.first is not None and start.first is not None and end.first - start.first
        if (factor < _YEAR_DAYS and whole) or (
            in_years and passed and days > 0 and round(days / _YEAR_DAYS, 6) in (passed, passed - _has_more(start, end))
        ):
            yield f"{right.text} - {left.text}"
    if target.measure != "duration":
        return
    clocks = [(item, item.value.content) for item in items if isinstance(item.value.content, Clock)]
    for (left, opens), (right, closes) in permutations(clocks, 2):
        if not go_together(left, right):
            continue
        period = _DAY_MINUTES if opens.half_known and closes.half_known else _DAY_MINUTES // 2
        if abs((closes.minutes - opens.minutes) % period - days * _DAY_MINUTES) < 1e-6:
            yield f"{right.text} - {left.text}"


def _has_more(start: Date, end: Date) -> int:
    """1 where a birthday of the later year may not have come."""
    return int(start.month is None or end.month is None or (end.month, end.day or 0) < (start.month, start.day or 0))


def _days_between(start: Date, end: Date) -> int | None:
    left, right = _make_date(start), _make_date(end)
    return None if left is None or right is None else (right - left).days


def _make_date(content: Date) -> date | None:
    try:
        return date(content.first or _LEAP_YEAR, content.month or 1, content.day or 1)
    except ValueError:
        return None


def derive_clock(target: Clock, items: Sequence[Operand], *, passing: bool) -> Iterator[str]:
    """How a time follows from another and a duration; any duration will do if words say that time is ``passing``."""
    for item, duration in list_durations(items):
        if not (passing or item.related):
            continue
        minutes = round(duration.amount * _DAY_MINUTES)
        if not 0 < minutes < _DAY_MINUTES:
            continue
        for other in items:
            content = other.value.content
            if not isinstance(content, Clock) or not are_linked(item, other):
                continue
            period = _DAY_MINUTES if content.half_known and target.half_known else _DAY_MINUTES // 2
            for operator, sum_minutes in (("-", content.minutes - minutes), ("+", content.minutes + minutes)):
                if (sum_minutes - target.minutes) % period == 0:
                    yield f"{other.text} {operator} {item.text}"


def derive_date(target: Date, items: Sequence[Operand], *, again: bool) -> Iterator[str]:
    """How a date follows from another; ``again``: whether words say that something begins after a period."""
    dates = [(item, item.value.content) for item in items if isinstance(item.value.content, Date)]
    for other, content in dates:
        # The day after a period, on which something opens again.
        day = [(" 1 day", _ONE_DAY)] if again and content.days is not None else []
        steps = [(f" {item.text}", step) for item, step in list_durations(items) if are_linked(item, other)]
        for text, duration in [*day, *steps]:
            for direction in (1, -1):
                if _is_after(target, content, duration, direction):
                    yield f"{other.text} {'+' if direction > 0 else '-'}{text}"


def _is_after(target: Date, start: Date, duration: Measure, direction: int) -> bool:
    """Whether a date is a duration after another, as coarse as both are."""
    months = duration.amount / UNITS["month"].factor
    if target.month is not None and target.day is None and start.month is not None:
        # "Until February 2026", of 20 February 2024 and 24 months; "in June", of March and three months
        apart = target.month - start.month
        if target.first is None or start.first is None:
            return round(months, 6).is_integer() and months < 12 and (direction * months - apart) % 12 < 1e-6
        return start.first == start.last and abs(direction * months - 12 * (target.first - start.first) - apart) < 1e-6
    if target.month is None or start.month is None or target.day is None or start.day is None:
        years = duration.amount / _YEAR_DAYS
        are_years = target.first is not None and start.first is not None and target.first == target.last
        same = target.month is None and are_years and start.first == start.last
        return same and abs((target.first or 0) - (start.first or 0) - direction * years) < 1e-6
    if duration.factor >= UNITS["month"].factor:
        apart = (target.month - start.month) % 12
        return target.day == start.day and round(direction * months) % 12 == apart
    begun = _make_date(start)
    if begun is None or abs(duration.amount - round(duration.amount)) > 1e-6 or duration.amount > 10_000:
        return False
    try:
        end = begun + timedelta(days=direction * round(duration.amount))
    except OverflowError:
        return False
    same_year = target.first is None or start.first is None or target.first == end.year
    return same_year and (end.month, end.day) == (target.month, target.day)


def leave_out_others(content: Content, words: Set[str]) -> Set[str]:
    """The words without words that name computations of other contents: of money alone, or none of percentages."""
    if isinstance(content, Measure) and content.measure == "share":
        return words - OF_REDUCTIONS
    of_money = isinstance(content, Measure) and content.measure in MONEY
    return words if of_money else words - OF_MONEY


LEAST_COMPUTED = 10.0
"""Counts below it are sums and differences of most texts' numbers."""
MAX_TERMS = 8
"""Amounts of a sum, at most; three are combined where one measure has no more amounts."""
_DEGREES = frozenset({"degree", "temperature"})


def may_follow(value: Value, operands: Sequence[Operand], words: Set[str], listed: Sequence[Value] = ()) -> bool:
    """Whether an amount may be computed from two or three numbers, one of them not of the knowledge.

    It may be a sum, difference, product or share of two, a sum of the numbers that the response lists beside it
    (``listed``, in their order), a product of three, or a product and an amount. A time of day or a date may be another
    and a duration. Where ``words``, of its sentence, name a computation, all may be of the knowledge. This proves
    nothing, but a number that may be computed contradicts nothing either. Small counts are left out: any two numbers
    give them.
    """
    content = value.content
    if isinstance(content, Clock):
        return any(derive_clock(content, operands, passing=True))
    if isinstance(content, Date):
        return any(derive_date(content, [*operands, *_count_inclusively(operands)], again=False))
    if not isinstance(content, Measure) or content.measure == "rank":
        return False
    if content.measure == "count" and content.amount < LEAST_COMPUTED:
        return False
    named = bool(leave_out_others(content, words & COMPUTING))
    subtracts = content.measure != "share" or bool(words & SHARE_DIFFERENCES)
    factors = [factor for word, factor in NAMED_FACTORS.items() if word in words]
    factors += [1 / factor for word, factor in CHANGES.items() if word in words]
    numbers = [(item, item.value.content) for item in operands if isinstance(item.value.content, Measure)]
    margin = find_margin(content)
    for left, first in numbers:
        is_operand = _may_be_operand(content, first)
        if is_operand and any(abs(content.amount - first.amount * factor) <= margin for factor in factors):
            return True
        for right, second in numbers:
            if left is right or second.measure == "rank":
                continue
            if min(left.sentence_key[0], right.sentence_key[0]) >= 0 and not (named and go_together(left, right)):
                continue
            if _is_ratio(content, first, second):
                return True
            if not is_operand:
                continue
            added = _find_added(first, second)
            if min([abs(content.amount - amount) for amount in _combine(first, second, added)], default=inf) <= margin:
                return True
            if not subtracts or added is None:
                continue
            if is_difference(content, first.amount, added) or is_difference(content, added, first.amount):
                return True
    if named and content.measure in _DEGREES and _is_gap(content, numbers):
        return True
    return _adds_listed(value, content, listed) or _takes_three(
        content, numbers, named=named and (content.measure == "count" or content.measure in MONEY)
    )


def _may_be_operand(target: Measure, content: Measure) -> bool:
    return is_alike(target, content) or (content.measure == "count" and not content.nouns)


def _is_gap(target: Measure, numbers: Iterable[tuple[Operand, Measure]]) -> bool:
    """Whether "10 degrees" are between two temperatures."""
    degrees = [content.amount for _, content in numbers if content.measure in _DEGREES]
    return any(abs(abs(left - right) - target.amount) < 1e-6 for left, right in combinations(degrees, 2))


def _is_ratio(target: Measure, first: Measure, second: Measure) -> bool:
    """Whether a number or a time is how often one amount is in another: 600 weeks, of 300 kg and half a kilo a week."""
    if target.measure not in ("count", "duration") or first.measure != second.measure or first.measure == "count":
        return False
    return second.amount > 0 and equals(target, first.amount / second.amount * target.factor)


def _adds_listed(value: Value, target: Measure, listed: Iterable[Value]) -> bool:
    """Whether an amount is the sum of amounts that the response lists right before or after it."""
    amounts = [(item.start, item.content.amount) for item in listed if isinstance(item.content, Measure)
               and item.content.measure == target.measure]  # fmt: skip
    before = [amount for start, amount in reversed(amounts) if start < value.start]
    after = [amount for start, amount in amounts if start > value.start]
    sums = (total for side in (before, after) for total in islice(accumulate(side[:MAX_TERMS]), 1, None))
    return any(equals(target, total) for total in sums)


def _takes_three(target: Measure, numbers: Sequence[tuple[Operand, Measure]], *, named: bool) -> bool:
    """Whether an amount is a × b × c, a × b ± c or a × b + c × d with factors that are not of the knowledge.

    Where a computation of money or numbers is named, all may be of the knowledge, and it may be a + b ± c, too.
    """
    alike = [content.amount for _, content in numbers if _may_be_operand(target, content)][: 2 * MAX_TERMS]
    stated = {get_factor(item) for item, _ in numbers if named or item.sentence_key[0] < 0}
    factors = sorted(factor for factor in stated if factor > 1)[:MAX_TERMS]
    products = [factor * amount for factor in factors for amount in alike]
    if any(equals(target, factor * amount) for factor in (1.0, *factors) for amount in products):
        return True
    margin = find_margin(target)
    added = sorted([*alike, *products, *(-amount for amount in alike)])
    for amount in products:
        index = bisect_left(added, target.amount - amount - margin)
        if index < len(added) and added[index] <= target.amount - amount + margin:
            return True
    triples = combinations(alike[:MAX_TERMS], 3) if named else ()
    return any(equals(target, total) for a, b, c in triples for total in (a + b + c, a + b - c, a + c - b, b + c - a))


def _count_inclusively(operands: Sequence[Operand]) -> Iterator[Operand]:
    """Periods of days without their first day: from the 1st to the 14th for 14 days."""
    for item, duration in list_durations(operands):
        if 1 < duration.amount == round(duration.amount):
            content = duration._replace(amount=duration.amount - 1, factor=1.0)
            yield item._replace(value=item.value._replace(content=content))


def _find_added(left: Measure, right: Measure) -> float | None:
    """An amount that may be added to another or taken from it, or None: "104 days (previous year 89)"."""
    if right.measure == "count" and not right.nouns:
        return right.amount * left.factor
    return right.amount if left.measure == right.measure else None


def _combine(left: Measure, right: Measure, added: float | None) -> list[float]:
    """What two numbers can give but their difference; the first is an amount of what is counted."""
    amounts = [] if added is None else [left.amount + added]
    if left.measure == right.measure == "share":
        return amounts  # 5% is a fifth of 25%, and no discount of 20%
    number = right.amount / right.factor if right.measure != "share" else right.amount
    amounts += (left.amount * number, left.amount * right.amount)  # 300 g, of a price per kilo
    if number:
        amounts.append(left.amount / number)
    if right.measure == "share":
        amounts += (left.amount * (1 - number), left.amount * (1 + number))
    return amounts


_SERVED = frozenset(map(stem, SERVINGS))


def derive(
    value: Value,
    text: str,
    in_knowledge: Sequence[Operand],
    stated: Sequence[Operand],
    words: Set[str],
    factors: Mapping[str, Set[SentenceKey] | None],
) -> str:
    """How ``value``, written as ``text``, follows from other numbers, as "15 + 12 = 27"; empty if it does not.

    ``in_knowledge`` are numbers of the knowledge, ``stated`` others of the response's sentence, ``words`` its words in
    lower case, ``factors`` the words of ``FACTORS`` that either text has, and the words of ``SERVINGS`` that the
    knowledge has; each with its sentences in the knowledge, and None for a word of the response.
    """
    ways: Iterator[str]
    if isinstance(value.content, Measure):
        ways = _derive_measure(value.content, in_knowledge, stated, words, factors)
    elif isinstance(value.content, Clock):
        ways = derive_clock(value.content, [*in_knowledge, *stated], passing=bool(words & PASSING))
    elif isinstance(value.content, Date):
        ways = derive_date(value.content, [*in_knowledge, *stated], again=bool(words & AGAIN))
    else:
        return ""
    way = next(ways, "")
    return way and f"{way} = {text}"


def _derive_measure(
    target: Measure,
    in_knowledge: Sequence[Operand],
    stated: Sequence[Operand],
    words: Set[str],
    factors: Mapping[str, Set[SentenceKey] | None],
) -> Iterator[str]:
    if target.measure == "rank":
        return
    alike = [item for item in in_knowledge if is_alike(target, item.value.content)]
    naming = leave_out_others(target, words)
    yield from _add(target, alike, naming)
    yield from _subtract(target, alike, stated, naming)
    yield from _multiply(target, alike, in_knowledge, stated, naming, factors)
    yield from _take_shares(target, alike, [*in_knowledge, *stated], words)
    yield from measure_time(target, [*in_knowledge, *stated])


def _add(target: Measure, alike: Sequence[Operand], words: Set[str]) -> Iterator[str]:
    named = bool(words & TOTALS)
    same = [item for item in alike if share_nouns(target, item)]
    groups = [same, *(list(group) for group in _group_by_sentence(same))]
    for group in groups:
        if not (named or all(item.related for item in group)):
            continue
        # Two numbers of different sentences have little to do with each other.
        alone = len(group) == 2 and group[0].sentence_key != group[1].sentence_key and not named
        together = all(go_together(group[0], item) for item in group[1:])
        if 2 <= len(group) <= 8 and together and not alone and equals(target, sum(map(get_amount, group))):
            yield " + ".join(item.text for item in group)
        if words & AVERAGES and len(group) > 1 and equals(target, sum(map(get_amount, group)) / len(group)):
            yield f"({' + '.join(item.text for item in group)}) / {len(group)}"
    for left, right in combinations(alike, 2):
        together = left.sentence_key == right.sentence_key and target.measure != "count" and left.related
        if ((named and go_together(left, right)) or together) and equals(target, get_amount(left) + get_amount(right)):
            yield f"{left.text} + {right.text}"


def _group_by_sentence(items: Iterable[Operand]) -> Iterable[Sequence[Operand]]:
    groups: dict[tuple[int, int], list[Operand]] = {}
    for item in items:
        groups.setdefault(item.sentence_key, []).append(item)
    return groups.values()


def _subtract(target: Measure, alike: Sequence[Operand], stated: Sequence[Operand], words: Set[str]) -> Iterator[str]:
    if not words & (SHARE_DIFFERENCES if target.measure == "share" else DIFFERENCES):
        return
    ours = [item for item in stated if is_alike(target, item.value.content)]
    for left, right in list_pairs(item for item in [*alike, *ours] if share_nouns(target, item) or is_bare(item)):
        if (left.sentence_key[0] >= 0 or right.sentence_key[0] >= 0) and is_difference(
            target, get_amount(left), get_amount(right)
        ):
            yield f"{left.text} - {right.text}"


def _multiply(
    target: Measure,
    alike: Sequence[Operand],
    in_knowledge: Sequence[Operand],
    stated: Sequence[Operand],
    words: Set[str],
    named_factors: Mapping[str, Set[SentenceKey] | None],
) -> Iterator[str]:
    named = bool(words & (TOTALS | SHARES | DIFFERENCES))
    factors = [(factor, word, named_factors[word]) for word, factor in FACTORS.items() if word in named_factors]
    factors += [
        (number, item.text, None)
        for item in stated
        if (named or not item.certain) and _may_multiply(target, item) and (number := get_factor(item)) > 0
    ]
    for factor, factor_text, sentences in factors:
        for item in alike:
            if not (share_nouns(target, item) or is_bare(item)) or not _multiplies(sentences, item):
                continue
            if factor_text in item.text.lower().split():
                continue  # "half of them" is no half of a half
            if factor != 1 and equals(target, factor * get_amount(item)):
                yield f"{factor_text} × {item.text}"
            if factor > 1 and words & SHARES and equals(target, get_amount(item) / factor):
                yield f"{item.text} / {factor_text}"
    if named_factors.keys() & SERVINGS:
        yield from _scale(target, alike, in_knowledge, stated)
    # A price for each and a fee; two adults and a child.
    prices = [item for item in [*alike, *stated] if is_alike(target, item.value.content)]
    if words & (TOTALS | {"with", "extra"}):
        for left, right in permutations(prices, 2):
            named_own = left.sentence_key[0] < 0 <= right.sentence_key[0]
            if named_own and equals(target, get_amount(left) + get_amount(right)):
                yield f"{left.text} + {right.text}"
    if target.measure in MONEY or words & TOTALS:
        for left, right in list_pairs(alike):
            of_left, of_right = ([each for each in factors if _multiplies(each[2], item)] for item in (left, right))
            for factor, factor_text, _ in of_left:
                for other, other_text, _ in [(1.0, "", None), *of_right]:
                    first, second = factor * get_amount(left), other * get_amount(right)
                    second_text = f"{other_text and other_text + ' × '}{right.text}"
                    if equals(target, first + second):
                        yield f"{factor_text} × {left.text} + {second_text}"
                    if words & DIFFERENCES and equals(target, first - second):
                        yield f"{factor_text} × {left.text} - {second_text}"
    if not named:
        return
    for left, right in list_pairs(in_knowledge):
        count = get_factor(right)
        if count <= 1 or not (_may_multiply(target, right) and is_alike(target, left.value.content)):
            continue
        if not share_nouns(target, left) or (target.measure == "count" and right.value.kind != "number"):
            continue
        if equals(target, count * get_amount(left)):
            yield f"{right.text} × {left.text}"
        if words & SHARES and equals(target, get_amount(left) / count):
            yield f"{left.text} / {right.text}"


def _multiplies(sentences: Set[SentenceKey] | None, item: Operand) -> bool:
    """Whether a word multiplies a number: of the knowledge, if it is in the number's sentence or beside it.

    "Children pay half", after "adults pay £10"; but not 7 days, where a loan "can be renewed twice".
    """
    passage, sentence = item.sentence_key
    return sentences is None or any((passage, sentence + step) in sentences for step in (-1, 0, 1))


def _scale(
    target: Measure, alike: Sequence[Operand], in_knowledge: Sequence[Operand], stated: Sequence[Operand]
) -> Iterator[str]:
    """An amount of a recipe for another number of people: "600 g", of "serves 4: 300 g" and "eight people"."""
    for ours, theirs in product(stated, in_knowledge):
        count, known_count = get_factor(ours), get_factor(theirs)
        if ours.certain or count <= 0 or known_count <= 0 or not _counts_people(ours) or not _counts_people(theirs):
            continue
        for item in alike:
            if share_nouns(target, item) and equals(target, count / known_count * get_amount(item)):
                yield f"{ours.text} / {theirs.text} × {item.text}"


def _counts_people(item: Operand) -> bool:
    """Whether a number counts nothing that is named, or people or portions."""
    content = item.value.content
    assert isinstance(content, Measure)
    return content.measure == "count" and (not content.nouns or bool(content.nouns & _SERVED))


def _may_multiply(target: Measure, item: Operand) -> bool:
    """Whether a number is a count, or a time in which an amount of money is due: never a duration of durations."""
    content = item.value.content
    return isinstance(content, Measure) and (content.measure == "count" or content.measure != target.measure)


def _take_shares(target: Measure, alike: Sequence[Operand], items: Sequence[Operand], words: Set[str]) -> Iterator[str]:
    shares = [
        item for item in items if isinstance(item.value.content, Measure) and item.value.content.measure == "share"
    ]
    if target.measure != "share":
        for share in shares:
            for item in [*alike, *(item for item in items if is_alike(target, item.value.content))]:
                amount, part = get_amount(item), get_amount(share)
                if not (share_nouns(target, item) and go_together(share, item)):
                    continue
                if equals(target, amount * part):
                    yield f"{share.text} × {item.text}"
                if equals(target, amount * (1 - part)) or equals(target, amount * (1 + part)):
                    yield f"{item.text} {'-' if target.amount < amount else '+'} {share.text}"
        return
    for share in shares:
        if words & DIFFERENCES and equals(target, 1 - get_amount(share)):
            yield f"100% - {share.text}"
    measures = [item for item in items if isinstance(item.value.content, Measure)]
    for left, right in list_pairs(measures):
        left_content, right_content = left.value.content, right.value.content
        assert isinstance(left_content, Measure)
        assert isinstance(right_content, Measure)
        if left_content.measure != right_content.measure or left_content.measure in ("rank", "share"):
            continue
        whole, part = right_content.amount, left_content.amount
        if whole <= 0:
            continue
        if equals(target, part / whole):
            yield f"{left.text} / {right.text}"
        elif equals(target, abs(part - whole) / whole):
            yield f"({left.text} - {right.text}) / {right.text}"


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
        """A value that the knowledge does not have as derived, if it follows from numbers of the knowledge.

        A number that is said in the place of another is not computed: "45 minutes; sorry, 90".
        """
        sides = self._sides
        value = check.value
        if check.outcome == "supported" or value.corrects or isinstance(value.content, Name | ExactCode | Days):
            return check
        if self._is_of_another(check):
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
            if not (bound_alike(other, other) and not self._is_known(other))  # nothing follows from a wrong limit
        ]
        text = sides.response[value.start : value.end]
        words = self._list_own_words(value)
        passages = {location.passage for location, _ in located}
        factors: dict[str, Set[SentenceKey] | None] = {**sides.knowledge.find_words(FACTORS.keys(), passages)}
        factors |= dict.fromkeys(FACTORS.keys() & words)
        serves = sides.knowledge.find_words(SERVINGS, passages)
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
        if isinstance(value.content, ExactCode) or value.corrects or self._is_of_another(check):
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
        return words | sides.knowledge.find_words(CHANGES.keys() | RESTS, passages).keys()

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

    def _is_of_another(self, check: CheckedValue) -> bool:
        """Whether the knowledge has an amount, but of something else, so that it need not be computed."""
        is_amount = isinstance(check.value.content, Measure)
        return is_amount and check.outcome == "contradicted" and self._is_known(check.value)

    def _is_known(self, value: Value) -> bool:
        return any(relate(value, theirs) == "supports" for _, theirs in self._sides.knowledge.values)


def _take_around(values: Sequence[Value], start: int) -> Sequence[Value]:
    """Of values in order those that may be among the ``MAX_OPERANDS`` nearest to a character."""
    index = bisect_left(values, start, key=attrgetter("start"))
    return values[max(0, index - MAX_OPERANDS) : index + MAX_OPERANDS + 1]
