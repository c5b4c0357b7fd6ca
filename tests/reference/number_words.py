"""Numbers in words, the other way round than the engine reads them: from the largest scale down."""

from __future__ import annotations

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
_IRREGULAR |= {"twelve": "twelfth"}


def spell(number: int) -> str:
    """A number below 10^15 in words: 4,021 is "four thousand and twenty-one"."""
    for scale, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if number >= scale:
            count, rest = divmod(number, scale)
            joint = " and " if 0 < rest < 100 else " " if rest else ""
            return f"{spell(count)} {word}{joint}{spell(rest) if rest else ''}"
    if number >= 100:
        count, rest = divmod(number, 100)
        return f"{spell(count)} hundred" + (f" and {spell(rest)}" if rest else "")
    if number < 20:
        return _SMALL.split()[number]
    tens = _TENS.split()[number // 10 - 2]
    return tens if number % 10 == 0 else f"{tens}-{spell(number % 10)}"


def spell_ordinal(number: int) -> str:
    """The ordinal of a number from 1 to 99 in words."""
    head, hyphen, last = spell(number).rpartition("-")
    if last.endswith("y"):
        return head + hyphen + last[:-1] + "ieth"
    return head + hyphen + _IRREGULAR.get(last, f"{last}th")
