"""Where the arguments of a call are from: the user, a result, the assistant's own words, or nowhere.

Values are compared by rule. What an argument says in sentences is composed; models read whether the dialogue and the
log support it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from groundwire.engine.extend import FUNCTION_WORDS
from groundwire.engine.schema.knowledge import CURRENCIES, split_key
from groundwire.engine.values import read_values
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_digits, is_lower_case, is_numeric, is_upper_case, starts_upper
from groundwire.runtime.texts.unread import is_blank

from .calls import Argument, has_words, trace
from .context import TurnContext
from .details import find_shape
from .mentions import RELATIVE, Mentions, has_near, has_other, read_float, split_words, squeeze, stem_words
from .moments import read_moment
from .owners import find_other_amount, find_owner
from .records import Finding, FindingStatus
from .rows import has_sum, read_unit
from .streets import find_other_street
from .times import WEEKDAYS, find_day_word, find_moment
from .words import (
    CHOICE_KEY,
    DURATION_KEY,
    FREE_KEY,
    ID_KEY,
    MONTHS,
    NAME_WORDS,
    PART_KEY,
    PEOPLE_KEY,
    PLACE_KEY,
    PLAIN,
    PROPER_KEY,
    PROSE_KEY,
    SETTING_KEY,
    TITLE_KEY,
    YEAR_KEY,
)

_PROSE_WORDS = 4
_CAPITALS = 4
"""Letters of an abbreviation in capitals, at most."""
_BEGINNING = 4
"""Letters that a word and its short form share."""
_SHORT = 2
"""Letters of a word that abbreviates no other, at most."""
_EXACT = 1e-6
_MANY = 100_000
"""From which on a number may be a code, and be written with spaces."""
_REFERENCE = re.compile(r"\b(?:[A-Za-z]+-?)?\d{2,}(?:-\d+)*\b")
"""A code that names a record."""
_POSTAL = re.compile(r"(?=.*[A-Z])(?=(?:.*\d){2})[A-Z\d]+(?:[ -][A-Z\d]+)*")
"""A code in capitals and digits, such as a postcode."""
_ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+\w|https?://\S+")
"""What must be in the dialogue or the log letter by letter."""
_CODE = re.compile(r"[A-Za-z]*\d[\w.:/@-]*|[\w.+-]+@[\w.-]+")
_NUMBER = re.compile(r"(?:0|[1-9]\d{0,4})(?:\.\d+)?")
"""A text that is a number; with more digits, or a zero before them, it is a code."""
_YEARS_AGO = re.compile(r"\byears? (?:ago|back)\b|\b(?:last|this|next) year\b|['’]\d\d\b")
"""Words that name a year by another."""
_CURRENCY = {
    "EUR": ("€", "euro"),
    "USD": ("$", "dollar"),
    "GBP": ("£", "pound", "quid"),
    "CHF": ("franc",),
    "PLN": ("złot",),
}


def is_prose(argument: Argument) -> bool:
    """Whether an argument is a text of sentences, which models read."""
    value = argument.value
    if not isinstance(value, str) or FREE_KEY.search(argument.key.lower()) or read_moment(value):
        return False
    return len(value.split()) >= _PROSE_WORDS and not is_blank(value)


def check_argument(argument: Argument, context: TurnContext) -> Finding:
    """Return where the value of an argument is from.

    Args:
        argument: The argument.
        context: The turn.
    """
    status, message = _find_source(argument, context)
    if status == "result":
        other = (
            _find_other_code(argument, context) or find_other_amount(argument, context) or find_owner(argument, context)
        )
        status, message = ("other_record", other) if other else (status, message)
    if status in ("composed", "result", "user") and isinstance(argument.value, str):
        other = find_other_street(argument.key, argument.value, context)
        status, message = ("absent", other) if other else (status, message)
    return Finding(kind="argument", status=status, where=argument.path, message=message)


def _find_other_code(argument: Argument, context: TurnContext) -> str:
    """Why a code is not the one of its shape that the user named last; empty if it is, or none was named."""
    code = str(argument.value)
    if not _REFERENCE.fullmatch(code) or (is_digits(code) and not ID_KEY.search(argument.key.lower())):
        return ""
    said = next((text for role, text in reversed(context.history) if role == "user"), "")
    shape = find_shape(code)
    named = {match[0] for match in _REFERENCE.finditer(said) if find_shape(match[0]) == shape}
    named = {other for other in named if other == code or other.lower() not in context.chosen}
    return f"The user named {named.pop()}." if len(named) == 1 else ""


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
    if _NUMBER.fullmatch(text):
        return _find_number(argument, float(text), context)
    if (moment := read_moment(text)) is not None:
        return find_moment(argument, moment, context)
    if context.user.has_squeezed(text):
        return "user", ""
    choices = context.tools.choices.get((argument.tool, argument.key), ())
    if text in choices and not is_digits(text) and not has_words(context.user, text):
        others = [choice for choice in choices if choice.lower() not in context.chosen]
        named = [choice for choice in others if has_words(context.user, choice)]
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


def _find_number(argument: Argument, number: float, context: TurnContext) -> tuple[FindingStatus, str]:
    key = argument.key.lower()
    is_part = PART_KEY.search(key) is not None
    source = trace(context, lambda mentions: number in mentions.parts if is_part else mentions.has_number(number))
    if source is None and YEAR_KEY.search(key) and _YEARS_AGO.search(context.dialogue.lower):
        return "composed", ""
    measure, factor = read_unit(split_key(f"_{key}", number)[1])
    is_other = bool(measure) and context.user.find_measure(measure, number * factor) is False
    if source is None and measure:
        source = trace(context, lambda mentions: mentions.find_measure(measure, number * factor) is True)
    if source is None and number >= _MANY and number.is_integer():
        source = trace(context, lambda mentions: mentions.has_squeezed(f"{number:.0f}"))
    if source:
        return source, ""
    if SETTING_KEY.search(key) or (number in (0, 1) and not is_other):
        return "composed", ""
    if _follows(argument, number, context):
        return "user", "It follows from what was said."
    return "absent", f"{number:g} is not in the dialogue or the log, and does not follow from them."


def _follows(argument: Argument, number: float, context: TurnContext) -> bool:
    """Whether a number is computed from others: a sum, a share, a count, a duration in another unit."""
    user, everything, key = context.user, context.everything, argument.key.lower()
    if number in user.durations or number in user.spans:
        return True
    if DURATION_KEY.search(key) and not user.durations and has_near(user.ordered, number / 60, _EXACT / 60):
        return True
    if any(
        abs(number - 100 * share) < _EXACT or has_near(everything.ordered, number / share, 0.01 / share)
        for share in user.shares
    ):
        return True
    if any(
        has_other(user.addends, index, number - left - _EXACT, number - left + _EXACT)
        for index, left in enumerate(user.addends)
    ):
        return True
    if number in argument.call.lengths or argument.call.has_gap(number) or _is_total(argument, number, context):
        return True
    if context.dialogue.asks_to_compute and any(
        _has_pack(user.addends, everything.ordered, packs) for packs in (number, number - 1)
    ):
        return True
    return (
        number > 12
        and not PEOPLE_KEY.search(key)
        and any(
            has_near(everything.ordered, number / count, 0.01 / count) and abs(count * count - number) >= 0.01
            for count in user.counts
        )
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
    if (
        _POSTAL.fullmatch(text)
        and not CHOICE_KEY.search(argument.key.lower())
        and not context.everything.has_squeezed(text)
    ):
        return "absent", f"{text} is not in the dialogue or the log."
    numbers = [word for word in words if is_numeric(word[0])]
    letters = [word for word in words if not is_numeric(word[0]) and word.lower() not in FUNCTION_WORDS]
    unknown = [number for number in numbers if not _has_word(context.everything, number)]
    if unknown:
        return "absent", f"{unknown[0]} is not in the dialogue or the log."
    source = trace(context, lambda mentions: bool(letters) and all(_mentions(mentions, word) for word in letters))
    if source or not letters:
        return source or "user", ""
    missing = [word for word in letters if not _mentions(context.everything, word)]
    if not missing:  # one word was said, and a result has another
        return "result", ""
    if any(len(word) > 2 and word not in missing for word in letters):
        other = _find_other_name(argument, text, missing, context)
        return ("absent", f"{other} is not in the dialogue or the log.") if other else ("composed", "")
    lower = text.lower()
    if lower in WEEKDAYS or lower in RELATIVE:
        return find_day_word(lower, context)
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


def _find_other_name(argument: Argument, text: str, missing: Sequence[str], context: TurnContext) -> str:
    """A word of a name that was not said, where others were: Santos for "Maria Lopez"; empty if there is none.

    Titles, initials, abbreviations and words such as "airport" may be added, and what follows the comma of a place.
    """
    key = argument.key.lower()
    if CHOICE_KEY.search(key) or FREE_KEY.search(key) or TITLE_KEY.search(key):
        return ""
    if PLACE_KEY.search(key) and _is_place_said(text, missing, context.everything):
        return ""
    is_proper = PROPER_KEY.search(argument.key) is not None
    stems = context.everything.stems
    for word in missing:
        is_name = is_proper or starts_upper(word)
        is_short = len(word) == 1 or (is_upper_case(word) and len(word) <= _CAPITALS) or word.lower() in NAME_WORDS
        if is_name and not is_short and not any(_abbreviates(word, other) for other in stems):
            return word
    return ""


def _abbreviates(word: str, other: str) -> bool:
    """Whether a word is the beginning of a word that was mentioned, without two letters or more: Alex, Alexander."""
    return len(word) > _SHORT and other.startswith(word.lower()) and len(other) - len(word) > 1


def _is_place_said(text: str, missing: Sequence[str], mentions: Mentions) -> bool:
    """Whether a place was said by a shorter name: Vegas, San Fran, SF, or without the region after its comma."""
    words = split_words(text.partition(",")[0])
    others = [word for word in words if word in missing]
    if not others or squeeze("".join(word for word in words if len(word) == 1)) in mentions.stems:
        return True
    if re.search(rf"\b{''.join(word[0] for word in words).lower()}\b", mentions.lower):
        return True
    if all(any(_abbreviates(other, word.lower()) for other in mentions.stems) for word in others):
        return True
    return any(_is_alone(word, mentions.text) for word in words if word not in missing)


def _is_alone(word: str, text: str) -> bool:
    """Whether a name is said somewhere without another beside it: Vegas, not the San of "San Jose"."""
    tokens = ["", *re.findall(r"[\w'’]+|[^\w\s]", text), ""]
    are_names = [starts_upper(token) and token.lower() not in FUNCTION_WORDS for token in tokens]
    return any(
        is_name and token == word and not are_names[index - 1] and not are_names[index + 1]
        for index, (token, is_name) in enumerate(zip(tokens, are_names, strict=True))
    )


def _has_figure(mentions: Mentions, text: str) -> bool:
    """Whether a number in digits is mentioned, also in a date or a time of day, or is an hour that is."""
    number = read_float(text)
    return number is not None and (number in mentions.parts or int(number) % 12 * 60 in mentions.clocks)


def _has_word(mentions: Mentions, text: str) -> bool:
    """Whether a number is mentioned, or a version or address in digits."""
    number = read_float(text)
    return mentions.has_squeezed(text) if number is None else mentions.has_number(number)


def _mentions(mentions: Mentions, word: str) -> bool:
    return bool(stem_words(word, content=False) <= mentions.stems)


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
