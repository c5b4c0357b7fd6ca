"""Numbers and measures in words, and the same measure in another unit."""

from __future__ import annotations

import random


def _split(words: str) -> list[str]:
    """Split a list of words."""
    return words.split()


_SMALL = _split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
BASES = {
    "seconds": ("time", 1),
    "minutes": ("time", 60),
    "hours": ("time", 3600),
    "days": ("time", 86400),
    "weeks": ("time", 7 * 86400),
    "working days": ("working", 1),
    "months": ("months", 1),
    "years": ("months", 12),
    "g": ("mass", 1),
    "kg": ("mass", 1000),
    "ml": ("volume", 1),
    "litres": ("volume", 1000),
    "mm": ("length", 1),
    "cm": ("length", 10),
    "metres": ("length", 1000),
    "km": ("length", 1_000_000),
}
"""For each unit, what it measures and how many of the smallest unit it is."""
_SINGULAR = {"litres": "litre", "metres": "metre", "working days": "working day"}
ABBREVIATIONS = {"minutes": "min", "seconds": "s", "hours": "h", "litres": "l", "metres": "m"}
_WHOLE = {
    ("minutes", 30): ("half an hour",),
    ("minutes", 45): ("three quarters of an hour",),
    ("minutes", 60): ("an hour", "one hour"),
    ("minutes", 90): ("an hour and a half", "1.5 hours", "one and a half hours"),
    ("months", 6): ("half a year",),
    ("months", 12): ("a year", "one year"),
    ("months", 18): ("a year and a half", "one and a half years"),
    ("days", 7): ("a week", "one week"),
}
_LARGER = (
    ("seconds", "minutes", 60),
    ("minutes", "hours", 60),
    ("hours", "days", 24),
    ("days", "weeks", 7),
    ("months", "years", 12),
)
_SMALLER = (("weeks", "days", 7), ("years", "months", 12), ("hours", "minutes", 60), ("minutes", "seconds", 60))
_METRIC = (("kg", "g", 1000), ("litres", "ml", 1000), ("km", "metres", 1000), ("cm", "mm", 10), ("metres", "cm", 100))


def spell_cardinal(number: int) -> str:
    """Spell a number below 100."""
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens] + (f"-{_SMALL[ones]}" if ones else "")


def write_number(number: float, rng: random.Random, words: float = 0.35) -> str:
    """Write a number in digits, or small ones by chance in words."""
    if number == int(number):
        number = int(number)
        if (1 <= number <= 12 and rng.random() < words) or (12 < number < 100 and rng.random() < words / 6):
            return spell_cardinal(number)
        return f"{number:,}"
    return f"{number:g}"


def name_unit(number: float, unit: str) -> str:
    """Return the unit in the singular or the plural."""
    return name_singular(unit) if number == 1 else unit


def name_singular(unit: str) -> str:
    """Return the unit in the singular."""
    return _SINGULAR.get(unit, unit.removesuffix("s") if unit in BASES and len(unit) > 3 else unit)


def write_measure(number: float, unit: str, rng: random.Random) -> str:
    """Write a measure as it is."""
    return f"{write_number(number, rng)} {name_unit(number, unit)}"


def convert_measure(number: float, unit: str, rng: random.Random) -> str | None:
    """Write a measure in another unit or in a set phrase; None without a usual one."""
    forms = list(_WHOLE.get((unit, int(number)), ())) if number == int(number) else []
    for small, large, factor in _LARGER:
        if unit == small and number > factor and number % factor == 0:
            forms.append(write_measure(number // factor, large, rng))
    for large, small, factor in _SMALLER:
        if (
            unit == large
            and number * factor <= (36 if large == "years" else 120)
            and number * factor == int(number * factor)
        ):
            forms.append(write_measure(int(number * factor), small, rng))
    for large, small, factor in _METRIC:
        if unit == large and (number < 3 or number != int(number)):
            forms.append(f"{round(number * factor):,} {small}")
        elif unit == small and number >= factor and number % (factor / 10) == 0:
            forms.append(f"{number / factor:g} {name_unit(number / factor, large)}")
    if unit == "minutes" and number > 90 and number % 60:
        hours, minutes = divmod(int(number), 60)
        forms.append(f"{write_measure(hours, 'hours', rng)} and {write_measure(minutes, 'minutes', rng)}")
        if minutes == 30:
            forms.append(f"{hours}.5 hours")
    return rng.choice(forms) if forms else None


def to_base(number: float, unit: str) -> tuple[str, float]:
    """Return what the unit measures, and the measure in the smallest unit."""
    kind, factor = BASES.get(unit, (unit, 1))
    return kind, round(number * factor, 6)
