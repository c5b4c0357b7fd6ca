"""Amounts, minima and maxima, and references of a text that no result has.

An amount may follow from others: a sum over rows or within a record, a difference, a product. What may be of a part of
the rows that the rules cannot read is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product

from groundwire.engine.schema.knowledge import list_records
from groundwire.engine.values import ExactCode, Measure, Value, read_values
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_digits

from .context import TurnContext
from .mentions import Mentions, has_near, has_other, list_leaves, list_lengths, squeeze, stem_words
from .records import Finding, find_value
from .rows import has_sum, read_leaf
from .words import COUNT_KEY

_CODES = frozenset({"phone", "email", "url", "identifier"})
_CODE_LENGTH, _CODE_DIGITS = 4, 3
"""Characters and digits of a reference, at least."""
_DIFFERENCE = re.compile(
    r"(?:saves?|costs?|leaves?|adds?)\s+(?:you\s+)?[^,.;]{0,12}?$"
    r"|^\W*(?:\w+\s+)?(?:better off|worse off|dearer|cheaper|more|less|extra|off\b|in savings)",
    re.IGNORECASE,
)
_EACH = re.compile(r"^\W*(?:a|per|each|every)\s+(?P<unit>night|day|person|head|month|week|hour|piece)\b", re.IGNORECASE)
_CENT = 0.005
_MAX_NUMBERS = 60
"""Numbers of which two are combined, at most: of more, any amount follows."""
_MAX_TERMS = 8
"""Numbers of a record that are added up, at most."""
_MAX_KEYED = 3
"""Numbers of a key that are added up, at most."""
_WHOLE = 0.5
"""What a whole amount may differ from the one that it rounds."""
_NAMED = re.compile(
    r"(?P<before>(?:[^\W\d_]+\s+){0,2})(?P<head>[^\W\d_]+)\s+(?:(?:at|for|in|on|with)\s+(?:[^\W\d_]+\s+){1,4})?"
    r"(?:is|are|of)\s+[€£$]?$",
    re.IGNORECASE,
)
"""What a number directly after it is given to."""
_TOGETHER = re.compile(r"\b(?:and|both|total|all|together|altogether)\b", re.IGNORECASE)


def check_references(context: TurnContext) -> Iterator[Finding]:
    """Yield references, phone numbers and addresses of a turn's text that neither dialogue nor log has.

    Args:
        context: The turn.
    """
    for value in read_values(context.text):
        words, content = context.text[value.start : value.end], value.content
        if (
            value.kind not in _CODES
            or not isinstance(content, ExactCode)
            or context.everything.has_squeezed(content.key)
        ):
            continue
        is_long = len(squeeze(content.key)) >= _CODE_LENGTH and sum(map(is_digits, words)) >= _CODE_DIGITS
        is_reference = value.kind != "identifier" or is_long
        if is_reference and not context.everything.has_squeezed(words.split()[-1]):
            yield find_value(
                "absent", context.text, value.start, value.end, f"{words} is not in the dialogue or the log."
            )


def check_amounts(context: TurnContext) -> Iterator[Finding]:
    """Yield amounts of money that no result has and that do not follow, and totals that are said to be rates.

    Args:
        context: The turn.
    """
    text = context.text
    keyed = [
        (key.lower(), number)
        for result in context.results
        for _, key, leaf in list_leaves(result, "")
        if (number := read_leaf(leaf)) is not None
    ]
    written = Mentions(leaf for leaf in context.result_values if " " in leaf).numbers
    numbers = sorted((*(number for _, number in keyed), *written))
    pool = _list_numbers(numbers, context)
    for value in read_values(text):
        if value.kind != "money" or not isinstance(value.content, Measure):
            continue
        amount = value.content.amount / value.content.factor
        before, after = text[max(0, value.start - 40) : value.start], text[value.end : value.end + 30]
        if _DIFFERENCE.search(before) or _DIFFERENCE.match(after):
            margin = max(0.6, 0.04 * amount)
            context.check_time()
            is_gap = any(has_near(numbers, number + amount, margin) for number in numbers)
            is_known = is_gap or has_near(numbers, amount, margin) or ("cost" in before and _adds_up(amount, context))
            if not is_known and not is_sum(context, value.start):
                yield find_value(
                    "absent",
                    text,
                    value.start,
                    value.end,
                    "No result has this amount, and no two amounts differ by it.",
                )
        elif _EACH.match(after) and (owners := [key for key, number in keyed if abs(number - amount) < 2 * _CENT]):
            if all("total" in key for key in owners):
                yield find_value("absent", text, value.start, value.end, f"The result has this as {owners[0]}.")
        elif value.content.hedge == "exact" and not _follows(value, amount, numbers, pool, context):
            yield find_value(
                "absent",
                text,
                value.start,
                value.end,
                "No result has this amount, and it does not follow from the results.",
            )


def check_keys(context: TurnContext) -> Iterator[Finding]:
    """Yield numbers that a text gives to what the results have under a key, and no result has: "the deposit is 25".

    Args:
        context: The turn.
    """
    keyed = [
        (stem_words(key), number)
        for result in context.results
        for _, key, leaf in list_leaves(result, "")
        if (number := read_leaf(leaf)) is not None and not COUNT_KEY.search(key.lower())
    ]
    lengths = (length for call in context.log for length in list_lengths(call.arguments))
    counts = sorted({*context.dialogue.counts, *map(float, lengths)})[:_MAX_TERMS]
    for sentence in sentences(context.text):
        context.check_time()
        for value in read_values(sentence.text):
            content = value.content
            noun = _NAMED.search(sentence.text[: value.start])
            if not noun or not isinstance(content, Measure) or value.kind not in ("money", "number"):
                continue
            head, others = stem_words(noun["head"]), stem_words(noun["before"])
            shared = [(len(stems & others), number) for stems, number in keyed if head and head <= stems]
            most = max((count for count, _ in shared), default=0)
            numbers = [number for count, number in shared if count == most]
            stated = {content.amount, content.amount / content.factor}
            if (
                numbers
                and content.hedge == "exact"
                and not any(
                    _gives(numbers, amount, counts, is_sum=_TOGETHER.search(sentence.text) is not None)
                    for amount in stated
                )
            ):
                message = f"The results have {', '.join(f'{number:g}' for number in numbers[:_MAX_TERMS])}."
                yield find_value("absent", sentence.text, value.start, value.end, message, sentence.start)


def _gives(numbers: Sequence[float], amount: float, counts: Collection[float], *, is_sum: bool) -> bool:
    """Whether one of some numbers is an amount, by itself or times a count, or some of these add up to it."""
    if any(abs(number * unit - amount) < _CENT for number in numbers for unit in (1, 100, 0.01)):  # cents, pence
        return True
    if not is_sum:
        return any(abs(number * count - amount) < _CENT for number in numbers for count in counts)
    terms = [[0.0, number, *(number * count for count in counts)] for number in numbers[:_MAX_KEYED]]
    return any(abs(sum(some) - amount) < _CENT for some in product(*terms))


def _list_numbers(numbers: Sequence[float], context: TurnContext) -> list[float]:
    """The numbers that amounts may follow from, the smallest first: of log, dialogue and text, and lengths of lists."""
    parts = (*(call.arguments for call in context.log), *context.all_results)
    lengths = (float(length) for part in parts for length in list_lengths(part))
    return sorted({*numbers, *context.everything.parts, *lengths, *Mentions([context.text]).numbers})


def _follows(
    value: Value, amount: float, numbers: Sequence[float], pool: Sequence[float], context: TurnContext
) -> bool:
    """Whether an amount is in a result or the dialogue, or is computed from them."""
    context.check_time()
    is_said = context.everything.has_number(amount)
    everything = pool if is_said else [number for number in pool if number != amount]
    margin = _WHOLE if amount.is_integer() else _CENT
    if not numbers or has_near(everything, amount, margin) or len(everything) > _MAX_NUMBERS:
        return True
    if has_near(numbers, 100 * amount, _CENT):  # in pence or cents
        return True
    if is_sum(context, value.start) or _adds_up(amount, context) or _is_mean(amount, context):
        return True
    everything = [number for number in everything if number not in (0, 1)]
    for index, number in enumerate(everything):
        wanted = [amount - number, amount + number, number - amount, amount / number, 100 * amount / number]
        wanted += [number / amount] if amount else []
        if any(has_other(everything, index, other - _CENT, other + _CENT) for other in wanted):
            return True
    products = sorted(left * right for left, right in combinations(everything, 2))
    return any(
        has_near(products, amount + direction * number, margin) for number in everything for direction in (1, -1)
    )


def _is_mean(amount: float, context: TurnContext) -> bool:
    """Whether an amount is the mean of a key of the rows of a list."""
    for group in context.groups:
        for key in group.records[0]:
            numbers = [number for record in group.records if (number := read_leaf(record.get(key))) is not None]
            if numbers and abs(sum(numbers) / len(numbers) - amount) < 2 * _CENT:
                return True
    return False


def _adds_up(amount: float, context: TurnContext) -> bool:
    """Whether some numbers of one record add up to an amount."""
    for record in (record for result in context.results for record in list_records(result)):
        terms = [number for leaf in record.values() if (number := read_leaf(leaf)) is not None][:_MAX_TERMS]
        if any(
            abs(sum(some) - amount) < _CENT for size in range(2, len(terms) + 1) for some in combinations(terms, size)
        ):
            return True
    return False


def is_sum(context: TurnContext, index: int) -> bool:
    """Return whether the value at an index of the text is the sum of rows that its sentence is about."""
    context.check_time()
    sentence, start = find_sentence(context.text, index)
    values = [value for value in read_values(sentence) if value.start <= index - start < value.end]
    return any(has_sum(value, group.select(sentence)) for value in values for group in context.groups)


def find_sentence(text: str, index: int) -> tuple[str, int]:
    """Return the sentence with a character of a text, and where it begins; the text where none has it."""
    around = (item for item in sentences(text) if item.start <= index < item.end)
    return next(((item.text, item.start) for item in around), (text, 0))
