"""Checks the values of a response against the knowledge, in steps between which a request may be stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groundwire.runtime.errors import TooLong
from groundwire.runtime.texts.characters import is_digits, starts_upper

from ..schema.steps import Steps
from .derived import Computation
from .hedges import opens_limit
from .knowledge import Knowledge, ValueText
from .names import split_by_case
from .sides import CheckedValue, Sides, check_value
from .tokens import NEGATIONS, Measure, Name, Token, Value, text_at

MAX_COMPARISONS = 500_000
"""Values of the response times numbers, capitals and sentences of the knowledge: a second of plain Python."""
COMPARISONS_AT_ONCE = 50_000
TOKENS_AT_ONCE = 10_000
"""Tokens that are read in one go, and comparisons that are made: about 100 ms."""
_PARTS = re.compile(r" [×+/=-] ")


def check_values(response: str, passages: Sequence[str], history: Sequence[str] = ()) -> tuple[CheckedValue, ...]:
    """The values of ``response`` that can be checked, in order; TooLong beyond ``MAX_COMPARISONS``.

    A number that may be computed is left out, and nothing contradicts a number that the history names: "For your order
    of £45 that makes £90".

    >>> text = "It has 3 strings, and Ann made it in 1999."
    >>> for check in check_values(text, ["Made in 1999, it has four strings."]):
    ...     print(text[check.value.start : check.value.end], check.outcome)
    3 contradicted
    Ann absent
    1999 supported
    """
    steps = check_in_steps(ValueText(response), [ValueText(passage) for passage in passages], history)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            checked: tuple[CheckedValue, ...] = end.value
            return checked


def check_in_steps(
    response: ValueText, passages: Sequence[ValueText], history: Sequence[str] = ()
) -> Steps[tuple[CheckedValue, ...]]:
    """The steps of ``check_values``: empty rounds, between which a request with long knowledge may be stopped."""
    yield from _tokenize((response, *passages))
    sides = _read_sides(response, passages, history)
    tokens, values, knowledge = sides.tokens, sides.values, sides.knowledge
    if not values:
        return ()
    size = _measure_knowledge(knowledge, passages)
    if len(values) * size > MAX_COMPARISONS:
        raise TooLong(
            f"The values of up to {MAX_COMPARISONS:,} pairs are compared; the response has {len(values):,} values, the "
            f"knowledge {size:,} numbers, capitals and sentences. Retrieve fewer passages, or leave this metric out."
        )
    negations: dict[int, list[int]] = {}
    for index, token in enumerate(tokens):
        corrects = (
            token.lower == "no" and text_at(tokens, index + 1) == "," and is_digits(text_at(tokens, index + 2)[:1])
        )
        if token.lower in NEGATIONS and not corrects and not opens_limit(tokens, index):  # "no, 36" says what is so
            negations.setdefault(token.sentence, []).append(token.start)
    computation = Computation(sides)
    checked: list[CheckedValue] = []
    compared = 0
    for value in values:
        check = computation.leave_alone(computation.derive(check_value(sides, value)))
        if check is not None and (
            check.outcome in ("supported", "derived")
            or value.corrects  # "no, wait, 36" says what is so
            or _is_checkable(check.value, negations.get(value.sentence, ()), knowledge)
        ):
            checked.append(check)
        compared += size
        if compared >= COMPARISONS_AT_ONCE:
            compared = 0
            yield []
    return tuple(_leave_factors(response.text, checked))


class ComputedValue(NamedTuple):
    """A value that follows from others, or that may."""

    value: Value
    derivation: str
    """How it follows: "15 + 12 = 27"; empty where it only may."""


def find_computed(response: str, passages: Sequence[str], history: Sequence[str] = ()) -> list[ComputedValue]:
    """Return the values that follow from others, or that may: nothing but their arithmetic speaks for them.

    Args:
        response: The text that states them.
        passages: The knowledge.
        history: The utterances before the response, oldest first.

    Returns:
        The values in order; all of them if there are too many to compare.
    """
    texts = [ValueText(passage) for passage in passages]
    sides = _read_sides(ValueText(response), texts, history)
    if len(sides.values) * _measure_knowledge(sides.knowledge, texts) > MAX_COMPARISONS:
        return [ComputedValue(value, "") for value in sides.values]
    computation = Computation(sides)
    checks = [(value, computation.leave_alone(computation.derive(check_value(sides, value)))) for value in sides.values]
    return [
        ComputedValue(value, check.derivation if check else "")
        for value, check in checks
        if check is None or check.outcome == "derived"
    ]


def _read_sides(response: ValueText, passages: Sequence[ValueText], history: Sequence[str]) -> Sides:
    texts = [response.tokens, *(passage.tokens for passage in passages)]
    capitalised, lower = split_by_case([token for tokens in texts for token in tokens])
    values = response.find_values(capitalised, lower)
    knowledge = Knowledge(passages, capitalised, lower)
    return Sides(response.text, [passage.text for passage in passages], response.tokens, values, knowledge, history)


def _measure_knowledge(knowledge: Knowledge, passages: Sequence[ValueText]) -> int:
    """How many numbers, sentences and capitals each value of a response is compared with."""
    return len(knowledge.values) + knowledge.sentences + sum(_count_capitals(passage.tokens) for passage in passages)


def _is_checkable(value: Value, negations: Sequence[int], knowledge: Knowledge) -> bool:
    """Whether the knowledge can be expected to have a value that it does not support.

    That a value is not so ("it is not an album by Queen") needs no support. Nor is it known whose name is meant when a
    passage begins with "she" or "the film".
    """
    if negations and (negations[0] < value.start or value.end < next(_list_after(value, negations), 0) < value.end + 6):
        return False
    subject = isinstance(value.content, Name) and value.content.opens
    return not (subject and knowledge.opens_without_name)


def _list_after(value: Value, negations: Sequence[int]) -> Iterator[int]:
    """Where negations begin that follow a value: "1 pm is not offered"."""
    return (start for start in negations if start >= value.end)


def _leave_factors(response: str, checked: Sequence[CheckedValue]) -> Iterator[CheckedValue]:
    """The values without the numbers of the response's own that others follow from: "two", of "two cost £15"."""
    parts = {(check.value.sentence, part) for check in checked for part in _PARTS.split(check.derivation)[:-1]}
    for check in checked:
        content = check.value.content
        is_count = isinstance(content, Measure) and content.measure == "count"
        text = response[check.value.start : check.value.end]
        if not (check.outcome == "absent" and is_count and (check.value.sentence, text) in parts):
            yield check


def _tokenize(texts: Sequence[ValueText]) -> Steps[None]:
    """Read the tokens of texts."""
    count = 0
    for text in texts:
        for part in text.read(TOKENS_AT_ONCE):
            count += len(part)
            if count >= TOKENS_AT_ONCE:
                count = 0
                yield []


def _count_capitals(tokens: Sequence[Token]) -> int:
    return sum(starts_upper(token.text) for token in tokens)
