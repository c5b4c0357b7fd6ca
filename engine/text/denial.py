"""Statements that a response quotes and calls false: the items of a quiz, and myths.

Such a statement is no claim of the response; that it is false is one. Structure alone says which they are: a label
before a statement, or an answer after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

DENIED = "It is not true that"
"""What models read before a statement that is called false."""
Stance: TypeAlias = Literal["", "code", "answer", "denied"]
"""What a sentence is: a statement; code, which models of English do not read; the answer of a quiz, which is read with
its statement; or a statement that is called false."""

_CUE = re.compile(r"\b(?:false|wrong|incorrect|untrue|not true|myths?|misconceptions?|rumou?rs?)\b", re.IGNORECASE)
_MYTH = r"(?:(?:common|popular|widespread|frequent) )?(?:myth|misconception|rumou?r)"
_BEFORE = re.compile(
    rf"\s*(?:{_MYTH}s?(?: (?:no\. ?|#)?\d+)?\s*:"
    rf"|it(?: is|['’]s) (?:(?:simply|just|plainly) )?(?:false|wrong|untrue|incorrect|an? {_MYTH})"
    r"(?: to (?:say|think|believe|claim))? that)\s+(?=\S)",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?<=\w)\s*(?:[—–→]|\s-)\s*\W*(?:false|wrong|incorrect|untrue|not true|a myth)\W*\Z", re.IGNORECASE
)
_ANSWER = re.compile(
    r"\W*(?:(?:the )?(?:correct |right )?(?:answer|solution)(?: is|:)\W*(?P<named>true|false)\b[\W]*"
    r"|(?:false|incorrect|untrue|not true)\W*\Z)",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"(?:is (?:it|this|that) )?true or false\s*(?P<end>[:?])\s*", re.IGNORECASE)


class Denial(NamedTuple):
    """Which characters of a sentence are read, and how."""

    stance: Stance
    start: int
    end: int


def may_deny(text: str) -> bool:
    """Whether a text has a word that calls something false."""
    return _CUE.search(text) is not None


def find_denials(texts: Sequence[str]) -> Iterator[tuple[int, Denial]]:
    """Yield the sentences that are quoted and called false, and the answers that say so, by their index.

    >>> list(find_denials(["The bar is open.", "Answer: false"]))
    [(0, Denial(stance='denied', start=0, end=16)), (1, Denial(stance='answer', start=13, end=13))]

    Args:
        texts: The sentences of a response, in order, without marks.

    Yields:
        Index of a sentence and what is read of it; nothing for sentences that are read as they are.
    """
    if not any(map(may_deny, texts)):
        return
    for index, text in enumerate(texts):
        answer = _ANSWER.match(text)
        if answer is None:
            before, after = _BEFORE.match(text), _AFTER.search(text)
            if before or after:
                yield index, Denial("denied", before.end() if before else 0, after.start() if after else len(text))
            continue
        statement = _find_statement(texts, index)
        if statement is None:
            continue
        where, start = statement
        is_false = (answer["named"] or "false").lower() == "false"
        yield where, Denial("denied" if is_false else "", start, len(texts[where]))
        rest = text[answer.end() :].strip()
        yield index, Denial("" if rest else "answer", answer.end(), len(text))


def _find_statement(texts: Sequence[str], answer: int) -> tuple[int, int] | None:
    """The sentence that an answer is about, and where its statement begins; None for a question."""
    index = answer - 1
    if index > 0 and (choice := _CHOICE.match(texts[index])) and choice["end"] == "?":
        index -= 1
    if index < 0:
        return None
    choice = _CHOICE.match(texts[index])
    start = choice.end() if choice else 0
    statement = texts[index][start:].strip()
    return None if not statement or statement.endswith("?") else (index, start)
