"""Says whether a number may be computed from others, where nothing proves that it is.

A number that may be computed is not contradicted by the knowledge.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import accumulate, combinations, islice

from .computing_words import CHANGES, COMPUTING, NAMED_FACTORS, SHARE_DIFFERENCES, leave_out_others
from .durations import derive_clock, derive_date
from .operands import Operand, equals, find_margin, get_factor, go_together, is_alike, is_difference, list_durations
from .records import Clock, Date, Measure, Value
from .units import MONEY

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
    for left, first in numbers:
        for right, second in numbers:
            if left is right or second.measure == "rank":
                continue
            if min(left.sentence_key[0], right.sentence_key[0]) >= 0 and not (named and go_together(left, right)):
                continue
            if _is_ratio(content, first, second):
                return True
            if not _may_be_operand(content, first):
                continue
            if any(equals(content, amount) for amount in _combine(first, second)):
                return True
            if subtracts and _is_subtracted(content, first, second):
                return True
        if _may_be_operand(content, first) and any(equals(content, first.amount * factor) for factor in factors):
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


def _is_subtracted(target: Measure, left: Measure, right: Measure) -> bool:
    """Whether the target is what one of two amounts is more than the other."""
    added = _find_added(left, right)
    if added is None:
        return False
    return is_difference(target, left.amount, added) or is_difference(target, added, left.amount)


def _combine(left: Measure, right: Measure) -> Iterator[float]:
    """What two numbers can give but their difference, the first of them an amount of what is counted."""
    added = _find_added(left, right)
    if added is not None:
        yield left.amount + added
    if left.measure == right.measure == "share":
        return  # 5% is a fifth of 25%, and no discount of 20%
    number = right.amount / right.factor if right.measure != "share" else right.amount
    yield left.amount * number
    yield left.amount * right.amount  # 300 g, of a price per kilo
    if number:
        yield left.amount / number
    if right.measure == "share":
        yield left.amount * (1 - number)
        yield left.amount * (1 + number)
