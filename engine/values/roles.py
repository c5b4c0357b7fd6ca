"""Finds what a value belongs to: the ticket of a price, the doors of an opening hour, the speaker of some words.

A response may state a value that the knowledge has, and give it to something else: "the bar closes at 21:30", where the
kitchen does. Each value of the knowledge is read with the words of its clause that tell it from the other values of its
kind, its heads. A value is exchanged if the response's clause has heads of another value of that kind: all that it has
of this one, and more. In knowledge of more than a few values one head must be of no other clause, the value may have a
few rivals only, and the response's clause no other amount: else as many right values as wrong ones were taken for
exchanged. Words of starting and ending, leaving and arriving and the like stand for each other within their
group. Where the clause has no head, the sentence before a pronoun and the last turns of the history are read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .clauses import COMPARING, ReadClause, join_words, list_own_words, read_clauses
from .comparing import compare
from .records import Date, Measure, Name, Value
from .relations import is_rival

TURNS = 3
"""Turns of the history, latest first, in which a clause without heads of its own finds them."""
MAX_PARALLEL = 5
"""Names of the knowledge that are distinguished, at most."""
SHORT = 5
"""Words of clauses, at most, that need no word in common to be like rows of a list."""
LONG = 8
"""Words of clauses with a word in common, at most, that are like rows of a list."""
MAX_CHARS = 8_000
"""Characters of response and knowledge, at most, that are read: a few milliseconds."""
MAX_VALUES = 60
"""Values of the knowledge that are distinguished, at most; none is in longer knowledge."""
FEW_VALUES = 8
"""Values of the knowledge, at most, in which one word in common suffices."""
FEW_RIVALS = 5
"""Values of a kind, at most, that are distinguished in longer knowledge by one word that no other clause has; more
are by ``MATCHED`` such words of the value's own clause."""
FEW_WORDS, MATCHED = 3, 2
"""Words of the other value's clause, at most, where one in common suffices in longer knowledge; else so many must be
shared: of one in a longer clause, about as many exchanges were right answers as wrong ones."""
_COUNT = re.compile(r"#[\d.]+")


class Exchanged(NamedTuple):
    """A value of a response that belongs to something else in the knowledge, and what the knowledge has there."""

    start: int
    end: int
    passage: int
    known_start: int
    known_end: int


def find_exchanged(response: str, passages: Sequence[str], history: Sequence[str] = ()) -> list[Exchanged]:
    """The values of ``response`` that the knowledge has, but of something else; none where that is not clear.

    Args:
        response: The text whose values are looked at.
        passages: The knowledge; of more than ``MAX_CHARS`` characters or ``MAX_VALUES`` values none is read.
        history: The utterances before the response, oldest first.

    Returns:
        The exchanged values, in the order of the response.

    >>> hours = ["Doors open at 18:30; the show begins at 20:00.", "The bar closes at 01:00, the kitchen at 21:30."]
    >>> [(item.start, item.end) for item in find_exchanged("The kitchen is open until 01:00.", hours)]
    [(26, 31)]
    >>> find_exchanged("The show is at 8 pm.", hours)
    []
    """
    if len(response) + sum(map(len, passages)) > MAX_CHARS:
        return []
    known_values = [
        (index, clause) for index, text in enumerate(passages) for clause in _name_pronouns(read_clauses(text))
    ]
    held = [(value, index, clause) for index, clause in known_values for value in clause.values]
    if not 1 < len(held) <= MAX_VALUES:
        return []
    clauses = read_clauses(response)
    turns = [read_clauses(text) for text in reversed(history[-TURNS:])]
    asked = [join_words(turn) for turn in turns]
    meant = next((names for turn in turns if (names := _join_names(turn))), frozenset())
    exchanges: list[Exchanged] = []
    for index, clause in enumerate(clauses):
        inside = [other for other in clauses if other.sentence == clause.sentence]
        plain = join_words(other for other in inside if not other.values)
        named = join_words(other for other in inside if not other.amounts)
        before = [join_words(other for other in clauses if other.sentence == clause.sentence - 1 and not other.amounts)]
        words = clause.words | (meant if clause.pronoun and clause.sentence == 0 else frozenset())
        added = join_words(clauses[index + 1 : index + 2]) if _explains(clauses, index) else frozenset()
        for value in clause.values:
            sentence = plain if isinstance(value.content, Name) else named
            around = [words, sentence, *(before if clause.pronoun else ()), *asked]
            exchanged = _check(value, around, held, clause.carried, added)
            if exchanged is not None:
                exchanges.append(exchanged)
    return exchanges


def _name_pronouns(clauses: Iterable[ReadClause]) -> Iterator[ReadClause]:
    """The clauses of a passage; one with a pronoun has the names of the clause before it, too."""
    names: frozenset[str] = frozenset()
    for clause in clauses:
        its_names = _join_names([clause])
        yield clause._replace(words=clause.words | names) if clause.pronoun else clause
        names = its_names or names


def _join_names(clauses: Iterable[ReadClause]) -> frozenset[str]:
    """The words of the names in some clauses."""
    values = [value for clause in clauses for value in clause.values if isinstance(value.content, Name)]
    return frozenset().union(*map(list_own_words, values))


def _explains(clauses: Sequence[ReadClause], index: int) -> bool:
    """Whether the clause after one only says more of it, and has no value of its own."""
    following = clauses[index + 1] if index + 1 < len(clauses) else None
    return (
        following is not None
        and following.subordinate
        and not following.values
        and following.sentence == clauses[index].sentence
    )


def _check(
    ours: Value,
    around: Sequence[frozenset[str]],
    held: Sequence[tuple[Value, int, ReadClause]],
    carried: frozenset[str],
    added: frozenset[str],
) -> Exchanged | None:
    """What ``ours`` is exchanged with, if it is.

    ``around`` are the words of the clause, then of ever more of what is before it; ``carried`` are words of the clause
    that do not suffice by themselves, ``added`` are words after it that may tell that the value is right.
    """
    rivals = [(value, index, _leave_own(value, other)) for value, index, other in held if is_rival(ours, value)]
    same = [item for item in rivals if _is_same(ours, item[0])]
    others = [item for item in rivals if not _is_same(ours, item[0])]
    if isinstance(ours.content, Name):
        if not around[0].isdisjoint(COMPARING) or len(held) > FEW_VALUES:
            return None
        others = [item for item in others if same and _may_be_exchanged(same[0][0], item[0])]
        rivals = [*same, *others]
    if not same or not others or any(_end_alike(ours, value) for value, _, _ in same):
        return None
    if isinstance(ours.content, Name) and not _are_parallel(rivals):
        return None
    contexts = {words for _, _, words in rivals}
    counts = Counter(word for words in contexts for word in words)
    telling = {word for word, count in counts.items() if count < len(contexts)}
    own_words = list_own_words(ours) | _list_ends(ours)
    if any(_COUNT.fullmatch(word) and word not in counts for word in around[0] - own_words):
        return None  # another number of the clause is of neither
    read: frozenset[str] = frozenset()
    for words in around:
        read |= words
        heads = (read - own_words) & telling
        mine = [heads & words for _, _, words in same]
        theirs = max(others, key=lambda item: len(heads & item[2]))
        matched = heads & theirs[2]
        sure = len(held) <= FEW_VALUES or (
            (len(matched) >= MATCHED or len(theirs[2]) <= FEW_WORDS)
            and (len(rivals) <= FEW_RIVALS or sum(counts[word] == 1 for word in matched & around[0]) >= MATCHED)
            and any(counts[word] == 1 for word in matched)
            and not any(word.startswith("#") for word in read - own_words)
        )
        if sure and matched - carried and all(words < matched for words in mine):
            seen = (heads | added) & telling
            right = any(not seen & words <= seen & theirs[2] for _, _, words in same)
            return None if right else Exchanged(ours.start, ours.end, theirs[1], theirs[0].start, theirs[0].end)
        if any(mine) or matched:
            return None
    return None


def _end_alike(ours: Value, theirs: Value) -> bool:
    """Whether two dates are the same end of the same period: "from November until March"."""
    mine, other = ours.content, theirs.content
    return isinstance(mine, Date) and isinstance(other, Date) and mine.days is not None and mine == other


def _may_be_exchanged(left: Value, right: Value) -> bool:
    """Whether two names of the knowledge follow a preposition both or neither, and have no word in common."""
    first, second = left.content, right.content
    assert isinstance(first, Name)
    assert isinstance(second, Name)
    types = {first.type, second.type} - {"name"}
    if "nationality" in types and first.type != second.type:
        return False
    return bool(first.role[0]) == bool(second.role[0]) and len(types) < 2 and not {*first.words} & {*second.words}


def _are_parallel(rivals: Sequence[tuple[Value, int, frozenset[str]]]) -> bool:
    """Whether names are distinguished like the rows of a list: few, in clauses of their own, of like words."""
    clauses = list(dict.fromkeys(words for _, _, words in rivals))
    if not 1 < len(clauses) == len(rivals) <= MAX_PARALLEL or not all(clauses):
        return False
    return max(map(len, clauses)) <= (LONG if frozenset.intersection(*clauses) else SHORT)


def _leave_own(value: Value, clause: ReadClause) -> frozenset[str]:
    return clause.words - list_own_words(value)


def belongs(
    response: str, ours: tuple[int, int], passages: Sequence[str], passage: int, theirs: tuple[int, int]
) -> bool:
    """Whether a value of the knowledge is what the clause of a value of ``response`` is about.

    Args:
        response: The text that states another value.
        ours: The characters of that value.
        passages: The knowledge.
        passage: The number of the passage.
        theirs: The characters of the value there.

    Returns:
        Whether the clauses of both share more words than any other value of its kind has; if it is alone,
        whether the clause shares a word with its sentence. False where one of the values is not read.
    """
    mine = next((item for item in _find(response, *ours)), None)
    known_values = next((item for item in _find(passages[passage], *theirs)), None)
    if mine is None or known_values is None or not is_rival(mine[0], known_values[0]):
        return False
    clauses = [
        (clause, index, value)
        for index, text in enumerate(passages)
        for clause in read_clauses(text)
        for value in clause.values
        if is_rival(mine[0], value) and (index, value.start) != (passage, known_values[0].start)
    ]
    others = [
        clause.words for clause, _, value in clauses if compare(known_values[0].content, value.content) != "supports"
    ]
    if not others:
        sentence = (part.words for part in read_clauses(passages[passage]) if part.sentence == known_values[1].sentence)
        return not mine[1].words.isdisjoint(frozenset().union(*sentence))
    shared = mine[1].words & known_values[1].words
    return bool(shared) and all(len(shared) > len(mine[1].words & words) for words in others)


def _find(text: str, start: int, end: int) -> Iterator[tuple[Value, ReadClause]]:
    for clause in read_clauses(text):
        for value in clause.values:
            if value.start < end and start < value.end:
                yield value, clause


def _list_ends(value: Value) -> frozenset[str]:
    """Both ends of the range that a count is an end of, as words of its clause."""
    content = value.content
    span = content.span if isinstance(content, Measure) and content.measure == "count" else None
    return frozenset(f"#{amount:g}" for amount in span or ())


def _is_same(ours: Value, theirs: Value) -> bool:
    mine, other = ours.content, theirs.content
    if isinstance(mine, Name) and isinstance(other, Name):
        return bool({*mine.words} & {*other.words})
    if isinstance(mine, Measure) and isinstance(other, Measure) and mine.span and not other.span:
        return compare(mine, other) == "supports"  # "3 to 5 days" is not "up to 10 days"
    return compare(mine, other) in ("supports", "compatible")
