"""Which record of a result a value of an argument belongs to, and which record the turn speaks of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .calls import Argument
from .context import TurnContext
from .mentions import Mentions, list_leaves, read_float, stem_words
from .moments import HALF_DAY, read_clock, read_date
from .rows import flatten

_CLOCK_LENGTH = 8
"""Characters of a time of day, at most."""
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
