"""What a correction leaves as it is: code, and values that follow from others.

"Two packs give you 24 batteries" is right where a pack has twelve, although the knowledge has no 24. A value is left as
it is if it follows from others or may (``find_computed``), or if the words beside it say that it was worked out ("£4
cheaper", "48 in total"). A value that happens to follow is left as it is, too: a correction that is not made does less
harm than a wrong one. But where a clause of the knowledge says just what the response's clause says, with another
value, arithmetic does not keep it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from groundwire.engine.extend import find_code
from groundwire.engine.values import NAMED_DAYS, UNITS, ComputedValue, Value, compare, find_computed, read_values, stem
from groundwire.engine.verdict import LIGHT
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_numeric

from .sources import SourceSentence

_ROW = re.compile(r"^[ \t]*\|[^\n]*$", re.MULTILINE)
"""A row of a table."""
MAX_NUMBERS = 24
"""Numbers of knowledge and response that are combined, at most."""
_WORKED_OUT = re.compile(
    r"(?:\b(?:total|totals|altogether|together|in all|combined|overall|sum|adds? up|add up|on average|saves?|"
    r"saving|savings|extra|cheaper|dearer|longer|shorter|older|younger|taller|larger|smaller|bigger|heavier|lighter|"
    r"hotter|colder|faster|slower|higher|lower|later|earlier|sooner|away from|difference|remaining|leaving|leaves?|"
    r"left over|instead of|double|twice|half|gap|per cent more|works out|comes? to|come out|amounts? to|equals|"
    r"multiplied|divided|rounded|roughly|works? out at|so you|so it|so your|therefore|which means|that means|"
    r"would be|you'd|you’d|(?<!it )(?<!them )back)\b|\b(?:more|less|fewer)\b(?!\s+than)|\breach(?:es)?\b)",
    re.IGNORECASE,
)
"""Words that say that the value beside them was worked out."""
_GIVEN = re.compile(
    r"\b(?:if|suppose|assuming|at your|your|you(?:'ve| have|’ve)?\s+(?:already\s+)?(?:opened|ordered|used|bought|got|"
    r"have(?!\s+\S+\s+(?:minutes|hours|days|weeks|months|years)\b)|arrive|started|paid)|for (?:a party|"
    r"a group|\S+ people|\S+ adults|\S+ servings)|picking up|started at|set (?:at|to)|\S+ people)\b",
    re.IGNORECASE,
)
"""Words that say that the value beside them is the reader's, or an example."""
_YOUR = re.compile(r"\byour\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_CLAUSE = re.compile(r"[.!?;:](?=\s|$)|,\s(?:(?:and|but|while|whereas|so)\s)?|\n|\s(?:and|but|while|whereas|so)\s")
_TIMES = NAMED_DAYS.keys() | set(UNITS) | {"morning", "noon", "afternoon", "evening", "night", "midnight"}
_LIGHT = LIGHT | {"cost", "costs", "price", "pay", "charge", "take", "takes", "get", "gets"}
"""Words of a clause that do not tell what its value is of."""
CONTACTS = frozenset({"url", "email", "phone"})
"""Kinds of values that reach somebody."""
SHARED = 3
"""Words of a clause with a contradicted value, at least, that the knowledge's clause has, if it does not have all."""


class Clause(NamedTuple):
    """A part of a text between commas, points and conjunctions."""

    start: int
    end: int
    text: str


def find_clause(text: str, start: int, end: int) -> Clause:
    """The clause that has the characters ``start`` to ``end``.

    >>> find_clause("The bar closes at one, the kitchen at nine.", 38, 42).text
    'the kitchen at nine'
    """
    left, right = 0, len(text)
    for match in _CLAUSE.finditer(text):
        if match.end() <= start:
            left = match.end()
        elif match.start() >= end:
            right = match.start()
            break
    return Clause(left, right, text[left:right])


class Kept:
    """The parts of a response that a correction leaves as they are."""

    def __init__(self, response: str, passages: Sequence[str], history: Sequence[str] = ()) -> None:
        """Find the code in ``response``; its values and those in the ``passages`` are read when first needed."""
        self._response = response
        self._passages = passages
        self._history = history
        self._question = history[-1] if history else ""
        self._code = [*find_code(response), *(match.span() for match in _ROW.finditer(response))]

    def touches_code(self, start: int, end: int) -> bool:
        """Whether characters ``start`` to ``end`` are in code or a row of a table."""
        return any(first < end and start < last for first, last in self._code)

    def is_in_dialogue(self, start: int, end: int) -> bool:
        """Whether a text before the response has the address or phone number that characters ``start`` to ``end``
        touch: it is the reader's, perhaps."""
        contacts = [part for part in read_values(self._response) if part.kind in CONTACTS]
        return any(
            part.content == other.content
            for part in contacts
            if part.start < end and start < part.end
            for turn in self._history
            for other in read_values(turn)
        )

    def is_fixed(self, start: int, end: int) -> bool:
        """Whether characters ``start`` to ``end`` touch code, or are a day of the week."""
        return self.touches_code(start, end) or self._response[start:end].lower() in NAMED_DAYS

    def find_reason(self, start: int, end: int, *, contradicted: bool = False) -> str:
        """Why characters ``start`` to ``end`` are left as they are: code, or a value that follows from others.

        A value that the rules of values take for ``contradicted`` is of no arithmetic; words may still say that it was
        worked out.

        Returns:
            The reason, a clause; empty if they may be changed.
        """
        text = self._response[start:end]
        if self.touches_code(start, end):
            return "code and tables are not changed"
        if text.lower() in NAMED_DAYS:
            return "a day of the week is not changed"
        parts = (part for part in self.values if part.start < end and start < part.end)
        return next(filter(None, (self._find_part_reason(part, contradicted=contradicted) for part in parts)), "")

    def _find_part_reason(self, part: Value, *, contradicted: bool) -> str:
        computed = None if contradicted else self._find_computed(part)
        text = self._response[part.start : part.end]
        if computed is not None:
            return f"{text!r} may follow from other values" + f": {computed.derivation}" * bool(computed.derivation)
        if part.type == "entity" and not contradicted:
            return ""
        clause = find_clause(self._response, part.start, part.end).text
        clause = _YOUR.sub("", clause) if contradicted else clause
        if word := _WORKED_OUT.search(clause):
            return f"{word[0]!r} says that {text!r} was worked out"
        condition = _GIVEN.search(clause)
        return "" if condition is None else f"after {condition[0]!r} it may be the reader's own, or an example"

    def _says_worked_out(self, part: Value) -> bool:
        return bool(self._find_part_reason(part, contradicted=True))

    def is_plain(self, part: Value, source: SourceSentence, other: Value, *, contradicted: bool) -> bool:
        """Whether a clause of the knowledge says what the clause of a value says, with the value ``other``.

        Args:
            part: The value of the response.
            source: The sentence of the knowledge.
            other: The value there.
            contradicted: Whether ``other`` is known to contradict it. Else the knowledge's clause has to have all words
                of the response's.

        Returns:
            False if words or other amounts say that the value was worked out, or is of something else.
        """
        clause = find_clause(self._response, part.start, part.end)
        if self._says_worked_out(part) or not all(map(self._is_known, self._find_beside(part))):
            return False
        source_clause = find_clause(source.text, other.start, other.end)
        ours = list_heads(self._response[clause.start : part.start], self._response[part.end : clause.end])
        theirs = list_heads(source_clause.text)
        missing, shared = ours - theirs, ours & theirs
        if not missing:
            return len(shared) > 1
        return (
            contradicted
            and len(shared) >= max(SHARED, len(missing))
            and missing.isdisjoint(self.known_heads | set(UNITS))
        )

    def _find_beside(self, part: Value) -> Iterator[Value]:
        """The other amounts of the sentence of a value, and the amounts of the question."""
        sentence = next(item for item in sentences(self._response) if part.start < item.end)
        yield from (
            other for other in self.values if sentence.start <= other.start < sentence.end and other.start != part.start
        )
        yield from (other for other in self.asked if compare(part.content, other.content) != "supports")

    @property
    def is_asked_with_amounts(self) -> bool:
        """Whether the question has an amount that the knowledge does not have: the answer may be worked out from it."""
        return not all(map(self._is_known, self.asked))

    @cached_property
    def known_heads(self) -> set[str]:
        """The words of the knowledge that tell what a value is of."""
        return list_heads(*self._passages)

    @cached_property
    def history_heads(self) -> set[str]:
        """The words of the dialogue before the response, as ``known_heads``."""
        return list_heads(*self._history)

    def _is_known(self, part: Value) -> bool:
        return any(compare(part.content, other.content) == "supports" for other in self.known)

    @cached_property
    def values(self) -> list[Value]:
        """The numbers, times and dates of the response."""
        return [part for part in read_values(self._response) if part.is_amount]

    @cached_property
    def known(self) -> list[Value]:
        """The amounts of the knowledge; their places are in their passages."""
        every = (part for passage in self._passages for part in read_values(passage) if part.is_amount)
        return list(islice(every, MAX_NUMBERS))

    @cached_property
    def asked(self) -> list[Value]:
        """The amounts of the question; their places are in it."""
        return [part for part in read_values(self._question) if part.is_amount]

    def states_amount(self, start: int, end: int) -> bool:
        """Whether characters ``start`` to ``end`` have a number, time, date or day of the week."""
        text = self._response[start:end]
        if any(map(is_numeric, text)) or any(word.lower() in _TIMES for word in _WORD.findall(text)):
            return True
        return any(part.start < end and start < part.end for part in self.values)

    def is_computed(self, part: Value) -> bool:
        """Whether a value of the response follows from others, or may."""
        return self._find_computed(part) is not None

    def _find_computed(self, part: Value) -> ComputedValue | None:
        values = (item for item in self._computed if item.value.start < part.end and part.start < item.value.end)
        return next(values, None)

    @cached_property
    def _computed(self) -> list[ComputedValue]:
        """The values of the response that may follow from others."""
        return find_computed(self._response, self._passages, [self._question] if self._question else ())


def list_heads(*texts: str) -> set[str]:
    """The words that tell what the value of a clause is of; compounds as a whole: "next-day"."""
    lower = (match[0].lower() for text in texts for match in _WORD.finditer(text))
    return {word if "-" in word else stem(word) for word in lower if word not in _LIGHT}
