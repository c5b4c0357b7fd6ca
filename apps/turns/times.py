"""Where the dates and times of arguments are from: they were said, or follow from "tomorrow" or "three nights"."""

from __future__ import annotations

import re
from datetime import date

from groundwire.engine.text.calendar import DAYS, SHORT_DAYS
from groundwire.engine.values import Clock

from .calls import Argument, trace
from .context import TurnContext
from .mentions import RELATIVE, Mentions
from .moments import Moment, make_date, move
from .records import FindingStatus

WEEKDAYS = SHORT_DAYS | {name: number for number, day in enumerate(DAYS) for name in (day, f"{day}s")}
"""The number of the day that a word names, 0 for Monday."""
_TWO_WEEKS = 13
_VAGUE = re.compile(r"\b(?:next|coming|last|since|weekend|later|earlier|soon)\b")
"""Words that name a day roughly."""
_EVERY_DAY = re.compile(r"\b(?:every ?day|daily|weekdays|weekends?|working days|each day)\b")
_PARTS = {
    "morning": (0, 720),
    "afternoon": (720, 1080),
    "evening": (1020, 1440),
    "night": (1080, 1440),
    "noon": (720, 720),
    "midnight": (0, 0),
    "lunch": (660, 840),
}
"""The first and last minute of parts of the day."""
_FOLLOWS = "It follows from what was said."


def find_moment(argument: Argument, moment: Moment, context: TurnContext) -> tuple[FindingStatus, str]:
    """Return where a date or a time of day is from, and why it is absent.

    Args:
        argument: The argument.
        moment: What its text is.
        context: The turn.
    """
    source: FindingStatus | None = None
    if moment.day is not None:
        days = moment.list_days(context.year)
        source = trace(context, lambda mentions: any(map(mentions.has_date, days)))
        if source is None and not any(_is_meant(argument, day, context) for day in days):
            named = f"{days[0].day} {days[0]:%B}" if days else str(argument.value)
            return "absent", f"{named} is not in the dialogue or the log, and does not follow from them."
        source = source or "user"
    if moment.clock is not None and (moment.day is None or moment.clock.minutes):
        time_source, message = _find_time(argument, moment.clock, context)
        if source is None or time_source == "absent":
            return time_source, message
    return source or "user", ""


def _find_time(argument: Argument, clock: Clock, context: TurnContext) -> tuple[FindingStatus, str]:
    source = trace(context, lambda mentions: mentions.has_clock(clock))
    if source:
        return source, ""
    starts = argument.call.clocks | context.log_clocks
    if any(abs(clock.minutes - start) in context.everything.durations for start in starts):
        return "user", _FOLLOWS
    if clock.minutes % 60 == 0 and _fits_part(clock.minutes, context):
        return "user", ""
    named = f"{clock.minutes // 60:02}:{clock.minutes % 60:02}"
    return "absent", f"{named} is not in the dialogue or the log, and does not follow from them."


def _fits_part(minutes: int, context: TurnContext) -> bool:
    """Whether a time is in the part of the day that was named last, and no time of day was said then or later."""
    for _, text in reversed(context.history):
        lower = text.lower()
        parts = [bounds for word, bounds in _PARTS.items() if word in lower]
        if Mentions([text]).times - {low % 720 for low, high in parts if low == high}:
            return False
        if parts:
            return any(low <= minutes <= high for low, high in parts)
    return False


def _is_meant(argument: Argument, day: date, context: TurnContext) -> bool:
    """Whether a date follows from words such as "tomorrow", "next Friday" or "three nights"."""
    dialogue = context.dialogue
    lengths = dialogue.spans | {
        int(number) for name in ("nights", "days") if isinstance(number := argument.call.arguments.get(name), int)
    }
    for length in lengths:
        other = move(day, -length)
        if other is None or other == day or other not in argument.call.dates:
            continue
        if length in dialogue.spans or _is_said(other, context):
            return True
    for word, offset in (("before", -1), ("after", 1)):
        around = move(day, -offset)
        if (
            around
            and re.search(rf"\b(?:the )?(?:day|night|evening) {word}\b", dialogue.lower)
            and dialogue.has_date(around)
        ):
            return True
    if day.day in dialogue.days_alone:
        return True
    if dialogue.days_alone and not (dialogue.open_weekdays or dialogue.relatives):
        return False
    if dialogue.today is not None:
        base = make_date(day.year, *dialogue.today)
        if base is None:  # 29 February, in a year without it
            return False
        is_weekday = day.weekday() in dialogue.open_weekdays and 0 < (day - base).days <= _TWO_WEEKS
        if "week after next" in dialogue.lower:
            monday = move(base, -base.weekday())
            is_weekday = (
                day.weekday() in dialogue.open_weekdays and monday is not None and (day - monday).days // 7 == 2
            )
        return is_weekday or (day - base).days in dialogue.relatives
    if dialogue.open_weekdays and not dialogue.relatives:
        return day.weekday() in dialogue.open_weekdays
    if dialogue.relatives:
        return True
    return bool(_VAGUE.search(dialogue.lower)) and not (argument.call.dates | context.log_dates) - {day}


def _is_said(day: date, context: TurnContext) -> bool:
    return trace(context, lambda mentions: mentions.has_date(day)) is not None


def find_day_word(lower: str, context: TurnContext) -> tuple[FindingStatus, str]:
    """Return where a word for a day is from: one of ``WEEKDAYS`` or ``RELATIVE``, in lower case.

    Args:
        lower: The word.
        context: The turn.
    """
    said = context.dialogue
    is_said = (
        RELATIVE[lower] in said.relatives
        if lower in RELATIVE
        else WEEKDAYS[lower] in said.weekdays or _EVERY_DAY.search(said.lower)
    )
    if is_said:
        return "user", ""
    if lower in RELATIVE and not (said.dates or said.weekdays or said.relatives):
        return "composed", ""
    return "absent", f"{lower} is not in the dialogue or the log."
