"""Which record of a result a value of an argument belongs to, and which record the turn speaks of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from groundwire.engine.schema.knowledge import CURRENCIES, split_key

from .calls import Argument
from .context import TurnContext
from .mentions import Mentions, list_leaves, read_float, stem_words
from .moments import HALF_DAY, read_clock, read_date
from .rows import flatten, list_values, read_leaf
from .words import QUANTITY_KEY

_CLOCK_LENGTH = 8
"""Characters of a time of day, at most."""
_CENT = 0.005
_LEAST = 0.1
"""What is mentioned of a record that is spoken of, at least."""


def find_owner(argument: Argument, context: TurnContext) -> str:
    """Return why a value belongs to another record than the turn speaks of; empty if it does not.

    Args:
        argument: The argument.
        context: The turn.
    """
    value = str(argument.value).lower()
    owners = context.owners.get(value, ())
    if len(owners) != 1 or isinstance(argument.value, bool):
        return ""
    (owner,) = owners
    key = next((name for name, leaf in owner.record.items() if str(leaf).lower() == value), "")
    recent = [text for role, text in context.history if role == "user"][-1:]
    own_words = [
        str(other) for path, _, other in list_leaves(argument.call.arguments, "") if str(other).lower() != value
    ]
    counts = _RecordWords(owner.records)
    for mentions in (Mentions((*recent, context.text, *own_words)), context.dialogue):
        score = counts.count_mentions(owner.record, mentions, value)
        for record in owner.others:
            is_chosen = key and str(record.get(key, "")).lower() in context.chosen
            if not is_chosen and counts.count_mentions(record, mentions, value) >= max(2 * score, _LEAST):
                return f"{argument.value} is of another record than {_name(record)}."
        if score > 0:
            return ""
    return ""


class _Row(NamedTuple):
    """An object of a result."""

    record: Mapping[str, Any]
    is_item: bool
    """Whether it is in a list of an object, as the items of an order are."""
    is_alone: bool
    """Whether no other is in its list."""


def _list_rows(value: Any, *, is_inside: bool = False) -> Iterator[_Row]:
    """The objects of a result, but those that are values of keys."""
    if isinstance(value, Mapping):
        yield _Row(value, is_item=False, is_alone=True)
        for inner in value.values():
            yield from _list_rows(inner, is_inside=True) if isinstance(inner, list | tuple) else ()
    elif isinstance(value, list | tuple):
        records = [item for item in value if isinstance(item, Mapping)]
        for record in records:
            first, *inside = _list_rows(record)
            yield first._replace(is_item=is_inside, is_alone=len(records) == 1)
            yield from inside


def find_other_amount(argument: Argument, context: TurnContext) -> str:
    """Return why an amount of money is not of the one record or item that the other arguments name; empty if it may be.

    Args:
        argument: The argument.
        context: The turn.
    """
    amount, arguments = read_leaf(argument.value), argument.call.arguments
    if amount is None or not _is_money(argument.key, amount):
        return ""
    texts = {str(value).lower() for _, _, value in list_leaves(arguments, "") if isinstance(value, str)}
    counts = [count for key, count in arguments.items() if type(count) is int and QUANTITY_KEY.search(key.lower())]
    rows = [row for result in context.results for row in _list_rows(result)]
    named = [row for row in rows if texts & {leaf.lower() for leaf in row.record.values() if isinstance(leaf, str)}]
    items = [row for row in named if row.is_item]
    if counts and not items:
        items = [row for row in rows if row.is_item]
        items = items if len(named) == 1 and len(items) == 1 else []
    chosen = items or named
    if not chosen or any(row.record != chosen[0].record for row in chosen):
        return ""
    record = chosen[0].record
    if items:
        return (
            ""
            if _is_price(amount, record, prod(counts) if counts else 0)
            else f"{argument.value} is not the amount of {_name(record)}."
        )
    others = [other for group in context.groups if id(record) in group.ids for other in group.records]
    is_own, is_others = (
        any(read_leaf(leaf) == amount for of_record in records for _, leaf in list_values(of_record))
        for records in ([record], others)
    )
    return f"{argument.value} is of another record than {_name(record)}." if is_others and not is_own else ""


def _is_price(amount: float, item: Mapping[str, Any], count: int) -> bool:
    """Whether an amount is the price of so many of an item, of one or all where no count is given, or it has none."""
    keyed = [(key.lower(), number) for key, leaf in item.items() if (number := read_leaf(leaf)) is not None]
    prices = [number for key, number in keyed if _is_money(key, number)]
    quantity = next((number for key, number in keyed if QUANTITY_KEY.search(key) and number > 0), 1.0)
    shares = (count, count / quantity) if count else (1, quantity)
    return not prices or any(abs(price * share - amount) < _CENT for price in prices for share in shares)


def _is_money(key: str, number: float) -> bool:
    return split_key(key.lower(), number, "EUR")[1] in CURRENCIES.values()


class _RecordWords:
    """The values and words of the records of a list, and in how many of them each is."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        leaves = [{str(value) for value in flatten(record).values()} for record in records]
        self._values = Counter(value for of_record in leaves for value in of_record)
        self._words = Counter(word for of_record in leaves for word in stem_words(" ".join(of_record)))

    def count_mentions(self, record: Mapping[str, Any], mentions: Mentions, left_out: str) -> float:
        """Return how many values of a record are mentioned that no other record has, leaving one out."""
        count = 0.0
        for value in flatten(record).values():
            if isinstance(value, bool) or str(value).lower() == left_out or self._values[str(value)] > 1:
                continue
            if isinstance(value, int | float):
                number = read_float(value)
                count += number is not None and number > 1 and mentions.has_number(number)
            elif (day := read_date(value)) is not None:
                clock = read_clock(value[10:])
                count += (day.month, day.day) in mentions.dates or day.weekday() in mentions.weekdays
                count += clock is not None and clock > 0 and clock % HALF_DAY in mentions.times
            elif (clock := read_clock(value)) is not None and len(value) <= _CLOCK_LENGTH:
                count += clock % HALF_DAY in mentions.times
            else:
                words = {word for word in stem_words(value) if len(word) > 2}
                count += bool(words) and words <= mentions.stems
                names = {word for word in words if self._words[word] == 1}
                count += len(names & mentions.stems) / max(1, len(names))
        return count


def _name(record: Mapping[str, Any]) -> str:
    return next(
        (value for value in record.values() if isinstance(value, str) and " " in value),
        str(next(iter(record.values()), "")),
    )
