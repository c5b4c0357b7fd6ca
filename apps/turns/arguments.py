"""Where the arguments of a call are from: the user, a result, the assistant's own words, or nowhere.

Values are compared by rule. What an argument says in sentences is composed; models read whether the dialogue and the
log support it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from groundwire.engine.extend import FUNCTION_WORDS
from groundwire.engine.schema.knowledge import CURRENCIES, split_key
from groundwire.engine.text.calendar import DAYS, SHORT_DAYS
from groundwire.engine.values import read_values
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import (
    is_digits,
    is_lower_case,
    is_numeric,
    is_upper_case,
    starts_upper,
)
from groundwire.runtime.texts.unread import is_blank

from .context import TurnContext
from .mentions import (
    HALF_DAY,
    MAX_ADDENDS,
    Mentions,
    has_near,
    list_leaves,
    read_clock,
    read_date,
    read_float,
    split_words,
    stem_words,
)
from .records import Finding, FindingStatus
from .rows import flatten, has_sum
from .words import CHOICE_KEY, FREE_KEY, MONTHS, PLAIN, PROPER_KEY, PROSE_KEY, SETTING_KEY

_PROSE_WORDS = 4
_CAPITALS = 4
"""Letters of an abbreviation in capitals, at most."""
_BEGINNING = 4
"""Letters that a word and its short form share."""
_EXACT = 1e-6
_TWO_WEEKS = 13
_VAGUE = re.compile(r"\b(?:next|coming|last|since|weekend|later|earlier|soon)\b")
"""Words that name a day roughly."""
_ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+\w|https?://\S+")
"""What must be in the dialogue or the log letter by letter."""
_CODE = re.compile(r"[A-Za-z]*\d[\w.:/@-]*|[\w.+-]+@[\w.-]+")
_WEEKDAYS = SHORT_DAYS | {name: number for number, day in enumerate(DAYS) for name in (day, f"{day}s")}
_CURRENCY = {
    "EUR": ("€", "euro"),
    "USD": ("$", "dollar"),
    "GBP": ("£", "pound", "quid"),
    "CHF": ("franc",),
    "PLN": ("złot",),
}


class CallValues:
    """The arguments of a call, and the times, dates and lists among them."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Read nothing yet."""
        self.arguments = arguments

    @cached_property
    def _texts(self) -> list[str]:
        return [value for value in self.arguments.values() if isinstance(value, str)]

    @cached_property
    def clocks(self) -> frozenset[int]:
        """Times of day, in minutes."""
        return frozenset(clock for text in self._texts if (clock := read_clock(text)) is not None)

    @cached_property
    def dates(self) -> frozenset[date]:
        """Dates."""
        return frozenset(day for text in self._texts if (day := read_date(text)) is not None)

    @cached_property
    def lengths(self) -> frozenset[int]:
        """Lengths of lists."""
        return frozenset(len(value) for value in self.arguments.values() if isinstance(value, list))

    def has_gap(self, number: float) -> bool:
        """Whether two times are so many minutes apart, or two dates so many days; of too many, none."""
        if len(self.clocks) <= MAX_ADDENDS and any(clock + number in self.clocks for clock in self.clocks):
            return True
        are_days = number == int(number) and len(self.dates) <= MAX_ADDENDS
        return are_days and any(_move(day, int(number)) in self.dates for day in self.dates)


class Argument(NamedTuple):
    """A value of an argument."""

    path: str
    key: str
    value: Any
    is_beside_named: bool
    """Whether the user named a member of its list."""
    call: CallValues
    """All arguments of its call."""
    tool: str = ""
    """The name of the tool that is called."""


def list_arguments(context: TurnContext) -> Iterator[Argument]:
    """Yield the values of the arguments of a turn's calls, in order."""
    for index, call in enumerate(context.calls):
        leaves = list(list_leaves(call.arguments, f"calls[{index}].arguments"))
        values = CallValues(call.arguments)
        named = {
            path.rpartition("[")[0]
            for path, _, value in leaves
            if path[-1] == "]" and isinstance(value, str) and _names(context.user, value)
        }
        for path, key, value in leaves:
            is_beside_named = path[-1] == "]" and path.rpartition("[")[0] in named
            yield Argument(path, key, value, is_beside_named, values, call.name)


def is_prose(argument: Argument) -> bool:
    """Whether an argument is a text of sentences, which models read."""
    value = argument.value
    if not isinstance(value, str) or FREE_KEY.search(argument.key.lower()) or read_date(value):
        return False
    return len(value.split()) >= _PROSE_WORDS and not is_blank(value)


def check_argument(argument: Argument, context: TurnContext) -> Finding:
    """Return where the value of an argument is from.

    Args:
        argument: The argument.
        context: The turn.
    """
    status, message = _find_source(argument, context)
    if status == "result" and (other := _find_owner(argument, context)):
        status, message = "other_record", other
    return Finding(kind="argument", status=status, where=argument.path, message=message)


def _find_source(argument: Argument, context: TurnContext) -> tuple[FindingStatus, str]:
    value, key = argument.value, argument.key.lower()
    if value is None or isinstance(value, bool) or value == "":
        return "composed", ""
    if isinstance(value, int | float):
        number = read_float(value)
        if number is None:
            return "absent", "The number is none that can be compared."
        return _find_number(argument, number, context)
    text = str(value)
    if read_date(text) is not None:
        return _find_date(argument, text, context)
    if re.fullmatch(r"\d\d:\d\d(?::\d\d)?", text):
        return _find_time(argument, read_clock(text) or 0, context)
    if context.user.has_squeezed(text):
        return "user", ""
    choices = context.tools.choices.get((argument.tool, argument.key), ())
    if text in choices and not is_digits(text) and not _names(context.user, text):
        others = [choice for choice in choices if choice.lower() not in context.chosen]
        named = [choice for choice in others if _names(context.user, choice)]
        return ("absent", f"The user named {named[0]}.") if named else ("composed", "")
    if text.lower() in context.result_values or context.logged.has_squeezed(text):
        return "result", ""
    if _ADDRESS.fullmatch(text):
        return "absent", f"{text} is not in the dialogue or the log."
    if FREE_KEY.search(key):
        return "composed", ""
    if is_prose(argument) or PROSE_KEY.search(key):
        return _check_figures(text, context)
    return _find_words(argument, text, context)


def _names(mentions: Mentions, text: str) -> bool:
    """Whether all content words of a text are mentioned."""
    stems = stem_words(text)
    return bool(stems) and stems <= mentions.stems


def _trace(context: TurnContext, has: Any) -> FindingStatus | None:
    """Who mentions something: the user, else the assistant or the log."""
    if has(context.user):
        return "user"
    return "result" if has(context.assistant) or has(context.logged) else None


def _find_number(argument: Argument, number: float, context: TurnContext) -> tuple[FindingStatus, str]:
    source = _trace(context, lambda mentions: mentions.has_number(number))
    if source:
        return source, ""
    if SETTING_KEY.search(argument.key.lower()) or number in (0, 1):
        return "composed", ""
    if _follows(argument, number, context):
        return "user", "It follows from what was said."
    return "absent", f"{number:g} is not in the dialogue or the log, and does not follow from them."


def _follows(argument: Argument, number: float, context: TurnContext) -> bool:
    """Whether a number is computed from others: a sum, a share, a count, a duration in another unit."""
    user, everything = context.user, context.everything
    if number in user.durations or has_near(user.ordered, number / 60, _EXACT / 60) or number in user.spans:
        return True
    if any(
        abs(number - 100 * share) < _EXACT or has_near(everything.ordered, number / share, 0.01 / share)
        for share in user.shares
    ):
        return True
    if any(has_near(user.addends, number - left, _EXACT) for left in user.addends):
        return True
    if number in argument.call.lengths or argument.call.has_gap(number) or _is_total(argument, number, context):
        return True
    if context.dialogue.asks_to_compute and any(
        _has_pack(user.addends, everything.ordered, packs) for packs in (number, number - 1)
    ):
        return True
    return number > 12 and any(
        has_near(everything.ordered, number / count, 0.01 / count) and abs(count * count - number) >= 0.01
        for count in user.counts
    )


def _is_total(argument: Argument, number: float, context: TurnContext) -> bool:
    """Whether an amount of money is the sum of the rows that the user spoke of last, or of all of a list."""
    key = argument.key.lower()
    if split_key(key, number, "EUR")[1] not in CURRENCIES.values():
        return False
    said = next((text for role, text in reversed(context.history) if role == "user"), "")
    return any(has_sum(value, group.select(said)) for value in read_values(f"{number:.2f}") for group in context.groups)


def _has_pack(wholes: Sequence[float], sizes: Sequence[float], packs: float) -> bool:
    """Whether so many packs of one of some sizes are what is needed for one of some wholes, which it does not hold."""
    if packs != int(packs) or packs < 2:
        return False
    for whole in wholes:
        index = bisect_left(sizes, whole / packs)
        if index < len(sizes) and 0 < sizes[index] < whole / (packs - 1):
            return True
    return False


def _find_date(argument: Argument, text: str, context: TurnContext) -> tuple[FindingStatus, str]:
    day = read_date(text)
    assert day is not None
    source = _trace(context, lambda mentions: (day.month, day.day) in mentions.dates)
    if source is None:
        source = "user" if _is_meant(argument, text, context) else None
    clock = read_clock(text[10:]) if len(text) > 10 else None
    if source is None:
        return "absent", f"{day.day} {day:%B} is not in the dialogue or the log, and does not follow from them."
    if clock is not None and clock:
        time_source, message = _find_time(argument, clock, context)
        if time_source == "absent":
            return time_source, message
    return source, ""


def _is_meant(argument: Argument, text: str, context: TurnContext) -> bool:
    """Whether a date follows from words such as "tomorrow", "next Friday" or "three nights"."""
    day = read_date(text)
    assert day is not None
    dialogue = context.dialogue
    lengths = dialogue.spans | {
        int(number) for name in ("nights", "days") if isinstance(number := argument.call.arguments.get(name), int)
    }
    for length in lengths:
        other = _move(day, -length)
        is_there = other is not None and other != day and other in argument.call.dates
        if is_there and (length in dialogue.spans or _trace(context, lambda m, d=other: (d.month, d.day) in m.dates)):
            return True
    for word, offset in (("before", -1), ("after", 1)):
        around = _move(day, -offset)
        if (
            around
            and re.search(rf"\b(?:the )?(?:day|night|evening) {word}\b", dialogue.lower)
            and (around.month, around.day) in dialogue.dates
        ):
            return True
    if day.day in dialogue.days_alone:
        return True
    if dialogue.days_alone and not (dialogue.weekdays or dialogue.relatives):
        return False
    if dialogue.today is not None:
        base = read_date(f"{day.year:04}-{dialogue.today[0]:02}-{dialogue.today[1]:02}")
        if base is None:  # 29 February, in a year without it
            return False
        is_weekday = day.weekday() in dialogue.weekdays and 0 < (day - base).days <= _TWO_WEEKS
        if "week after next" in dialogue.lower:
            monday = _move(base, -base.weekday())
            is_weekday = day.weekday() in dialogue.weekdays and monday is not None and (day - monday).days // 7 == 2
        return is_weekday or (day - base).days in dialogue.relatives
    if dialogue.weekdays and not dialogue.relatives:
        return day.weekday() in dialogue.weekdays
    if dialogue.relatives:
        return True
    return bool(_VAGUE.search(dialogue.lower)) and not (argument.call.dates | context.log_dates) - {day}


def _move(day: date, days: int) -> date | None:
    """A number of days later; None beyond the calendar."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def _find_time(argument: Argument, minutes: int, context: TurnContext) -> tuple[FindingStatus, str]:
    source = _trace(context, lambda mentions: minutes % HALF_DAY in mentions.clocks)
    if source:
        return source, ""
    dialogue = context.everything
    starts = argument.call.clocks | context.log_clocks
    if any(abs(minutes - start) in dialogue.durations for start in starts):
        return "user", "It follows from what was said."
    parts = {
        "morning": (0, 720),
        "afternoon": (720, 1080),
        "evening": (1020, 1440),
        "night": (1080, 1440),
        "noon": (720, 720),
        "midnight": (0, 0),
        "lunch": (660, 840),
    }
    if any(
        word in context.dialogue.lower and low <= minutes <= high and minutes % 60 == 0
        for word, (low, high) in parts.items()
    ):
        return "user", ""
    return (
        "absent",
        f"{minutes // 60:02}:{minutes % 60:02} is not in the dialogue or the log, and does not follow from them.",
    )


def _check_figures(text: str, context: TurnContext) -> tuple[FindingStatus, str]:
    """Whether the numbers in a composed text are mentioned; models read its words."""
    absent = [
        number
        for number in re.findall(r"(?<![\w.])\d+(?:[.,]\d+)?(?![\w])", text)
        if not _has_figure(context.everything, number)
    ]
    codes = [
        code
        for code in re.findall(r"\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{4,}\b", text)
        if not context.everything.has_squeezed(code)
    ]
    if absent or codes:
        return "absent", f"{(absent or codes)[0]} is not in the dialogue or the log."
    return "composed", ""


def _find_words(argument: Argument, text: str, context: TurnContext) -> tuple[FindingStatus, str]:
    words = list(split_words(text))
    if not words:
        return "composed", ""
    if text.lower() in MONTHS:
        month = MONTHS.index(text.lower()) + 1
        said = {said for said, _ in context.everything.dates} | context.everything.months
        return ("user", "") if month in said else ("absent", f"{text} is not in the dialogue or the log.")
    numbers = [word for word in words if is_numeric(word[0])]
    letters = [word for word in words if not is_numeric(word[0]) and word.lower() not in FUNCTION_WORDS]
    unknown = [number for number in numbers if not _has_word(context.everything, number)]
    if unknown:
        return "absent", f"{unknown[0]} is not in the dialogue or the log."
    source = _trace(context, lambda mentions: bool(letters) and all(_mentions(mentions, word) for word in letters))
    if source or not letters:
        return source or "user", ""
    if _trace(context, lambda mentions: any(_mentions(mentions, word) for word in letters if len(word) > 2)):
        return "result", ""
    lower = text.lower()
    if lower in _WEEKDAYS:
        return _find_weekday(lower, context)
    if text in _CURRENCY and any(name in context.everything.lower for name in _CURRENCY[text]):
        return "user", ""
    if _is_short_form(text, context) or not text.isascii() or CHOICE_KEY.search(argument.key.lower()):
        return "composed", ""
    if argument.is_beside_named:
        return "absent", f"{text} is not in the dialogue or the log."
    if (
        _CODE.fullmatch(text)
        or PROPER_KEY.search(argument.key)
        or (starts_upper(text) and not is_upper_case(text) and len(text) > 2)
    ):
        return "absent", f"{text} is not in the dialogue or the log."
    return "composed", ""


def _has_figure(mentions: Mentions, text: str) -> bool:
    """Whether a number in digits is mentioned, or is an hour that is."""
    number = read_float(text)
    return number is not None and (mentions.has_number(number) or int(number) % 12 * 60 in mentions.clocks)


def _has_word(mentions: Mentions, text: str) -> bool:
    """Whether a number is mentioned, or a date, version or address in digits."""
    number = read_float(text)
    if number is not None:
        return mentions.has_number(number)
    return mentions.has_squeezed(text) or not Mentions([text]).dates.isdisjoint(mentions.dates)


def _mentions(mentions: Mentions, word: str) -> bool:
    return bool(stem_words(word, content=False) <= mentions.stems)


def _find_weekday(lower: str, context: TurnContext) -> tuple[FindingStatus, str]:
    day = _WEEKDAYS[lower]
    said = context.dialogue
    if day in said.weekdays or re.search(
        r"\b(?:every ?day|daily|weekdays|weekends?|working days|each day)\b", said.lower
    ):
        return "user", ""
    return "absent", f"{lower} is not in the dialogue or the log."


def _is_short_form(text: str, context: TurnContext) -> bool:
    """Whether a text abbreviates words that were mentioned, or is abbreviated by one: PAD and Paddington, Philly."""
    stems = context.everything.stems
    if is_upper_case(text) and len(text) <= _CAPITALS:
        return any(word.startswith(text.lower()[:2]) for word in stems)
    words = split_words(text.lower())
    initials = "".join(word[0] for word in words)
    if len(words) > 1 and re.search(rf"\b{initials.upper()}[A-Z]?\b", context.everything.text):
        return True
    return len(words) == 1 and any(_share_beginning(words[0], word) for word in split_words(context.everything.lower))


def _share_beginning(left: str, right: str) -> bool:
    return len(left) > _BEGINNING and left[:_BEGINNING] == right[:_BEGINNING]


def _find_owner(argument: Argument, context: TurnContext) -> str:
    """Why a value belongs to another record than the turn speaks of; empty if it does not."""
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


_CLOCK_LENGTH = 8
"""Characters of a time of day, at most."""
_LEAST = 0.1
"""What is mentioned of a record that is spoken of, at least."""
_MENTIONED = 4
"""Words of a sentence that must be mentioned for one that is not to stand out."""


def find_insertion(text: str, context: TurnContext) -> list[str]:
    """Return a word that is put before a word of the dialogue into a sentence whose other words all are from there.

    Args:
        text: What an argument says.
        context: The turn.
    """
    mentioned = context.everything.stems
    for sentence in sentences(text):
        listed = [
            word
            for word in split_words(sentence.text)
            if word.lower() not in FUNCTION_WORDS and word.lower() not in PLAIN
        ]
        unknown = [index for index, word in enumerate(listed) if not stem_words(word, content=False) <= mentioned]
        if len(unknown) != 1 or len(listed) <= _MENTIONED or not is_lower_case(listed[unknown[0]]):
            continue
        word = listed[unknown[0]]
        after = sentence.text[sentence.text.index(word) + len(word) :]
        following = re.match(r" (\w+)", after)
        if word.endswith("ing"):
            continue
        if following and stem_words(following[1]) and stem_words(following[1]) <= mentioned:
            return [word]
    return []
