"""Whether the call that a claim is about has the names, dates, times, counts, amounts and references of the claim."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from groundwire.engine.extend import FUNCTION_WORDS
from groundwire.engine.schema.knowledge import CURRENCIES, split_key
from groundwire.engine.values import Clock, Date, Days, Measure, Name, Value, read_values
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_digits, is_upper_case, starts_upper

from .context import TurnContext
from .mentions import Mentions, has_other, list_leaves, list_lengths, split_words, squeeze, stem_words
from .moments import HALF_DAY, make_date, move, read_moment
from .records import Finding, FindingStatus, find_value
from .words import KIND_OF, NAME_WORDS, PEOPLE_KEY, QUANTITY_KEY

_CODES = frozenset({"phone", "email", "url", "postcode", "identifier"})
"""Kinds of values that are compared letter by letter."""
_SHORT_CODE = re.compile(r"\b[A-Z]{1,4}-?\d+[A-Z]?\b")
_CODE = re.compile(r"(?=[\w-]*[A-Za-z])(?=[\w-]*\d)[\w-]+")
_PEOPLE = stem_words("people persons guests adults children kids passengers travellers of us you friends participants")
_LATER = re.compile(
    r"\b(?:will|shall|should|can|could|may|might|would|expect\w*|within|so that|in case|unless|if|instead of|not"
    r"|rather than)\b",
    re.IGNORECASE,
)
"""Words from which on a clause says what is not done yet, or was not."""
_FORMER = re.compile(
    r"\b(?:from|than|original\w*|old|former\w*|previous\w*|was|were|until|till|before|after|by|since|of)\W+(?:\w+\W+){0,2}$",
    re.IGNORECASE,
)
"""Words before a date or time that the call may not have: the one before, or an end."""
_BESIDE = re.compile(r"\b(?:for|at|to|with|from|in|pa(?:id|y)|sent|\w+ed)\s+(?:the\s+|\d+\w?\s+)?$", re.IGNORECASE)
"""Words before whom or what an action is about."""
_HOUSE = re.compile(r"(\d+\w?)\s+$")
_LISTED = re.compile(r"([^\W\d_]+)(?:,|,? and)\s+$")
_AT = re.compile(r"(?:\b(?:between|from|at|by|to|until|till|past)|–|-)\s*$", re.IGNORECASE)
"""Words before an hour."""
_FEW = 2
_MAX_CODE = 24
_LEAST_KEY = 3
"""Letters of a word of a key that a text may name it by, at least."""


class CallDetails:
    """What some calls have: their arguments and results, and the records that these name."""

    def __init__(self, calls: Sequence[Any], others: Sequence[Any], context: TurnContext) -> None:
        """Read nothing yet.

        Args:
            calls: The arguments and results of the calls.
            others: The records that they name, and results of one record.
            context: The turn.
        """
        parts = (*calls, *others)
        self.calls, self.others = calls, others
        self._leaves = [leaf for part in parts for leaf in list_leaves(part, "")]
        self._context = context
        self.lengths = frozenset(length for part in parts for length in list_lengths(part))

    @cached_property
    def mentions(self) -> Mentions:
        """What they mention."""
        texts = (str(value) for _, _, value in self._leaves if value is not None and not isinstance(value, bool))
        return Mentions(texts, has_hours=False)

    @cached_property
    def own_codes(self) -> Mapping[str, frozenset[str]]:
        """The codes of arguments and results, squeezed, by their shapes: letters and digits."""
        codes: dict[str, set[str]] = {}
        for part in self.calls:
            for _, _, value in list_leaves(part, ""):
                if isinstance(value, str | int) and any(map(is_digits, str(value))) and len(str(value)) < _MAX_CODE:
                    codes.setdefault(find_shape(str(value)), set()).add(squeeze(str(value)))
        return {shape: frozenset(of_shape) for shape, of_shape in codes.items()}

    @cached_property
    def names(self) -> frozenset[str]:
        """Stems of the words of their names: texts of words that begin with capitals."""
        texts = [value for _, _, value in self._leaves if isinstance(value, str) and len(value.split()) <= _NAME_LENGTH]
        words = [word for text in texts for word in split_words(text)]
        return frozenset(stem for word in words if starts_upper(word) and len(word) > _FEW for stem in stem_words(word))

    @cached_property
    def codes(self) -> frozenset[str]:
        """The last words of keys whose values are codes, such as those of rooms and zones."""
        keys = ((split_words(key)[-1:], value) for _, key, value in self._leaves if isinstance(value, str))
        return frozenset(
            word.lower()
            for words, value in keys
            for word in words
            if len(word) >= _LEAST_KEY and word.lower() not in FUNCTION_WORDS and _is_code(value)
        )

    def list_counts(self, nouns: Collection[str], *, is_people: bool) -> tuple[set[float], bool]:
        """Return the counts of what some nouns name, and whether a key names it; else those of keys such as ``qty``.

        Args:
            nouns: Stems of what is counted.
            is_people: Whether people are counted.
        """
        leaves = [(key.lower(), float(value)) for _, key, value in self._leaves if type(value) is int]
        named = [
            number
            for key, number in leaves
            if stem_words(key) & set(nouns) or (is_people and PEOPLE_KEY.search(key) is not None)
        ]
        if named:
            return {*named, sum(named)}, True
        return {number for key, number in leaves if QUANTITY_KEY.search(key)}, False

    @cached_property
    def has_money(self) -> bool:
        """Whether they have an amount of money, by its key."""
        leaves = ((key, value) for _, key, value in self._leaves if isinstance(value, int | float))
        return any(split_key(key, value, "EUR")[1] in CURRENCIES.values() for key, value in leaves)

    @cached_property
    def _days(self) -> list[date]:
        pairs = ((pair, named or (self._context.year,)) for pair, named in self.mentions.years.items())
        days = (make_date(year, *pair) for pair, years in pairs for year in years)
        return [day for day in days if day is not None]

    @cached_property
    def weekdays(self) -> frozenset[int]:
        """Days of the week of their dates."""
        return frozenset(self.mentions.weekdays | {day.weekday() for day in self._days})

    @cached_property
    def _ends(self) -> frozenset[tuple[int, int]]:
        """Month and day of the dates that lie as many days after their dates as something lasts."""
        spans = self._context.dialogue.spans | {int(count) for count in self.mentions.counts}
        ends = (move(day, direction * span) for day in self._days for span in spans for direction in (1, -1))
        return frozenset((end.month, end.day) for end in ends if end is not None)

    def has_date(self, day: Date) -> bool | None:
        """Whether they have a date, or it follows; None where they have no date at all."""
        if not self.mentions.dates:
            return None
        pairs = {(day.month, day.day), (day.day, day.month)} if day.either else {(day.month, day.day)}
        return bool(pairs & (self.mentions.dates | self._ends))

    def has_clock(self, clock: Clock) -> bool | None:
        """Whether they have a time of day, or it follows; None where they have none at all."""
        if not self.mentions.times:
            return None
        if self.mentions.has_clock(clock):
            return True
        gaps = {abs(clock.minutes % HALF_DAY - time) for time in self.mentions.times}
        lengths = self.mentions.numbers | self._context.everything.durations | self.mentions.durations
        return any(gap in lengths or HALF_DAY - gap in lengths for gap in gaps)

    def has_amount(self, amount: float, *, is_own: bool) -> bool:
        """Whether they have a number, or it is computed from two: of theirs, or of theirs and of the dialogue."""
        if self.mentions.has_number(amount) or amount in self.lengths:
            return True
        others = () if is_own else self._context.dialogue.numbers
        numbers = (*self.mentions.numbers, *others, *map(float, self.lengths))
        ordered = sorted(number for number in numbers if number not in (0, 1, amount))
        for index, number in enumerate(ordered):
            wanted = [amount - number, number + amount, number - amount, amount / number]
            wanted += [number / amount] if amount else []
            if any(has_other(ordered, index, other - _EXACT, other + _EXACT) for other in wanted):
                return True
        return False


_OPEN = re.compile(
    r"\?|['’]ll\b|\b(?:will|let me|going to|if|whether|unless|could|would|might|may|shall|should"
    r"|suggest|propose|ask|check|like|prefer|instead|or"
    r"|remind\w*|please|recommend\w*|at the latest|in time|leave|today|tonight|now|later|earlier|ago|past|open\w*"
    r"|clos\w+)\b",
    re.IGNORECASE,
)
"""Words of sentences whose dates and times may be the assistant's own."""


def check_moments(context: TurnContext) -> Iterator[Finding]:
    """Yield dates and times of day of a turn's text that are nowhere and do not follow, where the results have some.

    Args:
        context: The turn.
    """
    parts = [
        part for call, result in zip(context.log, context.all_results, strict=True) for part in (call.arguments, result)
    ]
    details = CallDetails(parts, (), context)
    for sentence in sentences(context.text):
        if _OPEN.search(sentence.text):
            continue
        for value in read_values(sentence.text):
            context.check_time()
            content = value.content
            if isinstance(content, Date) and content.month is not None and content.day is not None:
                is_there = details.has_date(content)
            else:
                is_there = details.has_clock(content) if isinstance(content, Clock) else None
            if is_there is False and not _is_known(value, "", context):
                words = sentence.text[value.start : value.end]
                message = f"{words} is not in the dialogue or the log, and does not follow from them."
                yield find_value("absent", sentence.text, value.start, value.end, message, sentence.start)


_NAME_LENGTH = 5
"""Words of a name, at most."""
_EXACT = 0.005


def find_shape(code: str) -> str:
    """Return the letters of a code, with a 9 for each digit: references of one kind have one shape."""
    return "".join("9" if is_digits(character) else character for character in squeeze(code))


def _is_code(text: str) -> bool:
    """Whether a text is a code of letters and digits, or one capital letter: no time, no date, no word."""
    if len(text) == 1:
        return is_upper_case(text)
    return _CODE.fullmatch(text) is not None and read_moment(text) is None


class ClaimDifference(NamedTuple):
    """Words of a claim that its call has not."""

    status: FindingStatus
    words: str


def find_difference(text: str, details: CallDetails, context: TurnContext) -> ClaimDifference | None:
    """Return the first words of a claim that do not fit its call; None if all do.

    Args:
        text: The clause of the claim.
        details: What the calls have that it may be about.
        context: The turn.
    """
    later = _LATER.search(text)
    text = text[: later.start()] if later else text
    for value in read_values(text):
        context.check_time()
        before = text[: value.start]
        if _differs(value, before, text, details, context):
            words = text[value.start : value.end]
            return ClaimDifference("other_record" if _is_known(value, words, context) else "absent", words)
    for match in _SHORT_CODE.finditer(text):
        if not (details.mentions.has_squeezed(match[0]) or context.everything.has_squeezed(match[0])):
            return ClaimDifference("absent", match[0])
    for key in details.codes:
        named = re.search(
            rf"\b{re.escape(key)} (?-i:([A-Z]\b|(?=[\w-]*[A-Za-z])(?=[\w-]*\d)[\w-]+))", text, re.IGNORECASE
        )
        if named and _is_code(named[1]) and not details.mentions.has_squeezed(named[1]):
            return ClaimDifference("other_record" if context.everything.has_squeezed(named[1]) else "absent", named[1])
    return None


def _is_known(value: Value, words: str, context: TurnContext) -> bool:
    """Whether dialogue or log have a value of a claim elsewhere."""
    everything, content = context.everything, value.content
    if isinstance(content, Date):
        return (content.month, content.day) in everything.dates
    if isinstance(content, Clock):
        return everything.has_clock(content)
    if isinstance(content, Measure):
        return everything.has_number(content.amount / content.factor)
    return isinstance(content, Days) or stem_words(words) <= everything.stems


def _is_former(value: Value, before: str, context: TurnContext) -> bool:
    """Whether a date or time that was said is the one before, or an end: "moved from 3 May"."""
    return _FORMER.search(before) is not None and _is_known(value, "", context)


def _differs(value: Value, before: str, text: str, details: CallDetails, context: TurnContext) -> bool:
    content = value.content
    if isinstance(content, Date):
        if not content.month or not content.day or _is_former(value, before, context):
            return False
        return details.has_date(content) is False
    if isinstance(content, Clock):
        return details.has_clock(content) is False and not _is_former(value, before, context)
    if isinstance(content, Days):
        return not _FORMER.search(before) and bool(details.weekdays) and not content.days & details.weekdays
    if isinstance(content, Measure):
        is_hour = value.kind == "number" and _AT.search(before) is not None
        return not is_hour and _differs_in_amount(value, content, text, details, context)
    if isinstance(content, Name):
        return _differs_in_name(text[value.start : value.end], before, text, details, context)
    if value.kind == "email" and "@" in details.mentions.text:
        return not details.mentions.has_squeezed(text[value.start : value.end])
    if value.kind in _CODES:
        code = content.key
        alike = details.own_codes.get(find_shape(code), frozenset())
        if value.kind == "identifier" and alike and not _FORMER.search(before):
            return squeeze(code) not in alike
        return not (details.mentions.has_squeezed(code) or context.everything.has_squeezed(code))
    return False


def _differs_in_amount(value: Value, content: Measure, text: str, details: CallDetails, context: TurnContext) -> bool:
    amount = content.amount / content.factor
    if content.hedge != "exact" or value.kind not in ("money", "number"):
        return False
    everything = context.everything
    if value.kind == "number":
        if amount < _FEW or not amount.is_integer():
            return False
        is_people = bool(content.nouns & _PEOPLE) or (not content.nouns and text[: value.start].endswith("for "))
        counts, is_named = details.list_counts(content.nouns, is_people=is_people)
        if amount in counts or amount in details.lengths:
            return False
        is_there = amount in everything.parts if counts else details.has_amount(amount, is_own=False)
        return is_named or not (is_there or amount in everything.parts)
    if details.has_amount(amount, is_own=details.has_money):
        return False
    if not everything.has_number(amount):
        return True
    amounts = [other for other in read_values(text) if other.kind == "money"]
    return len(amounts) == 1 and details.has_money


def _differs_in_name(name: str, before: str, text: str, details: CallDetails, context: TurnContext) -> bool:
    words = [
        word
        for word in split_words(name)
        if starts_upper(word)
        and word.lower() not in FUNCTION_WORDS
        and word.lower() not in NAME_WORDS
        and word.lower() not in KIND_OF
        and not (len(word) == 1 or is_upper_case(word))
    ]
    number = _HOUSE.search(before)
    if number and re.search(rf"\d\w? {re.escape(name)}", details.mentions.text):
        return not details.mentions.has_squeezed(f"{number[1]} {name}")
    missing = [word for word in words if not stem_words(word, content=False) <= details.mentions.stems]
    if not missing or not details.names:
        return False
    if len(missing) < len(words):
        return True
    is_other = not stem_words(text) & details.names
    if is_other:
        return _BESIDE.search(before) is not None
    listed = _LISTED.search(before)  # beside a name that the call has
    return listed is not None and stem_words(listed[1]) <= details.names
