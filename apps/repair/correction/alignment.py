"""Where two sentences that are otherwise alike have different words.

Both are compared word by word. A difference counts if it is short and the words around it are the same, so that what
the one sentence has there can stand in the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from groundwire.engine.extend import FUNCTION_WORDS, WORD
from groundwire.engine.values import NEGATIONS

MAX_WORDS = 7
"""Words of a difference, at most, on either side."""
FLANKS = 3
"""Equal words before and after it together, at least."""
MAX_LENGTH = 120
"""Words of a sentence, at most: the comparison takes time in proportion to the square of it."""
EDGE = 0.7
"""How far a difference at the beginning or the end of a sentence is trusted, of one with equal words on both sides."""
NEGATED = 0.5
"""Share of the words of a sentence that must be equal for a negation to be put in or taken out."""
PLAIN_WORDS = 2
ALIKE = 0.6
"""Share of the words of a sentence that must be equal for other words to be exchanged."""
_AUXILIARIES = frozenset({"do", "does", "did"})
_ADDING = frozenset({"also", "too", "even"})
_SPACES = re.compile(r"\s+")


class WordChange(NamedTuple):
    """Words of the known sentence for characters ``start`` to ``end`` of ours."""

    start: int
    end: int
    text: str
    known_start: int
    known_end: int
    trust: float
    """0–1."""
    negates: bool
    """Whether one of both has a negation there and the other does not."""
    is_plain: bool
    """Whether it is one word or two in the place of as many, between equal words, in sentences that are much alike."""


class _Word(NamedTuple):
    lower: str
    start: int
    end: int


def align_words(ours: str, theirs: str) -> Iterator[WordChange]:
    """The differences between two sentences, in order.

    >>> [(item.text, item.negates) for item in align_words("It was not sold in Oslo.", "It was sold in Bergen.")]
    [('was', True)]
    >>> [item.text for item in align_words("It was first sold in Oslo in May.", "It was first sold in Bergen in May.")]
    ['Bergen']
    """
    left, right = _list_words(ours), _list_words(theirs)
    if max(len(left), len(right)) > MAX_LENGTH:
        return
    matcher = SequenceMatcher(None, [word.lower for word in left], [word.lower for word in right], autojunk=False)
    codes = matcher.get_opcodes()
    equal = sum(end - start for tag, start, end, _, _ in codes if tag == "equal")
    for index, (tag, start, end, known_start, known_end) in enumerate(codes):
        if tag == "equal" or max(end - start, known_end - known_start) > MAX_WORDS:
            continue
        before, after = _count_equal(codes, index - 1), _count_equal(codes, index + 1)
        if before + after < FLANKS:
            continue
        negations = [_is_negated(left[start:end]), _is_negated(right[known_start:known_end])]
        negates = negations[0] != negations[1]
        if negates and (
            equal < NEGATED * len(left) or _list_heavy(left[start:end]) != _list_heavy(right[known_start:known_end])
        ):
            continue
        if tag != "replace":
            # Only a negation is put in or taken out by itself; with the word before it, so that no side is empty.
            alone = all(map(_is_light, (*left[start:end], *right[known_start:known_end])))
            if not (negates and alone and before):
                continue
            start, known_start = start - 1, known_start - 1
        trust = 1.0 if before and after else EDGE
        first, last = right[known_start], right[known_end - 1]
        yield WordChange(
            left[start].start,
            left[end - 1].end,
            _SPACES.sub(" ", theirs[first.start : last.end]),
            first.start,
            last.end,
            trust,
            negates,
            end - start == known_end - known_start <= PLAIN_WORDS
            and bool(before and after)
            and equal >= ALIKE * len(left)
            and any(word.lower not in FUNCTION_WORDS for word in left[start:end]),
        )


def _list_words(text: str) -> list[_Word]:
    return [_Word(match[0].lower().replace("’", "'"), *match.span()) for match in WORD.finditer(text)]


def _count_equal(codes: Sequence[tuple[str, int, int, int, int]], index: int) -> int:
    if not 0 <= index < len(codes) or codes[index][0] != "equal":
        return 0
    return codes[index][2] - codes[index][1]


def _is_negated(words: Sequence[_Word]) -> bool:
    return any(word.lower in NEGATIONS or word.lower.endswith("n't") for word in words)


def _list_heavy(words: Sequence[_Word]) -> list[str]:
    """What is said apart from the negation: "was" of "wasn't", nothing of "did not", "cover" of "also covers"."""
    plain = [word.lower.removesuffix("n't") for word in words]
    return [word.removesuffix("s") for word in plain if word not in NEGATIONS | _AUXILIARIES | _ADDING]


def _is_light(word: _Word) -> bool:
    return _is_negated([word]) or word.lower in _AUXILIARIES
