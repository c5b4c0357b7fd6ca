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
from itertools import islice
from typing import NamedTuple

from ..text.normalization import FUNCTION_WORDS
from .comparing import compare, normalize
from .knowledge import find_values
from .names import split_by_case
from .numbers import stem
from .quotes import find_quotations
from .records import Clock, Date, Measure, Name, Quotation, Value
from .tokens import NEGATIONS, Token, read_table, text_at, tokenize
from .units import UNITS

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
_GROUPS = (
    "start starts started begin begins began beginning open opens opened opening commence commences kick kicks "
    "from starting",
    "end ends ended close closes closed closing finish finishes finished shut shuts until till ending stop stops last "
    "final",
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
    "produce produces produced producer producing production",
    "sign signs signed signing",
    "effect force effective",
    "adult adults grown-up grown-ups",
    "child children kid kids",
    "single alone yourself",
    "member members",
    "non-member non-members",
    "deposit security refunded refund refunds",
    "month monthly",
    "year annual yearly annually",
    "day daily",
    "hour hourly",
    "week weekly",
    "tenant tenants",
    "landlord landlords landlady",
    "return returns returned returning back",
    "order orders",
    "collect collects collection collections pick-up pickup pick picked",
    "drop-off dropoff",
    "winter", "summer", "old older used former formerly previous", "new newer current currently now today",
    "first", "second", "third", "ground", "basement",
    "weekend weekends saturday sunday", "weekday weekdays",
    "battery batteries", "screen display",
)  # fmt: skip
_KEY = {word: f"={number}" for number, words in enumerate(_GROUPS) for word in words.split()}
"""The group of each word."""
_PHRASAL = {
    "off": {"take takes took taking set sets setting": "departure", "drop drops dropped dropping": "drop-off"},
    "out": {"set sets setting": "departure", "move moves moving": "check-out"},
    "in": {"move moves moving": "check-in"},
    "into": {"pull pulls pulled pulling": "arrival"},
    "down": {"touch touches touched touching": "arrival"},
    "back": {"hand hands handed bring brings brought give gives": "drop-off"},
}
"""Forms of verbs by the particle after them, and a word of the group that they belong to."""
_VERBS = {
    (verb, particle): _KEY[word]
    for particle, groups in _PHRASAL.items()
    for verbs, word in groups.items()
    for verb in verbs.split()
}
_UNITS = {UNITS[word].factor: _KEY[word] for word in ("day", "week", "month", "year", "hour")}
"""The group of one unit of time: a pass for one month is the monthly pass."""
_ASIDE = frozenset(read_table("after before than unlike except besides instead"))
"""Words that are followed by something else than what the clause is about: "half an hour after the doors open"."""
_NO_HEADS = FUNCTION_WORDS - frozenset(read_table("until from off non")) | frozenset(
    read_table("""
    costs cost costing price priced pay pays paid charge charged charges euro euros dollar dollars pound pounds get gets
    takes take go goes come comes said says say per want would like tell know need needs called yes sure
    """)
)
_SPLIT = re.compile(r"^(?:[.!?;,:\n]|and|but|while|whereas|so|then|or)$")
_COMPARING = frozenset(map(stem, read_table("twice double half thickness than")))
_DAYS = frozenset(read_table("monday tuesday wednesday thursday friday saturday sunday"))
_PRONOUNS = frozenset(read_table("he she it they his her its their him them"))
_COUNT = re.compile(r"#[\d.]+")
_COMPOUND = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+")


class Exchanged(NamedTuple):
    """A value of a response that belongs to something else in the knowledge, and what the knowledge has there."""

    start: int
    end: int
    passage: int
    known_start: int
    known_end: int


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

    @property
    def amounts(self) -> bool:
        """Whether it has values other than names."""
        return any(not isinstance(value.content, Name) for value in self.values)


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
        (index, segment) for index, text in enumerate(passages) for segment in _name_pronouns(read_segments(text))
    ]
    held = [(value, index, segment) for index, segment in known_values for value in segment.values]
    if not 1 < len(held) <= MAX_VALUES:
        return []
    segments = read_segments(response)
    turns = [read_segments(text) for text in reversed(history[-TURNS:])]
    asked = [_join_words(turn) for turn in turns]
    meant = next((names for turn in turns if (names := _join_names(turn))), frozenset())
    exchanges: list[Exchanged] = []
    for index, segment in enumerate(segments):
        inside = [other for other in segments if other.sentence == segment.sentence]
        plain = _join_words(other for other in inside if not other.values)
        named = _join_words(other for other in inside if not other.amounts)
        before = [
            _join_words(other for other in segments if other.sentence == segment.sentence - 1 and not other.amounts)
        ]
        words = segment.words | (meant if segment.pronoun and segment.sentence == 0 else frozenset())
        added = _join_words(segments[index + 1 : index + 2]) if _explains(segments, index) else frozenset()
        for value in segment.values:
            sentence = plain if isinstance(value.content, Name) else named
            around = [words, sentence, *(before if segment.pronoun else ()), *asked]
            exchanged = _check(value, around, held, segment.carried, added)
            if exchanged is not None:
                exchanges.append(exchanged)
    return exchanges


def _name_pronouns(segments: Iterable[ReadClause]) -> Iterator[ReadClause]:
    """The clauses of a passage; one with a pronoun has the names of the clause before it, too."""
    names: frozenset[str] = frozenset()
    for segment in segments:
        its_names = frozenset[str]().union(
            *(list_own_words(value) for value in segment.values if isinstance(value.content, Name))
        )
        yield segment._replace(words=segment.words | names) if segment.pronoun else segment
        names = its_names or names


def _join_words(segments: Iterable[ReadClause]) -> frozenset[str]:
    return frozenset().union(*(segment.words for segment in segments))


def _join_names(segments: Iterable[ReadClause]) -> frozenset[str]:
    """The words of the names in some clauses."""
    values = [value for segment in segments for value in segment.values if isinstance(value.content, Name)]
    return frozenset().union(*map(list_own_words, values))


def _explains(segments: Sequence[ReadClause], index: int) -> bool:
    """Whether the clause after one only says more of it, and has no value of its own."""
    following = segments[index + 1] if index + 1 < len(segments) else None
    return (
        following is not None
        and following.subordinate
        and not following.values
        and following.sentence == segments[index].sentence
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
        if not around[0].isdisjoint(_COMPARING) or len(held) > FEW_VALUES:
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


def _leave_own(value: Value, segment: ReadClause) -> frozenset[str]:
    return segment.words - list_own_words(value)


def list_own_words(value: Value) -> frozenset[str]:
    """The words that a value adds to its clause."""
    content = value.content
    if isinstance(content, Quotation):
        return frozenset()
    if isinstance(content, Name):
        return frozenset(map(stem, content.words))
    unit = _UNITS.get(content.amount) if isinstance(content, Measure) and content.measure == "duration" else None
    if isinstance(content, Measure) and content.measure == "count":
        return frozenset({f"#{content.amount:g}"})  # whatever both texts call what is counted
    return frozenset({f"#{normalize(content)}"} | ({unit} if unit else set()))


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
    segments = [
        (segment, index, value)
        for index, text in enumerate(passages)
        for segment in read_segments(text)
        for value in segment.values
        if is_rival(mine[0], value) and (index, value.start) != (passage, known_values[0].start)
    ]
    others = [
        segment.words for segment, _, value in segments if compare(known_values[0].content, value.content) != "supports"
    ]
    if not others:
        sentence = (
            part.words for part in read_segments(passages[passage]) if part.sentence == known_values[1].sentence
        )
        return not mine[1].words.isdisjoint(frozenset().union(*sentence))
    shared = mine[1].words & known_values[1].words
    return bool(shared) and all(len(shared) > len(mine[1].words & words) for words in others)


def _find(text: str, start: int, end: int) -> Iterator[tuple[Value, ReadClause]]:
    for segment in read_segments(text):
        for value in segment.values:
            if value.start < end and start < value.end:
                yield value, segment


def is_rival(ours: Value, theirs: Value) -> bool:
    """Whether two values are of one kind, so that one could stand where the other does."""
    mine, other = ours.content, theirs.content
    if isinstance(mine, Measure) and isinstance(other, Measure):
        if "count" in (mine.measure, other.measure):
            return mine.measure == other.measure and bool(mine.nouns & other.nouns)
        return compare(mine, other) is not None
    if isinstance(mine, Name) or isinstance(other, Name):
        return isinstance(mine, Name) and isinstance(other, Name)
    return type(mine) is type(other)


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


def read_segments(text: str) -> list[ReadClause]:
    """The clauses of a text. What is before a colon belongs to all that follows it in the sentence."""
    tokens = tokenize(text)
    quotations = find_quotations(text, tokens)
    values = [value for value in find_values(tokens, *split_by_case(tokens)) if _counts(value)]
    values = [
        item for item in values if not any(part.start < item.end and item.start < part.end for part in quotations)
    ]
    values = sorted([*values, *quotations], key=lambda value: value.start)
    compounds = {match.start(): match for match in _COMPOUND.finditer(text)}
    segments: list[ReadClause] = []
    compared: set[int] = set()
    words: set[str] = set()
    label: set[str] = set()
    named: set[str] = set()
    inside: list[Value] = []
    carried: frozenset[str] = frozenset()
    pronoun = subordinate = skipped = False
    aside = ""
    position = covered = sentence = 0

    def finish() -> None:
        nonlocal words, inside, pronoun, carried, subordinate, aside, skipped
        for value in inside:
            if value.start not in compared:
                words |= list_own_words(value)
        if _has_clause(segments, sentence) and not any(word.startswith("=") for word in words):
            words |= {word for word in segments[-1].words if word.startswith("=")}  # "…, the bar at 01:00"
        segments.append(
            ReadClause(frozenset(words | label | carried), tuple(inside), sentence, pronoun, carried, subordinate)
        )
        words, inside, pronoun, carried = set(), [], False, frozenset()
        subordinate, skipped, aside = False, False, ""

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
                inside.append(values[position])
                if _may_be_subject(values[position]) and not _has_clause(segments, sentence):
                    named |= list_own_words(values[position])
            continue
        if token.start < covered:
            continue
        if _SPLIT.match(token.lower) or (skipped and token.lower in FUNCTION_WORDS):
            aside, skipped = "", False
        if token.text == ":" and not _has_clause(segments, sentence):
            label = words.union(*map(list_own_words, inside))
            continue
        if token.start in compounds:
            covered = compounds[token.start].end()
            word = compounds[token.start][0].lower()
            words.add(_KEY.get(word, stem(word)))
            continue
        if _SPLIT.match(token.lower) and inside and _goes_on(tokens, values, index + 1):
            finish()
            after = text_at(tokens, index + 1)
            subordinate = token.lower == "," and not _SPLIT.match(after)
            if (
                token.lower in ("and", "but")
                and after not in ("the", "a", "an", "his", "her", "its", "their")
                and not (index + 1 < len(tokens) and tokens[index + 1].text[0].isupper())
            ):
                carried = frozenset(named)  # "X was born in … and died in …"
            continue
        if token.lower in _ASIDE or token.lower in NEGATIONS:
            aside = token.lower
            continue
        pronoun |= token.lower in _PRONOUNS
        if (
            not named
            and token.lower[0].isalpha()
            and token.lower not in _NO_HEADS
            and not _has_clause(segments, sentence)
        ):
            named.add(_KEY.get(token.lower, stem(token.lower)))
        if aside in _ASIDE:
            skipped |= token.lower not in FUNCTION_WORDS
            words |= {stem(token.lower)} & _COMPARING  # "more than twice as long as the Rhine"
            continue
        if aside and token.lower not in _NO_HEADS:
            words.add(_KEY.get(f"non-{token.lower}", f"non-{stem(token.lower)}"))
            continue
        particle = index + 1 + (text_at(tokens, index + 1) in _PRONOUNS)
        phrasal = _VERBS.get((token.lower, text_at(tokens, particle)))
        if phrasal is not None:
            words.add(phrasal)
        elif token.lower in _KEY:
            words.add(_KEY[token.lower])
        elif len(token.text) == 1 and token.text.isupper() and token.text != "I" and not token.opens:
            words.add(token.text)  # "group B"
        elif token.lower[0].isalpha() and token.lower not in _NO_HEADS:
            words.add(stem(token.lower))
    if words or inside:
        finish()
    return segments


def _may_be_subject(value: Value) -> bool:
    """Whether a value at the beginning of a sentence says what it is about: a name, or the number of "Train 12"."""
    content = value.content
    return isinstance(content, Name) or (isinstance(content, Measure) and content.measure == "count")


def _has_clause(segments: Sequence[ReadClause], sentence: int) -> bool:
    """Whether a sentence has a clause already."""
    return bool(segments) and segments[-1].sentence == sentence


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
    """Whether a value is distinguished by its heads: not an ordinal, and not a duration in a price per month."""
    content = value.content
    if isinstance(content, Measure):
        return content.measure not in ("rank",)
    if isinstance(content, Name):
        return content.words[0] not in _DAYS
    return isinstance(content, Date | Clock)
