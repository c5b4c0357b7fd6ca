"""What the knowledge says about each value of a response: it supports it, contradicts it, or does not have it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ..kg.normalization import FUNCTION_WORDS
from .comparing import compare
from .demonyms import COUNTRY_OF, REGIONS
from .finding import find_values
from .names import ORGANISATIONS, PHRASES, PLACES, fold_name, split_by_case
from .quantities import stem
from .records import Measure, Name, Value
from .tokens import Token, tokenize

_GENERIC = PLACES | ORGANISATIONS
_NEGATIONS = frozenset("not never no nor neither without none cannot isn't wasn't aren't weren't don't doesn't didn't".split())
_PRONOUNS = frozenset("he she it they his her its their this these".split())
Outcome: TypeAlias = Literal["supported", "contradicted", "absent"]
SentenceKey: TypeAlias = tuple[int, int]
"""Numbers of a passage and of a sentence in it."""


class Location(NamedTuple):
    """Characters ``start`` to ``end`` of a passage, in one of its sentences."""

    passage: int
    start: int
    end: int
    sentence: int


class CheckedValue(NamedTuple):
    """A value of a response and what the knowledge says about it."""

    value: Value
    outcome: Outcome
    evidence: Location | None
    """What supports or contradicts it; None for an absent value."""


class _Passages(NamedTuple):
    """What the knowledge has."""

    values: list[tuple[Location, Value]]
    """All but names."""
    names: list[tuple[Location, Name]]
    words: dict[str, dict[SentenceKey, Location]]
    """Folded words, each with its first place in every sentence."""
    initials: dict[str, Location]
    """Acronyms of the names."""
    content: dict[SentenceKey, set[str]]
    """Stems of the content words of each sentence."""
    opens_with_pronoun: bool
    """Whether a passage speaks of somebody or something without a name."""


def check_values(response: str, passages: Sequence[str]) -> tuple[tuple[CheckedValue, ...], int]:
    """The values of ``response``, in order, and how many comparisons were made.

    >>> checked, _ = check_values("It has 3 strings, and Ann made it in 1999.", ["Made in 1999, it has four strings."])
    >>> [(check.value.content.amount if check.value.kind == "number" else check.value.kind, check.outcome)
    ...     for check in checked]
    [(3.0, 'contradicted'), ('name', 'absent'), ('date', 'supported')]
    """
    tokens = tokenize(response)
    split = [tokenize(passage) for passage in passages]
    capitalised, lower = split_by_case([token for part in (tokens, *split) for token in part])
    values = find_values(tokens, capitalised, lower)
    if not values:
        return (), 0
    known = _read_passages(split, [find_values(part, capitalised, lower) for part in split])
    content = _list_content(tokens, values)
    pairs = len(values) * (len(known.values) + len(known.names) + len(known.content))
    negations = [(token.sentence, token.start) for token in tokens if token.lower in _NEGATIONS]
    checked = (_check(value, content[value.sentence], known) for value in values)
    return tuple(check for check in checked if _is_checkable(check, negations, known)), pairs


def _is_checkable(check: CheckedValue, negations: Sequence[tuple[int, int]], known: _Passages) -> bool:
    """Whether the knowledge can be expected to have a value that it does not support.

    That a value is not so ("it is not an album by Queen") needs no support. Nor can whom a passage speaks of be known
    when it begins with a pronoun.
    """
    if check.outcome == "supported":
        return True
    if any(sentence == check.value.sentence and start < check.value.start for sentence, start in negations):
        return False
    subject = isinstance(check.value.content, Name) and check.value.content.opens
    return not (subject and known.opens_with_pronoun)


def _check(value: Value, context: set[str], known: _Passages) -> CheckedValue:
    if isinstance(value.content, Name):
        return _check_name(value, value.content, context, known)
    supporting: list[Location] = []
    differing: list[Location] = []
    compatible = other_noun = False
    nouns = value.content.nouns if isinstance(value.content, Measure) else frozenset()
    for location, theirs in known.values:
        relation = compare(value.content, theirs.content)
        their_nouns = theirs.content.nouns if isinstance(theirs.content, Measure) else frozenset()
        counted_alike = not nouns and not their_nouns or bool(nouns & their_nouns)
        if relation == "supports":
            supporting.append(location)
            other_noun |= bool(nouns and their_nouns) and not counted_alike
        elif relation == "compatible":
            compatible |= counted_alike
        elif relation == "differs" and value.kind == theirs.kind and counted_alike:
            differing.append(location)
    role = [location for location in differing if context & known.content[location.passage, location.sentence]]
    if supporting and not (other_noun and role and len(supporting) == 1):
        return CheckedValue(value, "supported", _choose(supporting, context, known))
    if role and not compatible:
        return CheckedValue(value, "contradicted", _choose(role, context, known))
    return CheckedValue(value, "absent", None)


def _choose(locations: Sequence[Location], context: set[str], known: _Passages) -> Location:
    """The location whose sentence shares the most content words with the response's; the first of several."""
    return max(locations, key=lambda location: len(context & known.content[location.passage, location.sentence]))


def _check_name(value: Value, name: Name, context: set[str], known: _Passages) -> CheckedValue:
    location = _find_name(name.words, known)
    if location is None and name.optional and len(name.words) > 1:
        location = _find_name(name.words[1:], known)
        value = value._replace(start=value.start + name.optional)
    if location is not None:
        return CheckedValue(value, "supported", location)
    differing = [other for other, theirs in known.names if _contradicts(name, theirs, context & known.content[other.passage, other.sentence])]
    if differing:
        return CheckedValue(value, "contradicted", _choose(differing, context, known))
    return CheckedValue(value, "absent", None)


def _find_name(words: Sequence[str], known: _Passages) -> Location | None:
    """Where a sentence has all words of a name, or its acronym, or the name of which it is the acronym."""
    places = [_look_up(word, known) for word in words]
    specific = [place for place, word in zip(places, words, strict=True) if word not in _GENERIC]
    places = specific or places  # Yale University is Yale
    if all(places):
        fewest = min(places, key=len)
        for sentence in fewest:
            if all(sentence in place for place in places):
                return places[-1][sentence]
    if len(words) == 1:
        return known.initials.get(words[0])
    acronym = known.words.get("".join(word[0] for word in words if word), {})
    return next(iter(acronym.values()), None)


def _look_up(word: str, known: _Passages) -> dict[SentenceKey, Location]:
    return known.words.get(word) or known.words.get(word.removesuffix("s")) or known.words.get(f"{word}s") or {}


def _contradicts(ours: Name, theirs: Name, shared: set[str]) -> bool:
    """Whether another name has the role of this one: both are nationalities, or follow the same words."""
    if not shared or ours.words == theirs.words:
        return False
    if "nationality" in (ours.type, theirs.type):
        return ours.type == theirs.type and not {*ours.words, *theirs.words} & REGIONS
    return bool(ours.role[0] and ours.role[1]) and ours.role == theirs.role


def _read_passages(split: Sequence[Sequence[Token]], found_values: Sequence[Sequence[Value]]) -> _Passages:
    known = _Passages([], [], {}, {}, {}, any(part and part[0].lower in _PRONOUNS for part in split))
    for passage, (tokens, values) in enumerate(zip(split, found_values, strict=True)):
        for sentence, words in _list_content(tokens, values).items():
            known.content[passage, sentence] = words
        previous = ""
        for token in tokens:
            if not token.text[0].isalnum():
                continue
            word = fold_name(token.text)
            for key in (word, *PHRASES.get((previous, word), ())):
                location = Location(passage, token.start, token.end, token.sentence)
                known.words.setdefault(key, {}).setdefault((passage, token.sentence), location)
            previous = word
        for value in values:
            location = Location(passage, value.start, value.end, value.sentence)
            if isinstance(value.content, Name):
                known.names.append((location, value.content))
                if len(value.content.words) > 1:
                    known.initials.setdefault("".join(word[0] for word in value.content.words if word), location)
            else:
                known.values.append((location, value))
    return known


def _list_content(tokens: Sequence[Token], values: Sequence[Value]) -> dict[int, set[str]]:
    """Stems of the content words of each sentence, without its numbers and dates."""
    content: dict[int, set[str]] = defaultdict(set)
    at = 0
    amounts = [value for value in values if value.kind != "name"]
    for token in tokens:
        while at < len(amounts) and amounts[at].end <= token.start:
            at += 1
        words = content[token.sentence]
        if at < len(amounts) and amounts[at].start <= token.start:
            continue
        if token.text[0].isalpha() and len(token.text) > 2 and token.lower not in FUNCTION_WORDS:
            words.add(stem(COUNTRY_OF.get(token.lower, token.lower)))
    return content
