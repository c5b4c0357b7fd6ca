"""Pairs of a true response and the same with a small edit that makes it wrong, and how a correction changes them.

Source of the rows: ``python -m groundwire.recipes development-rows --kind edits``, which writes one after the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from groundwire.engine.extend import WORD
from groundwire.runtime.errors import InvalidRequest

from ..synthesis.rewordings import SMALL_NUMBERS

Outcome: TypeAlias = Literal["restored", "improved", "shortened", "no better", "harmed", "unchanged"]
"""``restored``: the words of the true response. ``improved``: nearer to them, and none of them lost. ``shortened``:
what remains are words of the true response in their order. ``harmed``: words of the true response are lost otherwise,
which may still be true ("in 1930" for "in the 20th century"). ``no better``: none is lost, such as by a wrong name for
another."""


class PairRow(msgspec.Struct, frozen=True):
    """A line of the rows; other fields are ignored."""

    id: str
    response: str
    knowledge: str
    label: int
    source: str = ""
    """The kind of the edit."""


class Pair(NamedTuple):
    """A true response, and the same with an edit."""

    true: PairRow
    edited: PairRow


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file, in order; rows without a partner are left out. InvalidRequest if there is none."""
    try:
        rows = [msgspec.json.decode(line, type=PairRow) for line in path.read_bytes().splitlines() if line.strip()]
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{path} cannot be read as lines with response, knowledge and label: {error}.") from error
    pairs = [
        Pair(first, second)
        for first, second in pairwise(rows)
        if (first.label, second.label) == (1, 0) and first.knowledge == second.knowledge
    ]
    if not pairs:
        raise InvalidRequest(
            f"{path} has no pairs: a true row (label 1) followed by its edit (label 0) with the same knowledge. Make "
            "them with python -m groundwire.recipes development-rows --kind edits."
        )
    return pairs


def rate(true: str, response: str, corrected: str) -> Outcome:
    """What a correction of ``response`` is, beside the true response; numbers in words and digits are the same.

    >>> rate("It has four strings.", "It has 6 strings.", "It has 4 strings.")
    'restored'
    >>> rate("It has four strings.", "It has 6 strings.", "It has 6.")
    'harmed'
    """
    if corrected == response:
        return "unchanged"
    wanted, before, after = (list_words(text) for text in (true, response, corrected))
    if after == wanted:
        return "restored"
    common_before, common_after = count_common(wanted, before), count_common(wanted, after)
    if common_after < common_before:
        return "shortened" if common_after == len(after) and common_before < len(before) else "harmed"
    wrong_before, wrong_after = len(before) - common_before, len(after) - common_after
    return "improved" if (common_after, -wrong_after) > (common_before, -wrong_before) else "no better"


def list_words(text: str) -> list[str]:
    """The words of a text without case, small numbers in digits."""
    words = [word.casefold() for word in WORD.findall(text)]
    return [str(SMALL_NUMBERS.index(word)) if word in SMALL_NUMBERS else word for word in words]


def count_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Words that both have in the same order (the longest common subsequence)."""
    counts = [0] * (len(second) + 1)
    for word in first:
        previous = 0
        for index, other in enumerate(second, 1):
            previous, counts[index] = (
                counts[index],
                previous + 1 if word == other else max(counts[index], counts[index - 1]),
            )
    return counts[-1]
