"""Recognises numbers that follow from others: sums, products, shares, spans of time.

A number that the knowledge does not have does not contradict it if it can be computed from numbers of the knowledge,
and from numbers that the response names itself: "two packs are 24 batteries", of a pack of 12. Sums of just any numbers
prove nothing, so each way of computing has its condition: a word that names it, a common noun, or a number of the
response.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import combinations, permutations, product

from .computing_words import (
    AGAIN,
    AVERAGES,
    DIFFERENCES,
    FACTORS,
    PASSING,
    SERVINGS,
    SHARE_DIFFERENCES,
    SHARES,
    TOTALS,
    leave_out_others,
)
from .durations import derive_clock, derive_date, measure_time
from .numbers import stem
from .operands import (
    Operand,
    equals,
    get_amount,
    get_factor,
    go_together,
    is_alike,
    is_bare,
    is_difference,
    list_pairs,
    share_nouns,
)
from .records import Clock, Date, Measure, Value
from .units import MONEY

_SERVED = frozenset(map(stem, SERVINGS))


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
        ways = derive_clock(value.content, [*in_knowledge, *stated], passing=bool(words & PASSING))
    elif isinstance(value.content, Date):
        ways = derive_date(value.content, [*in_knowledge, *stated], again=bool(words & AGAIN))
    else:
        return ""
    way = next(ways, "")
    return way and f"{way} = {text}"


def _derive_measure(
    target: Measure, in_knowledge: Sequence[Operand], stated: Sequence[Operand], words: Set[str], factors: Set[str]
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
    named_factors: Set[str],
) -> Iterator[str]:
    named = bool(words & (TOTALS | SHARES | DIFFERENCES))
    factors = [(factor, word) for word, factor in FACTORS.items() if word in named_factors]
    factors += [
        (number, item.text)
        for item in stated
        if (named or not item.certain) and _may_multiply(target, item) and (number := get_factor(item)) > 0
    ]
    for factor, factor_text in factors:
        for item in alike:
            if not (share_nouns(target, item) or is_bare(item)):
                continue
            if factor != 1 and equals(target, factor * get_amount(item)):
                yield f"{factor_text} × {item.text}"
            if factor > 1 and words & SHARES and equals(target, get_amount(item) / factor):
                yield f"{item.text} / {factor_text}"
    if named_factors & SERVINGS:
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
            for factor, factor_text in factors:
                for other, other_text in [(1.0, ""), *factors]:
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
