"""Finds values that make a response wrong in the place of a right one.

A value of another record is wrong only if no record makes it true: an offer ("There is Sino in San Jose") is true of
every record that has all its values, other statements speak of one record.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .turns import ToolResult, ToolTurn, ToolValue

COUNT, CONFIRM, INFORM = "INFORM_COUNT", "CONFIRM", "INFORM"
SAME = (
    frozenset({"5 out of 5", "high"}),
    frozenset({"3 out of 5", "average"}),
    frozenset({"1 out of 5", "low"}),
    frozenset({"cheap", "less than £20"}),
    frozenset({"moderate", "£20-25"}),
    frozenset({"high", "more than £30"}),
    frozenset({"restaurant", "coffee shop"}),
    frozenset({"restaurant", "pub"}),
)
"""Values of E2E that may be true at once: two scales, and what serves food."""
OTHERS = 3
"""Values that the log lacks, of those that a slot can have."""
MOST_WORDS = 9
"""Words of the longest value that is exchanged."""
COUNTS = range(2, 11)
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class ValueSwap:
    """A value of a turn and what makes the turn wrong in its place."""

    index: int
    """Of the turn's values."""
    value: str
    """As a record would have it; empty for the opposite of a claim."""
    text: str
    near: bool
    """Whether another record of the log has the value."""

    def apply(self, turn: ToolTurn) -> tuple[str, int, int]:
        """The response with the other value, and where that is."""
        old = turn.values[self.index]
        text = self.text
        if old.start == 0 and turn.response[:1].isupper():
            text = text[:1].upper() + text[1:]
        return turn.response[: old.start] + text + turn.response[old.end :], old.start, old.start + len(text)


class ValueForms:
    """How people wrote the values of each slot, and which values a slot can have."""

    def __init__(self, turns: Iterable[ToolTurn]) -> None:
        self._forms: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        values: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for turn in turns:
            for value in turn.values:
                if not value.opposite:
                    self._forms[value.slot, value.value][turn.response[value.start : value.end]] += 1
                    values[turn.service, value.slot].add(value.value)
        self._patterns: dict[tuple[str, str], re.Pattern[str]] = {}
        self._values = {key: sorted(of_slot) for key, of_slot in values.items()}

    def list_values(self, service: str, slot: str) -> list[str]:
        """The values that a slot of a service has somewhere."""
        return self._values.get((service, slot), [])

    def list_texts(self, slot: str, value: str) -> list[str]:
        """What people wrote for a value, the most frequent first, and the value itself."""
        return [*(text for text, _ in self._forms[slot, value].most_common()), value]

    def find(self, slot: str, value: str, text: str) -> bool:
        """Whether a text says a value as people write it, or as the record has it."""
        pattern = self._patterns.get((slot, value))
        if pattern is None:
            texts = {*self.list_texts(slot, value), *_spell(value)}
            words = "|".join(re.escape(written) for written in sorted(texts, key=len, reverse=True))
            pattern = self._patterns[slot, value] = re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
        return pattern.search(text) is not None

    def write(self, slot: str, value: str, like: str, old: str) -> str | None:
        """A value as people wrote it where they wrote the value ``old`` as ``like``; None for no such writing."""
        texts = self.list_texts(slot, value)[:-1]
        alike = [text for text in texts if describe_shape(text) == describe_shape(like)]
        return next(iter(alike), value if like.casefold() == old.casefold() else next(iter(texts), None))


def list_swaps(turn: ToolTurn, index: int, forms: ValueForms, rng: random.Random, *, near: bool) -> list[ValueSwap]:
    """The swaps of a value that make a turn wrong.

    Args:
        turn: Whose response is changed.
        index: Of the value.
        forms: How people write values.
        rng: Draws the values that the log lacks.
        near: Whether the other value is in the log, or is one that the log lacks.
    """
    value = turn.values[index]
    old = turn.response[value.start : value.end]
    if value.opposite:
        return [] if near else [ValueSwap(index, "", value.opposite, near=False)]
    if len(old.split()) > MOST_WORDS:
        return []
    possible = []
    for other in _list_others(turn, value, forms, rng, near):
        if value.act == COUNT:
            text = _write_count(other, old)
        elif not is_wrong(turn, index, other):
            continue
        else:
            text = forms.write(value.slot, other, old, value.value)
        if text is not None and _fits(turn.response[: value.start], old, text):
            possible.append(ValueSwap(index, other, text, near))
    return possible


def _list_others(turn: ToolTurn, value: ToolValue, forms: ValueForms, rng: random.Random, near: bool) -> Iterable[str]:
    if value.act == COUNT:
        return (
            [] if near or value.value == "1" else [str(n) for n in rng.sample(COUNTS, OTHERS) if str(n) != value.value]
        )
    if near:
        return list_log_values(turn, value)
    possible = forms.list_values(turn.service, value.slot)
    drawn = rng.sample(possible, min(OTHERS, len(possible)))
    log = str([call.records for call in turn.calls]).casefold()
    return [other for other in drawn if other.casefold() not in log]


def list_log_values(turn: ToolTurn, value: ToolValue) -> list[str]:
    """Values of the slot in the log, and of the slots of the value's own record that are of its kind, in their order.

    Slots are of a kind if their last words are equal: a station of departure and one of arrival.
    """
    values: dict[str, None] = {}
    for call in turn.calls:
        for record in call.records:
            is_own = str(record.get(value.slot)) == value.value
            for slot, other in record.items():
                kin = is_own and slot != value.slot and _name_kind(slot) == _name_kind(value.slot) != "name"
                if (slot == value.slot or kin) and not isinstance(other, bool):
                    values[str(other)] = None
    return list(values)


def is_wrong(turn: ToolTurn, index: int, other: str) -> bool:
    """Whether the turn is wrong with ``other`` in the place of the value ``index``."""
    value = turn.values[index]
    if agree(value.value, other) or _share_words(value.value, other):
        return False
    if value.act in (INFORM, CONFIRM):
        return True
    said = {(v.slot, v.value) for v in turn.values if v.source == "result" and v.act != COUNT and not v.opposite}
    stated = {(slot, said_value) for slot, said_value in said if slot != value.slot} | {(value.slot, other)}
    if len({slot for slot, _ in said}) < len(said):
        return False  # several records are spoken of at once
    return not any(
        all(slot in record and agree(str(record[slot]), wanted) for slot, wanted in stated)
        for call in turn.calls
        for record in call.records
    )


def replace_value(calls: tuple[ToolResult, ...], slot: str, old: str, new: str) -> tuple[ToolResult, ...]:
    """The log with another value of a slot in every record that has the old one."""
    return tuple(
        ToolResult(
            call.tool,
            tuple(
                {name: _cast(new, v) if name == slot and str(v) == old else v for name, v in record.items()}
                for record in call.records
            ),
            call.total,
        )
        for call in calls
    )


def _cast(text: str, like: object) -> str | int | float:
    """A value of the type that the log has there, so that the type does not tell which value was replaced."""
    if isinstance(like, str) or not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return float(text) if "." in text else int(text)


def has_value(calls: Iterable[ToolResult], wanted: str) -> bool:
    """Whether a record has the value in any slot, or within a longer one."""
    pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)", re.IGNORECASE)
    return any(pattern.search(str(v)) for call in calls for record in call.records for v in record.values())


def agree(first: str, second: str) -> bool:
    """Whether two values are one: the same text, number or step of a scale."""
    if first.casefold().strip() == second.casefold().strip():
        return True
    try:
        return float(first) == float(second)
    except ValueError:
        return any({first.casefold(), second.casefold()} <= scale for scale in SAME)


def find_record(turn: ToolTurn) -> Mapping[str, object] | None:
    """The only record that has all that the turn says of results; None for several or none."""
    said = [(v.slot, v.value) for v in turn.values if v.source == "result" and v.act != COUNT and not v.opposite]
    if turn.record is not None and turn.record[0] < len(turn.calls):
        records = turn.calls[turn.record[0]].records
        return records[turn.record[1]] if turn.record[1] < len(records) else None
    fitting = [
        record
        for call in turn.calls
        for record in call.records
        if said and all(slot in record and agree(str(record[slot]), value) for slot, value in said)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _write_count(count: str, like: str) -> str | None:
    if like.isdigit():
        return count
    word = _NUMBER_WORDS[int(count)]
    return word.capitalize() if like[:1].isupper() else word if like.casefold() in _NUMBER_WORDS else None


def _spell(value: str) -> tuple[str, ...]:
    return (_NUMBER_WORDS[int(value)],) if value.isdigit() and int(value) < len(_NUMBER_WORDS) else ()


def _fits(before: str, old: str, new: str) -> bool:
    """Whether a text fits where the old one was: after the same article, singular where that was singular."""
    if new.casefold() == old.casefold() or not new.strip():
        return False
    article = _ARTICLE.search(before)
    if article is not None and (article[1].casefold() == "an") != (new[0].casefold() in "aeiou"):
        return False
    singular = {"1", "one", "a", "an"}
    return (old.casefold() in singular) == (new.casefold() in singular)


def _share_words(first: str, second: str) -> bool:
    """Whether the words of one are all words of the other: "American" may mean "American Airlines"."""
    words, others = set(re.findall(r"\w+", first.casefold())), set(re.findall(r"\w+", second.casefold()))
    return words <= others or others <= words


def _name_kind(slot: str) -> str:
    words: list[str] = re.findall(r"[A-Za-z][a-z]*", slot)
    return words[-1].casefold() if words else slot


def describe_shape(text: str) -> str:
    """The text with a letter for each word and a zero for each number: equal for writings of one kind."""
    return re.sub(r"[a-z]+", "a", re.sub(r"\d+", "0", text.lower()))
