"""Made errors of a consistent response: twins, the same answer with one thing in it made wrong.

They say what a threshold would miss where no wrong answer is labelled, of errors that are made: real ones may be
easier or harder to see. An exchanged value or name is another one of the knowledge, so it is in the knowledge and
belongs to something else, as in most errors of a model that has read it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from groundwire.engine.extend import split_words
from groundwire.engine.values import Measure, Name, Value, check_values, compare, read_values
from groundwire.metrics import sentences

from .edits import ClaimEdit
from .negation import edit_by_negation

TwinKind: TypeAlias = Literal["value", "name", "negation", "condition", "sentence"]
ABOUT: dict[TwinKind, str] = {
    "value": "a number, date or time exchanged for another of the knowledge",
    "name": "a name exchanged for another of the knowledge",
    "negation": "a “not” more or less",
    "condition": "a condition or restriction left out",
    "sentence": "a sentence of another answer added",
}
"""What is wrong in a twin of each kind."""
MAX_COVERAGE = 0.6
"""An added sentence has a smaller share of its words in the knowledge."""
MIN_WORDS, MAX_WORDS = 5, 30
"""Words of an added sentence."""
CANDIDATES = 50
"""Sentences of other answers among which the one that shares most words with the knowledge is added: an error that is
about the same thing is harder to see."""


class Twin(NamedTuple):
    """A response that its knowledge does not support."""

    kind: TwinKind
    response: str
    spans: tuple[tuple[int, int], ...]
    """The first changed character and the one after the last, of each place. What was left out has the words after it,
    or the last word before it at the end of a sentence."""


def make_twins(response: str, knowledge: Sequence[str], others: Sequence[str] = (), seed: int = 13) -> list[Twin]:
    """Make errors in a response that its knowledge supports, each in a twin of the response.

    >>> [(twin.kind, twin.response) for twin in make_twins("It opens at 9:00.", ["Open 9:00 to 17:00."])]
    [('value', 'It opens at 17:00.')]

    Args:
        response: The response; one that is not supported gives twins that are worth nothing.
        knowledge: Its passages.
        others: Responses about other knowledge, whose sentences may be added; none leaves that kind out.
        seed: The same seed gives the same twins of a response, whatever else is in its set.

    Returns:
        At most one twin of each kind, in the order of ``ABOUT``.
    """
    rng = random.Random(f"{seed}\n{response}")
    editors: dict[TwinKind, Callable[[], ClaimEdit | None]] = {
        "value": lambda: exchange_value(response, knowledge, rng, names=False),
        "name": lambda: exchange_value(response, knowledge, rng, names=True),
        "negation": lambda: edit_by_negation(response, rng),
        "condition": lambda: drop_condition(response, rng),
        "sentence": lambda: add_sentence(response, knowledge, others, rng),
    }
    twins = []
    for kind in get_args(TwinKind):
        edit = editors[kind]()
        if edit is not None:
            text = edit.apply(response)
            spans = tuple((span.start, span.end) for span in edit.find_spans())
            twins.append(Twin(kind, text, spans))
    return twins


def exchange_value(response: str, knowledge: Sequence[str], rng: random.Random, *, names: bool) -> ClaimEdit | None:
    """Another value of the same kind from the knowledge in place of one that the knowledge supports."""
    checked = [
        check.value
        for check in check_values(response, knowledge)
        if check.outcome == "supported" and isinstance(check.value.content, Name) == names
    ]
    others = [(value, passage[value.start : value.end]) for passage in knowledge for value in read_values(passage)]
    for value in rng.sample(checked, len(checked)):
        pool = sorted({text for other, text in others if _are_rivals(value, other) and not _has(response, text)})
        if pool:
            old, new = response[value.start : value.end], rng.choice(pool)
            named = [match.span() for match in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", response)]
            ranges = named if names else [(value.start, value.end)]
            kind = ("name", "entity") if names else ("value", "number")
            return ClaimEdit(*kind, tuple((start, end, new) for start, end in ranges))
    return None


def _are_rivals(ours: Value, theirs: Value) -> bool:
    """Whether one may be written in place of the other and then says something else."""
    if ours.kind != theirs.kind or ours.kind == "nationality":  # "France" would take the place of "French"
        return False
    if isinstance(ours.content, Name) and isinstance(theirs.content, Name):
        return not set(ours.content.words) & set(theirs.content.words)
    if isinstance(ours.content, Measure) and isinstance(theirs.content, Measure):
        return ours.content.measure == theirs.content.measure and compare(ours.content, theirs.content) != "supports"
    return compare(ours.content, theirs.content) != "supports"


def _has(response: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", response, re.IGNORECASE) is not None


_CONDITION = re.compile(
    r"(?<=\w),? (?:if|unless|provided|as long as|except|but not|excluding|subject to) [^,.;:!?\n]{5,80}(?=[,.;!?]|$)"
    r"|(?:(?<=^)|(?<=[.!?] ))(?:If|Unless|As long as) [^,.;:!?\n]{5,80}, (?=\w)"
    r"|(?<=\w )(?:only|at least|at most|up to|no more than|not more than) (?=\w)",
    re.MULTILINE,
)
"""What a response says less without, and so more than its knowledge. A place or time that is left out is no error."""


def drop_condition(response: str, rng: random.Random) -> ClaimEdit | None:
    """A condition, an exception or a restriction left out."""
    matches = list(_CONDITION.finditer(response))
    if not matches:
        return None
    start, end = rng.choice(matches).span()
    # A place without characters cannot be marked, so a word beside it is rewritten as it is.
    after = re.compile(r"\w+").match(response, end)
    if after is not None:
        begins = start == 0 or response[start - 2 : start - 1] in tuple(".!?")
        word = after[0][:1].upper() + after[0][1:] if begins else after[0]
        return ClaimEdit("condition", "relation", ((start, after.end(), word),))
    before = re.search(r"\w+$", response[:start])
    return ClaimEdit("condition", "relation", ((before.start(), end, before[0]),)) if before else None


def add_sentence(
    response: str, knowledge: Sequence[str], others: Sequence[str], rng: random.Random
) -> ClaimEdit | None:
    """A sentence of another answer after the response, one that the knowledge does not cover."""
    knowledge_words = {word for passage in knowledge for word in split_words(passage)}
    drawn = rng.sample(others, min(CANDIDATES, len(others)))
    fitting = []
    for sentence in (sentence.text for other in drawn for sentence in sentences(other)):
        words = split_words(sentence)
        coverage = sum(word in knowledge_words for word in words) / max(1, len(words))
        if MIN_WORDS <= len(words) <= MAX_WORDS and coverage < MAX_COVERAGE and not sentence.endswith("?"):
            fitting.append((coverage, sentence))
    if not fitting:
        return None
    added = max(fitting)[1]
    text = response.rstrip()
    last = re.search(r"\w+$", text)
    if last is None:
        return ClaimEdit("sentence", "addition", ((len(text), len(response), f" {added}"),))
    return ClaimEdit("sentence", "addition", ((len(text), len(response), f". {added}"),))
