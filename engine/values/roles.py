"""What a value belongs to: the price of which ticket, the hour at which the doors open, the speaker of which words.

A response may state a value that the knowledge has, and give it to something else: "the bar closes at 21:30", where the
kitchen does. Each value of the knowledge is read with the words of its clause that tell it from the other values of its
kind, its heads. A value is exchanged if the response's clause has heads of another value of that kind and none of its
own. Words of starting and ending, opening and closing, leaving and arriving and the like stand for each other within
their group. Where the response's clause has no head, the last question of the history is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ..text.normalization import FUNCTION_WORDS
from .comparing import compare
from .knowledge import find_values
from .names import split_by_case
from .numbers import stem
from .records import Clock, Date, Measure, Name, Value
from .tokens import Token, read_table, text_at, tokenize

MAX_VALUES = 60
"""Values of the knowledge that are told apart, at most; none is in longer knowledge."""
_GROUPS = (
    "start starts started begin begins began beginning open opens opened opening commence commences kick kicks start: "
    "from starting",
    "end ends ended close closes closed closing finish finishes finished shut shuts until till ending stop stops last",
    "depart departs departed departure leave leaves left take-off sets off departing",
    "arrive arrives arrived arrival land lands landed reach reaches arriving pulls gets terminates",
    "check-in checkin move moving",
    "check-out checkout",
    "born birth birthplace birthday",
    "die dies died death dead passed",
    "found founds founded founder founders founding",
    "manage manages managed manager managing run runs running head heads headed leads led charge",
    "write writes wrote written writer author authored",
    "translate translates translated translator translation english",
    "compose composes composed composer composition music",
    "design designs designed designer plans drawn architect",
    "direct directs directed director",
    "produce produces produced producer",
    "sign signs signed signing",
    "effect force effective",
    "adult adults grown-up grown-ups",
    "child children kid kids",
    "single alone yourself",
    "member members",
    "non-member non-members",
    "deposit security refunded refund",
    "month monthly",
    "year annual yearly annually",
    "day daily",
    "hour hourly",
    "week weekly",
    "tenant tenants",
    "landlord landlords landlady",
    "return returns returned returning",
    "order orders",
    "collect collects collection collections pick-up pickup pick picked",
    "drop-off dropoff",
    "winter", "summer", "old older used former formerly previous", "new newer current currently now today",
    "first", "second", "third", "ground", "basement",
    "weekend weekends saturday sunday", "weekday weekdays",
    "battery batteries", "screen display",
)  # fmt: skip
_KEY = {word.strip(":"): f"={number}" for number, words in enumerate(_GROUPS) for word in words.split()}
"""The group of each word."""
_NO_HEADS = FUNCTION_WORDS - frozenset(read_table("until from off non")) | frozenset(
    read_table("""
    costs cost costing price priced pay pays paid charge charged charges euro euros dollar dollars pound pounds get gets
    takes take go goes come comes said says say per want would like tell know need needs called yes sure
    """)
)
_SPLIT = re.compile(r"^(?:[.!?;,:\n]|and|but|while|whereas|so|then|or)$")
_PRONOUNS = frozenset(read_table("he she it they his her its their him them"))
_COMPOUND = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+")


class Exchanged(NamedTuple):
    """A value of a response that belongs to something else in the knowledge, and what the knowledge has there."""

    start: int
    end: int
    passage: int
    known_start: int
    known_end: int


class _Segment(NamedTuple):
    """A clause: its words without those of values, and its values."""

    words: frozenset[str]
    values: tuple[Value, ...]
    sentence: int
    pronoun: bool


def find_exchanged(response: str, passages: Sequence[str], history: Sequence[str] = ()) -> list[Exchanged]:
    """The values of ``response`` that the knowledge has, but of something else; none where that is not clear.

    >>> known = ["Doors open at 18:30; the show begins at 20:00.", "The bar closes at 01:00, the kitchen at 21:30."]
    >>> [(item.start, item.end) for item in find_exchanged("The kitchen is open until 01:00.", known)]
    [(26, 31)]
    >>> find_exchanged("The show is at 8 pm.", known)
    []
    """
    known = [(index, segment) for index, text in enumerate(passages) for segment in _read(text)]
    held = [(value, index, segment) for index, segment in known for value in segment.values]
    if not 1 < len(held) <= MAX_VALUES:
        return []
    question = frozenset().union(*(segment.words for text in history[-1:] for segment in _read(text)))
    found: list[Exchanged] = []
    for segment in _read(response):
        for value in segment.values:
            exchanged = _check(value, segment, held, question)
            if exchanged is not None:
                found.append(exchanged)
    return found


def _check(
    ours: Value, segment: _Segment, held: Sequence[tuple[Value, int, _Segment]], question: frozenset[str]
) -> Exchanged | None:
    rivals = [(value, index, other) for value, index, other in held if _is_rival(ours, value)]
    same = [item for item in rivals if _is_same(ours, item[0])]
    others = [item for item in rivals if not _is_same(ours, item[0])]
    if not same or not others:
        return None
    counts = Counter(word for words in {id(other): other.words for _, _, other in rivals}.values() for word in words)
    size = len({id(other) for _, _, other in rivals})
    told = {word for word, count in counts.items() if count < size}
    if not told:
        return None
    for words in (segment.words, segment.words | question):
        mine = max(len(words & other.words & told) for _, _, other in same)
        theirs = max(others, key=lambda item: len(words & item[2].words & told))
        matched = words & theirs[2].words & told
        if mine:
            return None
        if matched:
            return Exchanged(ours.start, ours.end, theirs[1], theirs[0].start, theirs[0].end)
    return None


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
        Whether the clauses of both share more words than those of any other value of its kind; if there is no other,
        whether the clause shares a word with its sentence. False where one of the values is not read.
    """
    mine = next((item for item in _find(response, *ours)), None)
    known = next((item for item in _find(passages[passage], *theirs)), None)
    if mine is None or known is None or not _is_rival(mine[0], known[0]):
        return False
    segments = [
        (segment, index, value)
        for index, text in enumerate(passages)
        for segment in _read(text)
        for value in segment.values
        if _is_rival(mine[0], value) and (index, value.start) != (passage, known[0].start)
    ]
    others = [segment.words for segment, _, value in segments if compare(known[0].content, value.content) != "supports"]
    if not others:
        sentence = (part.words for part in _read(passages[passage]) if part.sentence == known[1].sentence)
        return not mine[1].words.isdisjoint(frozenset().union(*sentence))
    shared = mine[1].words & known[1].words
    return bool(shared) and all(len(shared) > len(mine[1].words & words) for words in others)


def _find(text: str, start: int, end: int) -> Iterator[tuple[Value, _Segment]]:
    for segment in _read(text):
        for value in segment.values:
            if value.start < end and start < value.end:
                yield value, segment


def _is_rival(ours: Value, theirs: Value) -> bool:
    """Whether two values are of one kind, so that one could stand where the other does."""
    mine, other = ours.content, theirs.content
    if isinstance(mine, Measure) and isinstance(other, Measure):
        if mine.measure == other.measure:
            return mine.measure != "count" or bool(mine.nouns & other.nouns)
        return False
    if isinstance(mine, Name) or isinstance(other, Name):
        return isinstance(mine, Name) and isinstance(other, Name)
    return type(mine) is type(other)


def _is_same(ours: Value, theirs: Value) -> bool:
    mine, other = ours.content, theirs.content
    if isinstance(mine, Name) and isinstance(other, Name):
        return bool({*mine.words} & {*other.words})
    return compare(mine, other) in ("supports", "compatible")


def _read(text: str) -> list[_Segment]:
    """The clauses of a text that have values, or a colon before them ("Haircut: £35")."""
    tokens = tokenize(text)
    values = [value for value in find_values(tokens, *split_by_case(tokens)) if _counts(value)]
    compounds = {match.start(): match for match in _COMPOUND.finditer(text)}
    segments: list[_Segment] = []
    words: set[str] = set()
    inside: list[Value] = []
    pronoun = False
    position = 0
    covered = 0
    sentence = 0

    def finish() -> None:
        nonlocal words, inside, pronoun
        segments.append(_Segment(frozenset(words), tuple(inside), sentence, pronoun))
        words, inside, pronoun = set(), [], False

    for index, token in enumerate(tokens):
        if token.sentence != sentence and (words or inside):
            finish()
        sentence = token.sentence
        while position < len(values) and values[position].end <= token.start:
            position += 1
        if position < len(values) and values[position].start <= token.start < values[position].end:
            if not inside or inside[-1] is not values[position]:
                inside.append(values[position])
            if isinstance(values[position].content, Name):
                words.add(stem(token.lower))
            continue
        if token.start < covered:
            continue
        if token.start in compounds:
            match = compounds[token.start]
            covered = match.end()
            words.add(_KEY.get(match[0].lower(), stem(match[0].lower())))
            continue
        if _SPLIT.match(token.lower) and inside and _goes_on(tokens, values, index + 1):
            finish()
            continue
        pronoun |= token.lower in _PRONOUNS
        if token.lower[0].isalpha() and token.lower not in _NO_HEADS:
            words.add(_KEY.get(token.lower, stem(token.lower)))
        elif token.lower in _KEY:
            words.add(_KEY[token.lower])
    if words or inside:
        finish()
    return segments


def _goes_on(tokens: Sequence[Token], values: Iterable[Value], index: int) -> bool:
    """Whether another value follows in the sentence with words of its own: "… and the annual pass CHF 790"."""
    if index >= len(tokens) or (text_at(tokens, index), text_at(tokens, index + 1)) in (
        ("a", "half"),
        ("a", "quarter"),
    ):
        return False
    following = next((value for value in values if value.start >= tokens[index].start), None)
    if following is None or following.sentence != tokens[index].sentence:
        return False
    for token in islice(tokens, index, None):
        if token.sentence != following.sentence or (token.start >= following.end and _SPLIT.match(token.lower)):
            return False
        outside = not following.start <= token.start < following.end
        if outside and ((token.lower.isalpha() and token.lower not in _NO_HEADS) or token.lower in _KEY):
            return True
    return False


def _counts(value: Value) -> bool:
    """Whether a value is told apart by its heads: not an ordinal, and not a duration in a price per month."""
    content = value.content
    if isinstance(content, Measure):
        return content.measure not in ("rank",)
    return isinstance(content, Date | Clock | Name)
