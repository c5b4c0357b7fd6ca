"""Recognises numbers that follow from others: sums, products, shares, spans of time; "30 minutes before closing".

A number that the knowledge does not have does not contradict it if it can be computed from numbers of the knowledge,
and from numbers that the response names itself: "two packs are 24 batteries", of a pack of 12. Sums of just any numbers
prove nothing, so each way of computing has its condition: a word that names it, a common noun, or a number of the
response.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import date, timedelta
from itertools import accumulate, combinations, islice, permutations, product
from typing import NamedTuple

from .numbers import stem
from .records import Clock, Content, Date, Measure, Value
from .tokens import read_table
from .units import MONEY, UNITS

MAX_OPERANDS = 24
"""Numbers of each text that are computed with; of more of them any number is a sum."""
LEAST_COMPUTED = 10.0
"""Counts below it are sums and differences of most texts' numbers."""
MAX_TERMS = 8
"""Amounts of a sum, at most; three are combined where one measure has no more amounts."""
_TOTALS = frozenset(
    read_table("""
    total totals totalling totaling altogether together combined sum overall plus both all including include includes
    adds add extra pay pays paid spend spends whole
""")
)
_DIFFERENCES = frozenset(
    read_table("""
    difference differ more less fewer longer shorter cheaper higher lower older younger bigger smaller heavier later
    earlier left remain remains remaining rest save saves saving off discount minus without change gap apart refund
    lighter dearer deeper wider narrower taller thicker thinner faster slower warmer colder closer farther further
    below above short others except reduced down saved increase increased decrease decreased rise rose add adds added
    comes hotter cooler span range
""")
)
_SHARES = frozenset(read_table("each per apiece every half split share shared divided person"))
_AVERAGES = frozenset(read_table("average averages mean typical typically"))
FACTORS = {"twice": 2.0, "double": 2.0, "doubles": 2.0, "triple": 3.0, "half": 0.5, "quarter": 0.25, "both": 2.0}
"""Words that multiply."""
CHANGES = {"doubled": 2.0, "doubling": 2.0, "tripled": 3.0, "halved": 0.5}
"""Words that say how an amount has changed, so that it may be the amount before or after."""
RESTS = frozenset({"rest", "remaining", "remainder", "others"})
"""Words of the knowledge that leave an amount to be computed: "95 on the balcony, the rest in the stalls"."""
SERVINGS = frozenset(read_table("serves serving servings portion portions people persons person recipe makes yields"))
"""Words of the knowledge with which its amounts are for a number of people or portions."""
_SERVED = frozenset(map(stem, SERVINGS))
COMPUTING = (_TOTALS | _DIFFERENCES | _SHARES | _AVERAGES | FACTORS.keys()) - {"every", "per", "each", "all"}
"""Words that name a computation; not "every" and "each", which name rates: "every 20 minutes"."""
_OF_MONEY = frozenset({"pay", "pays", "paid", "spend", "spends", "cheaper", "dearer", "discount", "refund"})
"""Words that name computations of amounts of money alone."""
_NAMED_FACTORS = {**FACTORS, **CHANGES, "quarters": 0.75, "thirds": 2 / 3, "year": 12.0, "yearly": 12.0, "annual": 12.0}
"""Words that may multiply a number where nothing more is said."""
_PASSING = frozenset(
    read_table("""
    arrive arrives arriving arrival end ends ending finish finishes later earlier after before lasts takes back ready
    last get gets
""")
)
"""Words with which a time follows from another and a duration."""
_AGAIN = frozenset({"again", "open", "opens", "reopen", "reopens", "after", "next", "starts", "resumes"})
_DEGREES = frozenset({"degree", "temperature"})
_DAY_MINUTES = 1440
_YEAR_DAYS = UNITS["year"].factor
_LEAP_YEAR = 2024
"""The year of dates without one."""


RESPONSE, HISTORY = -1, -2
"""The passages of operands that are not of the knowledge."""


class Operand(NamedTuple):
    """A number that may be computed with."""

    value: Value
    text: str
    sentence_key: tuple[int, int]
    """Its passage and sentence; ``RESPONSE`` and ``HISTORY`` are passages too."""
    related: bool = True
    """Whether its sentence shares a content word with the response's."""
    certain: bool = True
    """Whether the knowledge has it; the response may add numbers of its own, "two packs"."""
    words: Set[str] = frozenset()
    """The content words of its sentence."""


def derive(
    value: Value,
    text: str,
    in_knowledge: Sequence[Operand],
    stated: Sequence[Operand],
    words: Set[str],
    factors: Set[str],
) -> str:
    """How ``value``, written as ``text``, follows from other numbers, as "15 + 12 = 27"; empty if it does not.

    ``in_knowledge`` are numbers of the knowledge, ``stated`` others of the response's sentence, ``words`` its words in
    lower case, ``factors`` the words of ``FACTORS`` that either text has, and the words of ``SERVINGS`` that the
    knowledge has.
    """
    ways: Iterator[str]
    if isinstance(value.content, Measure):
        ways = _derive_measure(value.content, in_knowledge, stated, words, factors)
    elif isinstance(value.content, Clock):
        ways = _derive_clock(value.content, [*in_knowledge, *stated], passing=bool(words & _PASSING))
    elif isinstance(value.content, Date):
        ways = _derive_date(value.content, [*in_knowledge, *stated], again=bool(words & _AGAIN))
    else:
        return ""
    way = next(ways, "")
    return way and f"{way} = {text}"


def keep_computing(value: Value, words: Set[str]) -> Set[str]:
    """The words, of the sentence of a value, that say that it is computed; "refund" of amounts of money only."""
    naming = COMPUTING | FACTORS.keys() | CHANGES.keys() | RESTS | {"each", "again"}
    return _leave_money(value.content, words & naming)


def _leave_money(content: Content, words: Set[str]) -> Set[str]:
    of_money = isinstance(content, Measure) and (content.measure in MONEY or content.measure == "share")
    return words if of_money else words - _OF_MONEY


def may_be_factor(value: Value, other: Measure) -> bool:
    """Whether a number beside a value may be multiplied or added to give it: "two", of "two tickets are £9".

    The ends of a range are none, and an amount of time is one of amounts that are not.
    """
    if other.span is not None or other.measure == "rank" or not isinstance(value.content, Measure):
        return False
    return other.measure in ("count", "share", value.content.measure) or value.content.measure in MONEY


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
        return any(_derive_clock(content, operands, passing=True))
    if isinstance(content, Date):
        return any(_derive_date(content, [*operands, *_count_inclusively(operands)], again=False))
    if not isinstance(content, Measure) or content.measure == "rank":
        return False
    if content.measure == "count" and content.amount < LEAST_COMPUTED:
        return False
    named = bool(_leave_money(content, words & COMPUTING))
    factors = [factor for word, factor in _NAMED_FACTORS.items() if word in words]
    factors += [1 / factor for word, factor in CHANGES.items() if word in words]
    numbers = [(item, item.value.content) for item in operands if isinstance(item.value.content, Measure)]
    for left, first in numbers:
        for right, second in numbers:
            if left is right or second.measure == "rank":
                continue
            if min(left.sentence_key[0], right.sentence_key[0]) >= 0 and not (named and _go_together(left, right)):
                continue
            if _may_be_operand(content, first) and any(_equals(content, amount) for amount in _combine(first, second)):
                return True
            if _is_ratio(content, first, second):
                return True
        if _may_be_operand(content, first) and any(_equals(content, first.amount * factor) for factor in factors):
            return True
    if named and content.measure in _DEGREES and _is_gap(content, numbers):
        return True
    return _adds_listed(value, content, listed) or _takes_three(
        content, numbers, named=named and (content.measure == "count" or content.measure in MONEY)
    )


def _may_be_operand(target: Measure, content: Measure) -> bool:
    return _is_alike(target, content) or (content.measure == "count" and not content.nouns)


def _is_gap(target: Measure, numbers: Iterable[tuple[Operand, Measure]]) -> bool:
    """Whether "10 degrees" are between two temperatures."""
    degrees = [content.amount for _, content in numbers if content.measure in _DEGREES]
    return any(abs(abs(left - right) - target.amount) < 1e-6 for left, right in combinations(degrees, 2))


def _is_ratio(target: Measure, first: Measure, second: Measure) -> bool:
    """Whether a number or a time is how often one amount is in another: 600 weeks, of 300 kg and half a kilo a week."""
    if target.measure not in ("count", "duration") or first.measure != second.measure or first.measure == "count":
        return False
    return second.amount > 0 and _equals(target, first.amount / second.amount * target.factor)


def _adds_listed(value: Value, target: Measure, listed: Iterable[Value]) -> bool:
    """Whether an amount is the sum of amounts that the response lists right before or after it."""
    amounts = [(item.start, item.content.amount) for item in listed if isinstance(item.content, Measure)
               and item.content.measure == target.measure]  # fmt: skip
    before = [amount for start, amount in reversed(amounts) if start < value.start]
    after = [amount for start, amount in amounts if start > value.start]
    sums = (total for side in (before, after) for total in islice(accumulate(side[:MAX_TERMS]), 1, None))
    return any(_equals(target, total) for total in sums)


def _takes_three(target: Measure, numbers: Sequence[tuple[Operand, Measure]], *, named: bool) -> bool:
    """Whether an amount is a × b × c, a × b ± c or a × b + c × d with factors that are not of the knowledge.

    Where a computation of money or numbers is named, all may be of the knowledge, and it may be a + b ± c, too.
    """
    alike = [content.amount for _, content in numbers if _may_be_operand(target, content)][: 2 * MAX_TERMS]
    stated = {_count(item) for item, _ in numbers if named or item.sentence_key[0] < 0}
    factors = sorted(factor for factor in stated if factor > 1)[:MAX_TERMS]
    products = [factor * amount for factor in factors for amount in alike]
    if any(_equals(target, factor * amount) for factor in (1.0, *factors) for amount in products):
        return True
    margin = _find_margin(target)
    added = sorted([*alike, *products, *(-amount for amount in alike)])
    for amount in products:
        index = bisect_left(added, target.amount - amount - margin)
        if index < len(added) and added[index] <= target.amount - amount + margin:
            return True
    triples = combinations(alike[:MAX_TERMS], 3) if named else ()
    return any(_equals(target, total) for a, b, c in triples for total in (a + b + c, a + b - c, a + c - b, b + c - a))


def _count_inclusively(operands: Sequence[Operand]) -> Iterator[Operand]:
    """Periods of days without their first day: from the 1st to the 14th for 14 days."""
    for item, duration in _durations(operands):
        if 1 < duration.amount == round(duration.amount):
            content = duration._replace(amount=duration.amount - 1, factor=1.0)
            yield item._replace(value=item.value._replace(content=content))


def _combine(left: Measure, right: Measure) -> Iterator[float]:
    """What two numbers can give, the first of them an amount of what is counted."""
    bare = right.measure == "count" and not right.nouns
    if left.measure == right.measure or bare:  # "104 days (previous year 89)"
        amount = right.amount * (left.factor if bare else 1.0)
        yield left.amount + amount
        yield abs(left.amount - amount)
    number = right.amount / right.factor if right.measure != "share" else right.amount
    yield left.amount * number
    yield left.amount * right.amount  # 300 g, of a price per kilo
    if number:
        yield left.amount / number
    if right.measure == "share":
        yield left.amount * (1 - number)
        yield left.amount * (1 + number)


def _derive_measure(
    target: Measure, in_knowledge: Sequence[Operand], stated: Sequence[Operand], words: Set[str], factors: Set[str]
) -> Iterator[str]:
    if target.measure == "rank":
        return
    alike = [item for item in in_knowledge if _is_alike(target, item.value.content)]
    words = _leave_money(target, words)
    yield from _add(target, alike, words)
    yield from _subtract(target, alike, stated, words)
    yield from _multiply(target, alike, in_knowledge, stated, words, factors)
    yield from _take_shares(target, alike, [*in_knowledge, *stated], words)
    yield from _measure_time(target, [*in_knowledge, *stated])


def _go_together(left: Operand, right: Operand) -> bool:
    """Whether two numbers may be computed with: of one passage, of sentences about the value, or of the response."""
    passages = (left.sentence_key[0], right.sentence_key[0])
    return min(passages) < 0 or passages[0] == passages[1] or (left.related and right.related)


def _are_linked(duration: Operand, moment: Operand) -> bool:
    """Whether a duration may begin or end at a date or time: "within 15 days of payout", and "payout: 5 June"."""
    return _go_together(duration, moment) or not duration.words.isdisjoint(moment.words)


def _pairs(items: Iterable[Operand]) -> Iterator[tuple[Operand, Operand]]:
    """Pairs of numbers in both orders that may be computed with."""
    return (pair for pair in permutations(items, 2) if _go_together(*pair))


def _is_alike(target: Measure, content: object) -> bool:
    return isinstance(content, Measure) and content.measure == target.measure


def _amount(item: Operand) -> float:
    assert isinstance(item.value.content, Measure)
    return item.value.content.amount


def _equals(target: Measure, amount: float) -> bool:
    """Whether an amount is the target, rounded as the target is written."""
    return abs(target.amount - amount) <= _find_margin(target)


def _find_margin(target: Measure) -> float:
    """How far an amount may be from the target that is rounded."""
    share = 0.05 if target.hedge == "about" else 1.0 if target.measure == "share" else 0.001
    rounded = min(0.5 * target.step, share * abs(target.amount)) * (1 + 1e-6)
    return max(1e-6 * max(abs(target.amount), 1.0), rounded)


def _add(target: Measure, alike: Sequence[Operand], words: Set[str]) -> Iterator[str]:
    named = bool(words & _TOTALS)
    same = [item for item in alike if _share_nouns(target, item)]
    groups = [same, *(list(group) for group in _by_place(same))]
    for group in groups:
        if not (named or all(item.related for item in group)):
            continue
        # Two numbers of different sentences have little to do with each other.
        alone = len(group) == 2 and group[0].sentence_key != group[1].sentence_key and not named
        together = all(_go_together(group[0], item) for item in group[1:])
        if 2 <= len(group) <= 8 and together and not alone and _equals(target, sum(map(_amount, group))):
            yield " + ".join(item.text for item in group)
        if words & _AVERAGES and len(group) > 1 and _equals(target, sum(map(_amount, group)) / len(group)):
            yield f"({' + '.join(item.text for item in group)}) / {len(group)}"
    for left, right in combinations(alike, 2):
        together = left.sentence_key == right.sentence_key and target.measure != "count" and left.related
        if ((named and _go_together(left, right)) or together) and _equals(target, _amount(left) + _amount(right)):
            yield f"{left.text} + {right.text}"


def _share_nouns(target: Measure, item: Operand) -> bool:
    """Whether two amounts count the same thing, or measure in one unit."""
    assert isinstance(item.value.content, Measure)
    return target.measure != "count" or bool(target.nouns & item.value.content.nouns)


def _by_place(items: Iterable[Operand]) -> Iterable[Sequence[Operand]]:
    groups: dict[tuple[int, int], list[Operand]] = {}
    for item in items:
        groups.setdefault(item.sentence_key, []).append(item)
    return groups.values()


def _subtract(target: Measure, alike: Sequence[Operand], stated: Sequence[Operand], words: Set[str]) -> Iterator[str]:
    if not words & _DIFFERENCES:
        return
    ours = [item for item in stated if _is_alike(target, item.value.content)]
    for left, right in _pairs(item for item in [*alike, *ours] if _share_nouns(target, item) or _is_bare(item)):
        if (left.sentence_key[0] >= 0 or right.sentence_key[0] >= 0) and _equals(
            target, _amount(left) - _amount(right)
        ):
            yield f"{left.text} - {right.text}"


def _multiply(
    target: Measure,
    alike: Sequence[Operand],
    in_knowledge: Sequence[Operand],
    stated: Sequence[Operand],
    words: Set[str],
    named_factors: Set[str],
) -> Iterator[str]:
    named = bool(words & (_TOTALS | _SHARES | _DIFFERENCES))
    factors = [(factor, word) for word, factor in FACTORS.items() if word in named_factors]
    factors += [
        (number, item.text)
        for item in stated
        if (named or not item.certain) and _may_multiply(target, item) and (number := _count(item)) > 0
    ]
    for factor, factor_text in factors:
        for item in alike:
            if not (_share_nouns(target, item) or _is_bare(item)):
                continue
            if factor != 1 and _equals(target, factor * _amount(item)):
                yield f"{factor_text} × {item.text}"
            if factor > 1 and words & _SHARES and _equals(target, _amount(item) / factor):
                yield f"{item.text} / {factor_text}"
    if named_factors & SERVINGS:
        yield from _scale(target, alike, in_knowledge, stated)
    # A price for each and a fee; two adults and a child.
    prices = [item for item in [*alike, *stated] if _is_alike(target, item.value.content)]
    if words & (_TOTALS | {"with", "extra"}):
        for left, right in permutations(prices, 2):
            named_own = left.sentence_key[0] < 0 <= right.sentence_key[0]
            if named_own and _equals(target, _amount(left) + _amount(right)):
                yield f"{left.text} + {right.text}"
    if target.measure in MONEY or words & _TOTALS:
        for left, right in _pairs(alike):
            for factor, factor_text in factors:
                for other, other_text in [(1.0, ""), *factors]:
                    first, second = factor * _amount(left), other * _amount(right)
                    second_text = f"{other_text and other_text + ' × '}{right.text}"
                    if _equals(target, first + second):
                        yield f"{factor_text} × {left.text} + {second_text}"
                    if words & _DIFFERENCES and _equals(target, first - second):
                        yield f"{factor_text} × {left.text} - {second_text}"
    if not named:
        return
    for left, right in _pairs(in_knowledge):
        count = _count(right)
        if count <= 1 or not (_may_multiply(target, right) and _is_alike(target, left.value.content)):
            continue
        if not _share_nouns(target, left) or (target.measure == "count" and right.value.kind != "number"):
            continue
        if _equals(target, count * _amount(left)):
            yield f"{right.text} × {left.text}"
        if words & _SHARES and _equals(target, _amount(left) / count):
            yield f"{left.text} / {right.text}"


def _scale(
    target: Measure, alike: Sequence[Operand], in_knowledge: Sequence[Operand], stated: Sequence[Operand]
) -> Iterator[str]:
    """An amount of a recipe for another number of people: "600 g", of "serves 4: 300 g" and "eight people"."""
    for ours, theirs in product(stated, in_knowledge):
        count, known_count = _count(ours), _count(theirs)
        if ours.certain or count <= 0 or known_count <= 0 or not _counts_people(ours) or not _counts_people(theirs):
            continue
        for item in alike:
            if _share_nouns(target, item) and _equals(target, count / known_count * _amount(item)):
                yield f"{ours.text} / {theirs.text} × {item.text}"


def _counts_people(item: Operand) -> bool:
    """Whether a number counts nothing that is named, or people or portions."""
    content = item.value.content
    assert isinstance(content, Measure)
    return content.measure == "count" and (not content.nouns or bool(content.nouns & _SERVED))


def _is_bare(item: Operand) -> bool:
    """Whether a number does not say what it counts: "a pack of 12"."""
    return isinstance(item.value.content, Measure) and not item.value.content.nouns


def _may_multiply(target: Measure, item: Operand) -> bool:
    """Whether a number is a count, or a time in which an amount of money is due: never a duration of durations."""
    content = item.value.content
    return isinstance(content, Measure) and (content.measure == "count" or content.measure != target.measure)


def _count(item: Operand) -> float:
    """A number as a factor: 2 of "two packs", 3 of "3 hours"; 0 for what is none."""
    content = item.value.content
    if not isinstance(content, Measure) or content.measure in MONEY or content.measure in ("share", "rank"):
        return 0.0
    return content.amount / content.factor


def _take_shares(target: Measure, alike: Sequence[Operand], items: Sequence[Operand], words: Set[str]) -> Iterator[str]:
    shares = [
        item for item in items if isinstance(item.value.content, Measure) and item.value.content.measure == "share"
    ]
    if target.measure != "share":
        for share in shares:
            for item in [*alike, *(item for item in items if _is_alike(target, item.value.content))]:
                amount, part = _amount(item), _amount(share)
                if not (_share_nouns(target, item) and _go_together(share, item)):
                    continue
                if _equals(target, amount * part):
                    yield f"{share.text} × {item.text}"
                if _equals(target, amount * (1 - part)) or _equals(target, amount * (1 + part)):
                    yield f"{item.text} {'-' if target.amount < amount else '+'} {share.text}"
        return
    for share in shares:
        if words & _DIFFERENCES and _equals(target, 1 - _amount(share)):
            yield f"100% - {share.text}"
    measures = [item for item in items if isinstance(item.value.content, Measure)]
    for left, right in _pairs(measures):
        left_content, right_content = left.value.content, right.value.content
        assert isinstance(left_content, Measure)
        assert isinstance(right_content, Measure)
        if left_content.measure != right_content.measure or left_content.measure in ("rank", "share"):
            continue
        whole, part = right_content.amount, left_content.amount
        if whole <= 0:
            continue
        if _equals(target, part / whole):
            yield f"{left.text} / {right.text}"
        elif _equals(target, abs(part - whole) / whole):
            yield f"({left.text} - {right.text}) / {right.text}"


def _measure_time(target: Measure, items: Sequence[Operand]) -> Iterator[str]:
    """Ages and spans of time: the years between two dates, the hours between two times of day."""
    if target.measure != "duration" and (target.measure != "count" or target.nouns):
        return
    factor = target.factor if target.measure == "duration" else _YEAR_DAYS
    days = target.amount if target.measure == "duration" else target.amount * _YEAR_DAYS
    dates = [(item, item.value.content) for item in items if isinstance(item.value.content, Date)]
    for (left, start), (right, end) in permutations(dates, 2):
        if not _go_together(left, right):
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
        if not _go_together(left, right):
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


def _durations(items: Sequence[Operand]) -> Iterator[tuple[Operand, Measure]]:
    for item in items:
        if isinstance(item.value.content, Measure) and item.value.content.measure == "duration":
            yield item, item.value.content


def _derive_clock(target: Clock, items: Sequence[Operand], *, passing: bool) -> Iterator[str]:
    for item, duration in _durations(items):
        if not (passing or item.related):
            continue
        minutes = round(duration.amount * _DAY_MINUTES)
        if not 0 < minutes < _DAY_MINUTES:
            continue
        for other in items:
            content = other.value.content
            if not isinstance(content, Clock) or not _are_linked(item, other):
                continue
            period = _DAY_MINUTES if content.half_known and target.half_known else _DAY_MINUTES // 2
            for operator, sum_minutes in (("-", content.minutes - minutes), ("+", content.minutes + minutes)):
                if (sum_minutes - target.minutes) % period == 0:
                    yield f"{other.text} {operator} {item.text}"


def _derive_date(target: Date, items: Sequence[Operand], *, again: bool) -> Iterator[str]:
    dates = [(item, item.value.content) for item in items if isinstance(item.value.content, Date)]
    for other, content in dates:
        # The day after a period, on which something opens again.
        day = [(" 1 day", _ONE_DAY)] if again and content.days is not None else []
        steps = [(f" {item.text}", step) for item, step in _durations(items) if _are_linked(item, other)]
        for text, duration in [*day, *steps]:
            for direction in (1, -1):
                if _is_after(target, content, duration, direction):
                    yield f"{other.text} {'+' if direction > 0 else '-'}{text}"


_ONE_DAY = Measure("duration", 1.0, 1.0)


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
