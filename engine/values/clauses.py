"""Reads the clauses of a text: their values, and the words that tell these from other values of their kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from ..text.normalization import FUNCTION_WORDS
from .comparing import normalize
from .knowledge import find_values
from .names import split_by_case
from .numbers import stem
from .quotes import find_quotations
from .records import Clock, Date, Measure, Name, Quotation, Value
from .tokens import NEGATIONS, Token, read_table, text_at, tokenize
from .word_groups import GROUP_OF, GROUP_OF_UNIT, GROUP_OF_VERB

_ASIDE = frozenset(read_table("after before than unlike except besides instead"))
"""Words that are followed by something else than what the clause is about: "half an hour after the doors open"."""
_NO_HEADS = FUNCTION_WORDS - frozenset(read_table("until from off non")) | frozenset(
    read_table("""
    costs cost costing price priced pay pays paid charge charged charges euro euros dollar dollars pound pounds get gets
    takes take go goes come comes said says say per want would like tell know need needs called yes sure
    """)
)
_SPLIT = re.compile(r"^(?:[.!?;,:\n]|and|but|while|whereas|so|then|or)$")
_CONTRASTS = frozenset({";", "\n", "but", "while", "whereas"})
_QUALIFYING = frozenset(read_table("on in at during throughout per if when"))
"""Words that begin a qualifier of all clauses before it; with "for" one mostly belongs to the last clause alone."""
_CHANGING = frozenset(map(stem, read_table("already only just even drops falls rises goes changes increases")))
"""Words before a value that takes the place of another where the qualifier after it holds."""
COMPARING = frozenset(map(stem, read_table("twice double half thickness than")))
_DAYS = frozenset(read_table("monday tuesday wednesday thursday friday saturday sunday"))
_PRONOUNS = frozenset(read_table("he she it they his her its their him them"))
_COMPOUND = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+")


class ReadClause(NamedTuple):
    """A clause: its words, the words of the label before it ("Group B: …"), and its values."""

    words: frozenset[str]
    values: tuple[Value, ...]
    sentence: int
    pronoun: bool
    """Whether it speaks of something that is named before."""
    carried: frozenset[str] = frozenset()
    """Words that it has from the clause before it: "X was born in … and died in …"."""
    subordinate: bool = False
    """Whether a comma alone separates it from the clause before it: "…, as that is the last boat"."""
    joint: str = ""
    """The token between it and the clause before it in its sentence; "and" for ", and", too."""
    qualified: bool = False
    """Whether words follow its values: "… at 5 pm on Sundays"."""

    @property
    def amounts(self) -> bool:
        """Whether it has values other than names."""
        return any(not isinstance(value.content, Name) for value in self.values)


def read_clauses(text: str) -> list[ReadClause]:
    """The clauses of a text.

    A label before a colon belongs to all that follows it in the sentence, and a qualifier at the end of clauses that
    "and" joins to each of them: "We open at 10 am and close at 5 pm on Sundays".
    """
    tokens = tokenize(text)
    quotations = find_quotations(text, tokens)
    values = [value for value in find_values(tokens, *split_by_case(tokens)) if _is_distinguished(value)]
    values = [
        item for item in values if not any(part.start < item.end and item.start < part.end for part in quotations)
    ]
    values = sorted([*values, *quotations], key=lambda value: value.start)
    beginnings = _find_beginnings(tokens, values)
    compounds = {match.start(): match for match in _COMPOUND.finditer(text)}
    clauses: list[ReadClause] = []
    compared: set[int] = set()
    words: set[str] = set()
    label: set[str] = set()
    named: set[str] = set()
    inside: list[Value] = []
    carried: frozenset[str] = frozenset()
    pronoun = subordinate = skipped = False
    before: frozenset[str] = frozenset()
    after: _After | None = None
    aside = joint = ""
    position = covered = sentence = 0

    def finish() -> None:
        nonlocal words, inside, pronoun, carried, subordinate, aside, skipped, before, after, joint
        ending = frozenset[str]() if after is None else after.list_ending(words)
        qualified = after is not None and after.is_more(words)
        for value in inside:
            if value.start not in compared:
                words |= list_own_words(value)
        if _has_clause(clauses, sentence) and not any(word.startswith("=") for word in words):
            words |= {word for word in clauses[-1].words if word.startswith("=")}  # "…, the bar at 01:00"
        clauses.append(
            ReadClause(
                frozenset(words | label | carried),
                tuple(inside),
                sentence,
                pronoun,
                carried,
                subordinate,
                joint,
                qualified,
            )
        )
        if ending:
            _share(clauses, before, ending, [] if after is None else after.values)
        words, inside, pronoun, carried = set(), [], False, frozenset()
        subordinate, skipped, aside, before, after, joint = False, False, "", frozenset(), None, ""

    for index, token in enumerate(tokens):
        if token.sentence != sentence:
            if words or inside:
                finish()
            label, named, sentence = set(), set(), token.sentence
        while position < len(values) and values[position].end <= token.start:
            position += 1
        if position < len(values) and values[position].start <= token.start < values[position].end:
            if aside in _ASIDE and isinstance(values[position].content, Name):
                compared.add(values[position].start)
            aside, skipped = "", False
            if not inside or inside[-1] is not values[position]:
                if after is None:
                    before = frozenset(words)
                if after is None or not after.take(values[position]):
                    after = _After(words)
                inside.append(values[position])
                if _may_be_subject(values[position]) and not _has_clause(clauses, sentence):
                    named |= list_own_words(values[position])
            continue
        if token.start < covered:
            continue
        if _SPLIT.match(token.lower) or (skipped and token.lower in FUNCTION_WORDS):
            aside, skipped = "", False
        if token.text == ":" and not _has_clause(clauses, sentence):
            label = words.union(*map(list_own_words, inside))
            continue
        if token.start in compounds:
            covered = compounds[token.start].end()
            word = compounds[token.start][0].lower()
            words.add(GROUP_OF.get(word, stem(word)))
            continue
        if (
            _SPLIT.match(token.lower)
            and inside
            and _goes_on(tokens, values, index + 1)
            and not _is_divided(tokens, values, index + 1, beginnings, led=after is not None and after.is_more(words))
        ):
            finish()
            following = text_at(tokens, index + 1)
            joint = "and" if following == "and" else token.lower
            subordinate = token.lower == "," and not _SPLIT.match(following)
            if (
                token.lower in ("and", "but")
                and following not in ("the", "a", "an", "his", "her", "its", "their")
                and not (index + 1 < len(tokens) and tokens[index + 1].text[0].isupper())
            ):
                carried = frozenset(named)  # "X was born in … and died in …"
            continue
        if token.lower in _ASIDE or token.lower in NEGATIONS:
            aside = token.lower
            continue
        if after is not None and token.lower in _QUALIFYING:
            after.qualify(words)
        pronoun |= token.lower in _PRONOUNS
        if (
            not named
            and token.lower[0].isalpha()
            and token.lower not in _NO_HEADS
            and not _has_clause(clauses, sentence)
        ):
            named.add(GROUP_OF.get(token.lower, stem(token.lower)))
        if aside in _ASIDE:
            skipped |= token.lower not in FUNCTION_WORDS
            words |= {stem(token.lower)} & COMPARING  # "more than twice as long as the Rhine"
            continue
        if aside and token.lower not in _NO_HEADS:
            words.add(GROUP_OF.get(f"non-{token.lower}", f"non-{stem(token.lower)}"))
            continue
        particle = index + 1 + (text_at(tokens, index + 1) in _PRONOUNS)
        phrasal = GROUP_OF_VERB.get((token.lower, text_at(tokens, particle)))
        if phrasal is not None:
            words.add(phrasal)
        elif token.lower in GROUP_OF:
            words.add(GROUP_OF[token.lower])
        elif len(token.text) == 1 and token.text.isupper() and token.text != "I" and not token.opens:
            words.add(token.text)  # "group B"
        elif token.lower[0].isalpha() and token.lower not in _NO_HEADS:
            words.add(stem(token.lower))
    if words or inside:
        finish()
    return clauses


class _After:
    """What follows the last value of a clause, as far as it is read."""

    def __init__(self, words: Iterable[str]) -> None:
        """``words``: the words of the clause up to the value."""
        self._words = frozenset(words)
        self._unqualified: frozenset[str] | None = None
        self.values: list[Value] = []
        """Values of the qualifier: the month of "5 pm in July"."""

    def qualify(self, words: Iterable[str]) -> None:
        """Begin the qualifier after the ``words`` of the clause so far, if none has begun."""
        if self._unqualified is None:
            self._unqualified = frozenset(words)

    def take(self, value: Value) -> bool:
        """Whether ``value`` belongs to the qualifier."""
        belongs = self._unqualified is not None and isinstance(value.content, Date | Name)
        if belongs:
            self.values.append(value)
        return belongs

    def list_ending(self, words: Set[str]) -> frozenset[str]:
        """The words of the qualifier, of the ``words`` of the clause."""
        of_values = frozenset[str]().union(*map(list_own_words, self.values))
        return of_values if self._unqualified is None else of_values | (words - self._unqualified)

    def is_more(self, words: Set[str]) -> bool:
        """Whether anything follows the value."""
        return bool(self.values or words - self._words)


def _share(clauses: list[ReadClause], before: Set[str], ending: Set[str], values: Sequence[Value]) -> None:
    """Give the ``ending`` of the last clause to the clauses before it that "and" joins to it.

    A clause keeps its own qualifier, and its own value of the kind of a value in the ending. Nor is anything given if
    the last clause says that a value changes, or its words ``before`` the value are in the other clause too: "It
    opens at 10 and opens at 12 on Sundays".
    """
    last = clauses[-1]
    kinds = {type(value.content) for value in values}
    joint = "and" if last.joint == "and" and before.isdisjoint(_CHANGING) else ""
    for position in range(len(clauses) - 2, -1, -1):
        clause = clauses[position]
        if joint not in ("and", ",") or clause.sentence != last.sentence or clause.qualified:
            return
        if before <= clause.words or kinds & {type(value.content) for value in clause.values}:
            return
        clauses[position] = clause._replace(words=clause.words | ending, qualified=True)
        joint = clause.joint


def list_own_words(value: Value) -> frozenset[str]:
    """The words that a value adds to its clause."""
    content = value.content
    if isinstance(content, Quotation):
        return frozenset()
    if isinstance(content, Name):
        return frozenset(map(stem, content.words))
    unit = GROUP_OF_UNIT.get(content.amount) if isinstance(content, Measure) and content.measure == "duration" else None
    if isinstance(content, Measure) and content.measure == "count":
        return frozenset({f"#{content.amount:g}"})  # whatever both texts call what is counted
    return frozenset({f"#{normalize(content)}"} | ({unit} if unit else set()))


def join_words(clauses: Iterable[ReadClause]) -> frozenset[str]:
    """The words of some clauses together."""
    return frozenset().union(*(clause.words for clause in clauses))


def _may_be_subject(value: Value) -> bool:
    """Whether a value at the beginning of a sentence says what it is about: a name, or the number of "Train 12"."""
    content = value.content
    return isinstance(content, Name) or (isinstance(content, Measure) and content.measure == "count")


def _has_clause(clauses: Sequence[ReadClause], sentence: int) -> bool:
    """Whether a sentence has a clause already."""
    return bool(clauses) and clauses[-1].sentence == sentence


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
        if outside and ((token.lower.isalpha() and token.lower not in _NO_HEADS) or token.lower in GROUP_OF):
            return True
    return False


def _is_divided(
    tokens: Sequence[Token],
    values: Iterable[Value],
    index: int,
    beginnings: Mapping[int, tuple[int, int]],
    *,
    led: bool,
) -> bool:
    """Whether the clause of the next value begins later in its sentence: "£9 for one and another; a third costs £3".

    ``led``: whether words follow the value of the clause before it; then the next value may begin its clause, too: "£9
    for one and another, £3 for a third".
    """
    following = next((value for value in values if value.start >= tokens[index].start), None)
    if following is None:
        return False
    first, begins = beginnings[following.start]
    if led and first > index + 1 and text_at(tokens, first - 1) in (",", "and"):
        begins = first
    return begins > index and _goes_on(tokens, values, begins)


def _find_beginnings(tokens: Sequence[Token], values: Sequence[Value]) -> dict[int, tuple[int, int]]:
    """The first token of each value, and the token after the last contrast or semicolon before it in its sentence.

    The key is where the value starts; the second token is 0 where the sentence has no contrast.
    """
    beginnings: dict[int, tuple[int, int]] = {}
    begins = position = 0
    for index, token in enumerate(tokens):
        if index and tokens[index - 1].sentence != token.sentence:
            begins = 0
        while position < len(values) and values[position].start < token.end:
            beginnings[values[position].start] = index, begins
            position += 1
        if token.lower in _CONTRASTS:
            begins = index + 1
    return beginnings


def _is_distinguished(value: Value) -> bool:
    """Whether a value is distinguished by its heads: not an ordinal, a code or a day of the week."""
    content = value.content
    if isinstance(content, Measure):
        return content.measure != "rank"
    if isinstance(content, Name):
        return content.words[0] not in _DAYS
    return isinstance(content, Date | Clock)
