"""Reads computations that a response writes out, and says whether they are right: "15 + 12 = 27", "34 (2 × 15 + 4)".

A response that shows how it computes can be checked without the knowledge. Computations with two different units are
left alone, and so are percentages: "2 hours + 30 minutes = 150 minutes" needs more than arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .units import UNITS

_NUMBER = r"(?:[€$£¥]\s?)?\d+(?:,\d{3})*(?:\.\d+)?"
_WORDS = r"(?:\s?[€$£¥%]|(?:[ \t]+(?!plus\b|minus\b|times\b|equals\b|makes?\b|gives?\b|x\b)[A-Za-z]+){0,2})"
_SIGN = r"[+×*·÷/]|(?<=\s)[−–-](?=\s)|x|plus|minus|times|multiplied by|divided by"
_EQUALS = r"=|equals|makes?|gives?|comes to|adds? up to|totals?"
_TERM = rf"{_NUMBER}{_WORDS}"
_LEFT = re.compile(
    rf"(?<![\w.,/+×*·÷−–-])(?P<left>{_TERM}(?:\s*(?:{_SIGN})\s*{_TERM}){{1,9}})\s*(?:{_EQUALS})\s*(?P<result>{_NUMBER})"
    rf"(?P<words>{_WORDS})(?!\s*[+×*·÷/]|[\d:])"
)
_BRACKETS = re.compile(
    rf"(?<![\w.,/-])(?P<result>{_NUMBER})(?P<words>{_WORDS})\s*\((?P<left>{_TERM}(?:\s*[+×*·]\s*{_TERM}){{1,9}})\)"
)
_PARTS = re.compile(rf"(?P<number>{_NUMBER})(?P<words>{_WORDS})\s*(?P<sign>{_SIGN})?")
MAY_COMPUTE = re.compile(rf"\d[^.!?\n]{{0,40}}(?:{_SIGN})\s*[€$£¥]?\d|\d[^.!?\n]{{0,20}}(?:plus|minus|times)\b")
"""Whether a text may have a computation; without a match it has none."""
_CLOCK = re.compile(r"\d\s?(?:[ap]m|o'clock)\b", re.IGNORECASE)
_ADDED: dict[str, float] = {"+": 1.0, "plus": 1.0, "minus": -1.0, "-": -1.0, "−": -1.0, "–": -1.0}
_DIVIDED = frozenset({"/", "÷", "divided by"})


class Equation(NamedTuple):
    """A computation of a response, by its characters."""

    start: int
    end: int
    result_start: int
    result_end: int
    holds: bool
    says: str
    """The computation with its right result."""


def read_equations(text: str) -> Iterator[Equation]:
    """The computations of a text, in order of their kinds.

    >>> [(item.holds, item.says) for item in read_equations("15 + 12 = 28, and 34 euros (2 × 15 + 4).")]
    [(False, '15 + 12 = 27'), (True, '2 × 15 + 4 = 34')]
    """
    for pattern in (_LEFT, _BRACKETS):
        for match in pattern.finditer(text):
            parts = list(_PARTS.finditer(match["left"]))
            units = {unit for words in (match["words"], *(part["words"] for part in parts)) for unit in _units(words)}
            if len(units) > 1 or "%" in match[0] or _CLOCK.search(match[0]):
                continue
            result = _compute(parts)
            if result is None:
                continue
            written = match["result"]
            step = 10.0 ** -len(written.partition(".")[2])
            holds = abs(result - _read(written)) <= step / 2 + 1e-9
            says = f"{match['left'].strip()} = {round(result, 4):g}"
            yield Equation(match.start(), match.end(), *match.span("result"), holds, says)


def _compute(parts: Sequence[re.Match[str]]) -> float | None:
    """The value of terms that are added, subtracted, multiplied and divided; None for a division by zero."""
    total, product, direction = 0.0, _read(parts[0]["number"]), 1.0
    for before, part in pairwise(parts):
        number, operation = _read(part["number"]), before["sign"]
        if operation in _ADDED:
            total, product, direction = total + direction * product, number, _ADDED[operation]
        elif operation in _DIVIDED:
            if not number:
                return None
            product /= number
        else:
            product *= number
    return total + direction * product


def _read(number: str) -> float:
    return float(number.lstrip("€$£¥ ").replace(",", ""))


def _units(words: str) -> Iterator[str]:
    """The units among the words after a number, in one form each."""
    find: Callable[[str], object] = UNITS.get
    for word in words.lower().split():
        name = next((form for form in (word, word.removesuffix("s")) if find(form) is not None), "")
        if name:
            yield name.removesuffix("s")
