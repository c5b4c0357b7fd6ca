"""Which clauses of a response state something: nothing is read where one denies, asks, supposes, compares or hedges.

The scope of such a word is its clause, and a clause ends at "but", ";" or the sentence's end: a word too many refuses a
repair, a word too few writes a falsehood.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_numeric, starts_upper

from .tokens import NameRange

_DENIALS = (
    "not never no nor neither none without cannot hardly barely scarcely rarely seldom false "
    "falsely untrue wrong wrongly incorrect incorrectly mistaken mistakenly mistake myth "
    "refuse refuses refused decline declines declined reject rejects rejected deny denies denied doubt doubts doubted "
    "fail fails failed"
)
_CONDITIONS = (
    "if unless whether otherwise would could might maybe perhaps possibly probably supposedly allegedly "
    "reportedly wish wishes wished hope hopes hoped suppose supposed imagine imagined pretend pretends "
    "thought assumed believed guessed"
)
_COMPARISONS = "unlike instead rather than except either or almost nearly roughly approximately versus vs"
_PHRASES = (
    r"(?:ai|are|ca|could|did|do|does|had|has|have|is|must|need|should|was|were|wo|would)n['’]?t",
    r"no(?:body|thing|where)",
    r"should have",
    r"may (?:also )?(?:have|be|not|well)",
    r"apart from",
    r"aside from",
    r"as opposed to",
    r"(?:all|any\w*) but",
    r"far from",
    r"as (?:if|though)",
)
_WORD = re.compile(
    rf"\b(?:{'|'.join('|'.join(words.split()) for words in (_DENIALS, _CONDITIONS, _COMPARISONS))}"
    rf"|{'|'.join(_PHRASES)})\b|n['’]t\b|['’]d have\b",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:before|prior to|after|until|till|up to|since|by|around|about|circa|between|over|under|at least|at most)\s+"
    r"(?:(?:the|at|least|late|early|mid|end|beginning|start|turn|middle|year|of|in|or|and|about|around"
    r"|spring|summer|autumn|fall|winter|january|february|march|april|may|june"
    r"|july|august|september|october|november|december|\d\d?(?:st|nd|rd|th)?,?)"
    r"[\s-]+){0,4}\d[\d.,]*(?!\w)",
    re.IGNORECASE,
)
"""A year, or a measure, that is only a bound of what is meant."""
_ANSWER = re.compile(
    r"^\W*(?:(?:well|oh|ah|hm+|sorry|actually)\W+)?(?:nope|nah|no|not (?:quite|really|exactly|at all))(?=\s*[,.!–—-])",
    re.IGNORECASE,
)
"""An answer before what is stated: it denies what was asked."""
_END = re.compile(r"(?<!\ball )(?<!one )(?<!body )(?<!thing )\bbut\b|;", re.IGNORECASE)
_QUESTION = re.compile(r"\?\W*$")


class Clauses:
    """The clauses of a text, and whether each states something."""

    def __init__(self, text: str, names: Sequence[NameRange]) -> None:
        """``names``: whose words count for nothing ("Never Let Me Go")."""
        starts = [sentence.start for sentence in sentences(text)] or [0]
        masked = _mask(text, names, frozenset(starts))
        self._starts: list[int] = []
        self._states: list[bool] = []
        for start, end in pairwise((*starts, len(text))):
            sentence = _ANSWER.sub(lambda match: " " * len(match[0]), masked[start:end])
            asks = _QUESTION.search(sentence) is not None
            for begin, stop in pairwise((0, *(match.start() for match in _END.finditer(sentence)), len(sentence))):
                clause = sentence[begin:stop]
                self._starts.append(start + begin)
                self._states.append(not (asks or _WORD.search(clause) or _BOUND.search(clause)))

    def states(self, position: int) -> bool:
        """Whether the clause at a position states something."""
        return self._states[max(0, bisect_right(self._starts, position) - 1)]


def _mask(text: str, names: Sequence[NameRange], starts: frozenset[int]) -> str:
    """Put NUL for names, but for numbers. A capital shows a name of one word, and one that the graph does not know,
    except where a sentence begins.
    """
    parts: list[str] = []
    position = 0
    for name in names:
        own_text = text[max(position, name.start) : name.end]
        is_title = name.entity is not None and " " in own_text and not is_numeric(own_text[0])
        if is_title or (starts_upper(own_text) and (name.entity is not None or name.start not in starts)):
            parts += [text[position : name.start], "\0" * (name.end - max(position, name.start))]
            position = max(position, name.end)
    return "".join((*parts, text[position:]))
