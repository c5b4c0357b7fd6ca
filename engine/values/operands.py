"""Numbers that may be computed with: which go together, what they amount to, and whether a result equals a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import permutations
from typing import NamedTuple

from .knowledge import SentenceKey
from .records import Measure, Value
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
