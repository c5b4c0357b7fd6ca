"""Writes a value of the knowledge in the form that the response gives its own: "half past five" for 17:30.

>>> from groundwire.engine.values import read_values
>>> pairs = [("$34.00", "$40"), ("four days", "48 hours"), ("an hour and a half", "30 minutes"), ("9.30 am", "14:00")]
>>> [render(old, read_values(old)[0].content, new, read_values(new)[0].content) for old, new in pairs]
['$40.00', 'two days', 'half an hour', '2 pm']
"""

from __future__ import annotations

import re

from groundwire.engine.values import MONTHS, ONES, TENS, UNITS, Clock, Content, Date, Measure
from groundwire.runtime.texts.characters import is_numeric

_DIGITS = re.compile(r"\d[\d,]*(?:\.(\d+))?")
_CLOCK = re.compile(r"(\d{1,2})(?:(?P<point>[.:h])(\d{2}))?(?P<half>\s*[ap]\.?m\b\.?)?", re.IGNORECASE)
_SPOKEN_CLOCK = re.compile(r"(?:(?P<article>an? )?\w+ (?:past|to) )?(?P<hour>[a-z]+)(?P<rest>.*)", re.IGNORECASE)
_SPOKEN_MINUTES = {0: "", 15: "quarter past ", 30: "half past ", 45: "quarter to "}
_WORDS = {number: word for word, number in (ONES | TENS).items() if number}
_NUMBER_WORD = "|".join(sorted({*_WORDS.values(), "an?"}, key=len, reverse=True))
_SPOKEN = re.compile(rf"(?P<number>(?:{_NUMBER_WORD})(?:[- ](?:{_NUMBER_WORD}))?)(?P<rest>\b.*)", re.IGNORECASE)
_COMPOSITE = re.compile(r"\b(?:half|quarters?)\b", re.IGNORECASE)
_PARTS = {0.25: "a quarter", 0.5: "half", 0.75: "three quarters"}
_MOST_DECIMALS = 2
_MONTHS = {number: name for name, number in MONTHS.items() if len(name) > 3 or name == "may"}
_DAY = re.compile(
    rf"(?:(?P<early>\d{{1,2}}) )?(?P<month>{'|'.join(MONTHS)})(?: (?P<late>\d{{1,2}}))?"
    r"(?:(?P<comma>,? )(?P<year>\d{4}))?",
    re.IGNORECASE,
)


def render(old: str, ours: Content, new: str, theirs: Content) -> str | None:
    """Write a value in the form of another.

    Args:
        old: The words of the value that is replaced.
        ours: That value.
        new: The words of the value to write, in the knowledge.
        theirs: The value to write.

    Returns:
        The words; None where the form of ``old`` is not known or cannot hold ``theirs``.
    """
    if isinstance(ours, Clock) and isinstance(theirs, Clock):
        return _write_clock(old, new, theirs)
    if isinstance(ours, Date) and isinstance(theirs, Date):
        return _write_date(old, theirs)
    theirs = take_unit(ours, theirs)
    if isinstance(ours, Measure) and isinstance(theirs, Measure) and ours.measure == theirs.measure != "rank":
        amount = round(theirs.amount / ours.factor, 6)
        if ours.measure == "count" and (amount == 1) != (ours.amount == 1):
            return None  # the noun after it changes, too
        if ours.factor != theirs.factor and amount * 4 % 1:
            return None  # 30 days are no number of months that anyone writes
        if ours.factor == theirs.factor and not any(map(is_numeric, old + new)):
            return new
        return _write_digits(old, amount) or _write_words(old, amount)
    return None


def _write_date(old: str, date: Date) -> str | None:
    """A day in the order of another, with its year if the other has one; None for what is written in other ways."""
    match = _DAY.fullmatch(old)
    if (
        match is None
        or bool(match["early"]) == bool(match["late"])
        or date.month is None
        or date.day is None
        or (match["year"] and date.first is None)
    ):
        return None
    month = _MONTHS[date.month].capitalize()
    month = month if match["month"].lower() in _MONTHS.values() else month[:3]
    day = f"{month} {date.day}" if match["late"] else f"{date.day} {month}"
    return day + (f"{match['comma']}{date.first}" if match["year"] else "")


def take_unit(ours: Content, theirs: Content) -> Content:
    """A number of the knowledge with the response's unit if it has none: "35" for "12 minutes", as in a table."""
    if not (isinstance(ours, Measure) and isinstance(theirs, Measure)) or theirs.measure != "count" or theirs.nouns:
        return theirs
    return theirs._replace(measure=ours.measure, amount=theirs.amount * ours.factor, factor=ours.factor)


def _write_clock(old: str, new: str, clock: Clock) -> str | None:
    hour, minute = divmod(clock.minutes, 60)
    digits, known_digits = _CLOCK.fullmatch(old), _CLOCK.fullmatch(new)
    if digits is not None:
        if known_digits is not None and all(digits[name] == known_digits[name] for name in ("point", "half")):
            return new
        half = digits["half"]
        if half is not None and not clock.half_known:
            return None
        written = (hour % 12 or 12) if half is not None else hour
        padded = f"{written:02}" if digits[1].startswith("0") else f"{written}"
        minutes = f"{digits['point'] or ':'}{minute:02}" if minute or (digits["point"] and half is None) else ""
        return padded + minutes + _write_half(half or "", hour)
    spoken = _SPOKEN_CLOCK.fullmatch(old)
    if spoken is None or minute not in _SPOKEN_MINUTES or any(map(is_numeric, old)):
        return None
    name = _WORDS[(hour + (minute == 45)) % 12 or 12]
    article = "a " if minute in (15, 45) and (spoken["article"] or not spoken.start("hour")) else ""
    rest = spoken["rest"] if minute == 0 or "clock" not in spoken["rest"] else ""
    return article + _SPOKEN_MINUTES[minute] + name + rest


def _write_half(half: str, hour: int) -> str:
    return half.translate(str.maketrans("apAP", "ppPP" if hour >= 12 else "aaAA"))


def _write_digits(old: str, amount: float) -> str | None:
    """The amount in digits, with as many decimals as before."""
    digits = _DIGITS.search(old)
    if digits is None:
        return None
    decimals = len(digits[1] or "")
    text = f"{amount:.{decimals}f}" if decimals else f"{amount:.10g}"
    if float(text) != amount:
        text = f"{amount:.10g}"
    if "e" in text or len(text.partition(".")[2]) > max(decimals, _MOST_DECIMALS):
        return None
    if amount >= 1_000 and ("," in digits[0] or amount >= 10_000):
        whole, point, fraction = text.partition(".")
        text = f"{int(whole):,}{point}{fraction}"
    return old[: digits.start()] + text + _fit_unit(old[digits.end() :], amount)


def _write_words(old: str, amount: float) -> str | None:
    """The amount in words, with halves and quarters as they are spoken."""
    whole, part = divmod(amount, 1)
    unit = next((word for word in re.findall(r"[^\W\d_]+", old) if word.lower() in UNITS), "")
    spoken = _name_number(int(whole))
    if part == 0 and spoken and not _COMPOSITE.search(old):
        match = _SPOKEN.fullmatch(old)
        return None if match is None else spoken + _fit_unit(match["rest"], amount)
    if not unit or (part and part not in _PARTS) or not (spoken or not whole):
        return None
    singular = _make_singular(unit)
    article = "an" if singular[0] in "aeio" or singular == "hour" else "a"
    if not part:
        return f"{article} {singular}" if whole == 1 else f"{spoken} {singular}s"
    if not whole:
        return f"{_PARTS[part]} {'' if part == 0.5 else 'of '}{article} {singular}"
    return (
        f"{article} {singular} and {_name_part(part)}" if whole == 1 else f"{spoken} and {_name_part(part)} {singular}s"
    )


def _name_part(part: float) -> str:
    return "a half" if part == 0.5 else _PARTS[part]


def _name_number(number: int) -> str:
    """A number below 100 in words; empty for others.

    >>> _name_number(12), _name_number(35), _name_number(120)
    ('twelve', 'thirty-five', '')
    """
    if number in _WORDS:
        return _WORDS[number]
    tens, ones = number - number % 10, number % 10
    return f"{_WORDS[tens]}-{_WORDS[ones]}" if 20 < number < 100 else ""


def _fit_unit(rest: str, amount: float) -> str:
    """What follows a number, with its unit as one or several."""
    unit = re.fullmatch(r"(\s*-?)([^\W\d_]{3,})(.*)", rest)
    if unit is None or unit[2].lower() not in UNITS:
        return rest
    singular = _make_singular(unit[2])
    plural = f"{singular}s"
    return unit[1] + (plural if amount != 1 and plural.lower() in UNITS else singular) + unit[3]


def _make_singular(unit: str) -> str:
    """
    >>> _make_singular("hours"), _make_singular("hour")
    ('hour', 'hour')
    """
    return unit[:-1] if unit.endswith("s") and unit[:-1].lower() in UNITS else unit
