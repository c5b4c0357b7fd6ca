"""What a correction may not change because the response answers a question.

An edit that exchanges what was asked about answers another question: "Yes, we are open on Saturday" does not
answer "Are you open on Sunday?". And a negation that is put in or taken out says the opposite of the "Yes" before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from groundwire.engine.extend import WORD, words
from groundwire.engine.values import NEGATIONS, Value, compare, read_values, stem
from groundwire.metrics import Sentence
from groundwire.runtime.texts.characters import is_letters

from .sources import SourceSentence

_OPENER = re.compile(
    r"[\W_]*(yes|yeah|yep|no|nope|of course|certainly|sure|absolutely|definitely|indeed|correct|exactly|that's right|"
    r"unfortunately not|not at all|i'm afraid not)(?=\s*(?:[,.!;:–—]|$)|\s+(?:I|we|you|it|they|there)\b)",
    re.IGNORECASE,
)
"""Words at the beginning of an answer that say yes or no to the question."""
_SENTENCE_END = re.compile(r"[.!?\n]")
LONGEST = 60
"""Characters of a sentence before another, at most, that may be such words."""
AFTER_ANSWER = "The knowledge says {known!r}, but that does not fit after {opener!r}."
WITH_AMOUNT = "The knowledge says {known!r}, but {amount!r} does not fit with that."
ASKED_ABOUT = "The knowledge says {new!r} where the response says {old!r}, but the question asks about {old!r}."
AFFIRMED = (
    "The knowledge says {new!r} where the response says {old!r}, but after {opener!r} that may be what the question "
    "asks about."
)


class UserQuestion:
    """The question that a response answers: the last utterance before it."""

    def __init__(self, response: str, history: Sequence[str] = ()) -> None:
        """Without ``history``, what follows a "Yes" or "No" may be what was asked about."""
        self._response = response
        self.text = history[-1] if history else ""

    @cached_property
    def _words(self) -> set[str]:
        return _list_content(self.text)

    @cached_property
    def _values(self) -> list[Value]:
        return read_values(self.text)

    def find_objection(self, sentence: Sentence, start: int, end: int, new: str, source: SourceSentence | None) -> str:
        """Why characters ``start`` to ``end`` of the response may not become ``new``.

        Args:
            sentence: The sentence that has them.
            start: Where they start.
            end: Where they end.
            new: The words in their place; empty where they are left out.
            source: The sentence of the knowledge that the words are from.

        Returns:
            The reason; empty if they may.
        """
        old, opener = self._response[start:end], find_opener(self._response[: sentence.start], sentence.text)
        if is_denied(old) != is_denied(new):
            if opener:
                return AFTER_ANSWER.format(known=source.text if source else new, opener=opener)
            if source is not None and (amount := _find_amount_without(sentence, source)):
                return WITH_AMOUNT.format(known=source.text, amount=amount)
        lost = _list_content(old) - _list_content(new)
        parts = [part for part in read_values(old) if not any(_are_equal(part, other) for other in read_values(new))]
        if lost & self._words or any(_are_equal(part, asked) for part in parts for asked in self._values):
            return ASKED_ABOUT.format(new=new, old=old)
        if opener and not self.text and lost and not (parts and all(part.is_amount for part in parts)):
            return AFFIRMED.format(new=new, old=old, opener=opener)
        return ""


def find_opener(before: str, sentence: str) -> str:
    """The "Yes" or "No" at the beginning of a sentence, or that is the sentence before it; empty without one.

    >>> find_opener("", "Yes, we ship."), find_opener("Hello! Of course.", "We ship."), find_opener("", "No one ships.")
    ('Yes', 'Of course', '')
    """
    last = _SENTENCE_END.split(before.rstrip(" .!\n")[-LONGEST:])[-1]
    match = _OPENER.match(sentence) or _OPENER.fullmatch(last.strip())
    return "" if match is None else match[1]


def is_denied(text: str) -> bool:
    """Whether a text has an odd number of negations.

    >>> is_denied("We do not ship"), is_denied("We ship"), is_denied("It isn't sold")
    (True, False, True)
    """
    lower = (match[0].lower().replace("’", "'") for match in WORD.finditer(text))
    return sum(word in NEGATIONS or word.endswith("n't") for word in lower) % 2 == 1


def _find_amount_without(sentence: Sentence, source: SourceSentence) -> str:
    """The first number, date or time of a sentence that the source does not have; empty if it has them all."""
    missing = (
        sentence.text[part.start : part.end]
        for part in read_values(sentence.text)
        if part.is_amount and not any(_are_equal(part, other) for other in source.parts)
    )
    return next(missing, "")


def _list_content(text: str) -> set[str]:
    return {stem(word.lower) for word in words(text) if word.content and any(map(is_letters, word.lower))}


def _are_equal(part: Value, other: Value) -> bool:
    return part.is_amount and other.is_amount and compare(part.content, other.content) == "supports"
