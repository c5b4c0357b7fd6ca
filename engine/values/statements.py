"""Statements with two sides, "Deep Blue beat Kasparov": the same two names the other way round contradict them.

People beat and outsell each other in turn, so a statement is contradicted only where both texts are about one event as
far as words can tell: all that the response's sentence says, the knowledge's sentence says too, it names both once, and
no other sentence of the knowledge names both. Only verbs and comparisons whose order matters are read, and only where
nothing but the verb, its helpers and a noun is between the names. All else is not read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..text.normalization import FUNCTION_WORDS
from .names import fold_name
from .numbers import stem
from .records import Name, Statement, Value
from .tokens import Token, read_table, text_at

_REGULAR = read_table("""
    acquire adopt annex appoint arrest assassinate capture coach colonise colonize conquer create defeat design direct
    employ found govern hire influence invent kill mentor murder outperform outscore outsell overtake paint parent
    precede produce purchase replace rescue rule save shoot succeed surpass train
""")
_IRREGULAR = {
    "beat": ("beat", "beats", "beaten"),
    "bite": ("bite", "bites", "bit", "bitten"),
    "build": ("build", "builds", "built"),
    "buy": ("buy", "buys", "bought"),
    "lead": ("lead", "leads", "led"),
    "outsell": ("outsold",),
    "overtake": ("overtook", "overtaken"),
    "overthrow": ("overthrow", "overthrows", "overthrew", "overthrown"),
    "shoot": ("shot",),
    "write": ("write", "writes", "wrote", "written"),
}
_VERBS: dict[str, str] = {}
"""The verb of each of its forms."""
for _verb in _REGULAR:
    _past = f"{_verb.removesuffix('e')}ed"
    _VERBS |= dict.fromkeys((_verb, f"{_verb}{'es' if _verb.endswith('ch') else 's'}", _past), _verb)
for _verb, _forms in _IRREGULAR.items():
    _VERBS |= dict.fromkeys(_forms, _verb)
_VERBS |= dict.fromkeys(("lose", "loses", "lost"), "lose")
_OPPOSITES = dict(
    pair.split("/")
    for pair in read_table("""
    younger/older smaller/larger shorter/taller lower/higher slower/faster weaker/stronger lighter/heavier
    poorer/richer narrower/wider colder/warmer
""")
)
"""Comparisons, each with the one by which it is read with the sides exchanged."""
_SYNONYMS = {"bigger": "larger"}
_NO_COMPARISON = frozenset(read_table("other rather whether either neither together after ever never over under"))
_BE = frozenset(read_table("is are was were be been being got gets"))
_HAVE = frozenset(read_table("has have had did does do"))
_HELPERS = _BE | _HAVE | frozenset(read_table("also the a an much far even"))
_DETERMINERS = frozenset(read_table("the a an his her its their"))
_BEFORE = frozenset(read_table("of in by with for from at to and or against near plus than if whether not n't & / -"))
"""A name after one of these is not what the statement is about: "the brother of Kasparov"."""
_GOVERNING = frozenset(read_table("of with for against by who which whose plus near whether if when while"))
"""Nor is a name with one of these a few words before it: "a student of the great Kasparov"."""
_REACH = 4
_DENYING = (
    "nobody none "  # terms: literal
    "not never no nor neither nearly almost if would could might may should will can't cannot hardly barely tried "
    "wanted hoped failed say says said think thinks thought believe believes claim claims claimed allegedly "
    "supposedly myth misconception false falsely wrong untrue versa mutual mutually reverse conversely each ?"
)
_AGAINST = frozenset(_DENYING.split())
"""A sentence with one of these states less than its words, or the opposite, or both orders ("each other")."""
_IGNORED = (FUNCTION_WORDS | frozenset(read_table("really actually indeed so wow hey ok fact"))) - frozenset(
    read_table("""
    now then once again before after ever still while if because when where how why what who whom whose which but or
    nor only most about off over under until during since both against one
""")
)
"""Words that say neither when, where nor in which event something was so."""
_CONTESTS = frozenset(
    read_table("a the his her their this that match game final race fight battle war series election bout in")
)
"""What may be between "lost" and "to"; to lose anything else to someone is not to be beaten."""
MAX_TOKENS = 100
"""Tokens of a sentence that is read, at most."""
_BETWEEN = 9
"""Tokens between the two names, at most."""
_NOUNS = 3
"""Words between the verb and the second name, without helpers, at most: "the world champion"."""


class Mention(NamedTuple):
    """A name in a text: ``tokens[first:end]``."""

    words: tuple[str, ...]
    first: int
    end: int


class ReadStatement(NamedTuple):
    """A statement and where it is: characters ``start`` to ``end``."""

    statement: Statement
    start: int
    end: int
    sentence: int
    words: frozenset[str]
    """All words of its sentence, as they are compared."""
    qualifiers: frozenset[str]
    """Those that are neither names nor the verb and say when, where or in which event it was so."""
    is_single: bool
    """Whether the sentence names both once."""


def may_state(tokens: Sequence[Token]) -> bool:
    """Whether a text has a word that a statement is made with."""
    return any(token.lower in _VERBS or token.lower == "than" for token in tokens)


def list_mentions(tokens: Sequence[Token], names: Sequence[Value]) -> list[Mention]:
    """The names of a text (``find_names``) and the first words of its sentences, which may be names, in order."""
    starts = [token.start for token in tokens]
    mentions = [
        Mention(value.content.words, bisect_left(starts, value.start), bisect_left(starts, value.end))
        for value in names
        if isinstance(value.content, Name)
    ]
    named = {index for mention in mentions for index in range(mention.first, mention.end)}
    mentions += [
        Mention((fold_name(token.text),), index, index + 1)
        for index, token in enumerate(tokens)
        if token.opens and token.text[0].isupper() and token.lower not in FUNCTION_WORDS and index not in named
    ]
    return sorted(mentions, key=lambda mention: mention.first)


def find_mentioned(tokens: Sequence[Token], names: Iterable[Sequence[str]]) -> list[Mention]:
    """Where words of the ``names`` stand in a text, with and without capitals; words of one name are together."""
    words, pairs = set[str](), set[tuple[str, str]]()
    for name in names:
        words.update(name)
        pairs.update(pairwise(name))
    mentions: list[Mention] = []
    for index, token in enumerate(tokens):
        word = fold_name(token.text)
        if word not in words:
            continue
        last = mentions[-1] if mentions else None
        if last is not None and last.end == index and (last.words[-1], word) in pairs:
            mentions[-1] = last._replace(words=(*last.words, word), end=index + 1)
        else:
            mentions.append(Mention((word,), index, index + 1))
    return mentions


def read_statements(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[ReadStatement]:
    """The statements that a text makes of two names that follow each other, in order.

    >>> from .names import find_names
    >>> from .tokens import tokenize
    >>> tokens = tokenize("In 1997 Deep Blue was beaten by Garry Kasparov, who is older than Anand.")
    >>> [read.statement for read in read_statements(tokens, list_mentions(tokens, find_names(tokens, (), set())))]
    [Statement(left=('garry', 'kasparov'), verb='beat', right=('deep', 'blue'), heads=('', ''))]
    """
    sentences: dict[int, list[Token]] = defaultdict(list)
    for token in tokens:
        sentences[token.sentence].append(token)
    unsure = {token.sentence for token in tokens if token.lower in _AGAINST or token.lower.endswith("n't")}
    unsure |= {number for number, inside in sentences.items() if len(inside) > MAX_TOKENS}
    for left, right in pairwise(mentions):
        number = tokens[left.first].sentence
        if number in unsure or number != tokens[right.first].sentence or right.first - left.end > _BETWEEN:
            continue
        if (
            {*left.words} & {*right.words}
            or _is_governed(tokens, left)
            or any(_is_part(tokens, name) for name in (left, right))
        ):
            continue
        statement = _read(tokens, left, right)
        if statement is None:
            continue
        start, end = tokens[left.first].start, tokens[right.end + bool(_find_head(tokens, right)) - 1].end
        named = {*left.words, *right.words}
        keys = [(token, fold_name(token.text)) for token in sentences[number] if token.text[0].isalnum()]
        qualifiers = [key for token, key in keys if key not in named and not _is_understood(token.lower, statement)]
        yield ReadStatement(
            statement,
            start,
            end,
            number,
            frozenset(stem(key) for _, key in keys),
            frozenset(map(stem, qualifiers)),
            sum(key in named for _, key in keys) == len(left.words) + len(right.words),
        )


def _is_governed(tokens: Sequence[Token], name: Mention) -> bool:
    """Whether a name is part of a phrase about something else: "the brother of Kasparov"."""
    sentence = tokens[name.first].sentence
    before = [
        tokens[index].lower
        for index in range(max(0, name.first - _REACH), name.first)
        if tokens[index].sentence == sentence and not tokens[index].opens
    ]
    directly = name.first > 0 and tokens[name.first - 1].sentence == sentence and tokens[name.first - 1].lower
    return directly in _BEFORE or any(word in _GOVERNING for word in before)


def _is_part(tokens: Sequence[Token], name: Mention) -> bool:
    """Whether a name is only a part of a longer one: "Mexico" in "New Mexico"."""
    sentence = tokens[name.first].sentence
    beside = [tokens[index] for index in (name.first - 1, name.end) if 0 <= index < len(tokens)]
    return tokens[name.first].text[0].isupper() and any(
        token.sentence == sentence and token.text[0].isupper() and token.lower not in FUNCTION_WORDS for token in beside
    )


def _is_understood(word: str, statement: Statement) -> bool:
    """Whether a word says no more than the statement does."""
    verb = _VERBS.get(word) or _name_comparison(word)[0]
    lost = verb == "lose" and statement.verb == "beat"
    return word in _IGNORED or lost or verb in statement.verb.split() or word in ("more", "less", "than")


def exchanges(ours: Statement, theirs: Statement) -> bool:
    """Whether two statements say the same with the sides exchanged; ``theirs`` may have longer names."""
    return supports(ours, Statement(theirs.right, theirs.verb, theirs.left, (theirs.heads[1], theirs.heads[0])))


def supports(ours: Statement, theirs: Statement) -> bool:
    """Whether two statements say the same; ``theirs`` may have longer names."""
    sides = {*ours.left} <= {*theirs.left} and {*ours.right} <= {*theirs.right}
    return sides and ours.verb == theirs.verb and ours.heads == theirs.heads


def _read(tokens: Sequence[Token], left: Mention, right: Mention) -> Statement | None:
    """The statement of two names in one sentence, or None where it cannot be read."""
    if any(tokens[name.end - 1].lower.endswith(("'s", "s'")) for name in (left, right)):
        return None
    index, head = left.end, ""
    if not _is_helper(text_at(tokens, index)) and _find_relation(tokens, index) is None:
        head, index = stem(text_at(tokens, index)), index + 1
    passive = False
    while index < right.first and _is_helper(text_at(tokens, index)):
        passive |= text_at(tokens, index) in _BE
        index += 1
    relation = _find_relation(tokens, index)
    if relation is None or text_at(tokens, right.end) in _BE | _HAVE:
        return None
    index, exchanged = relation.end, relation.exchanged
    if not relation.compares and text_at(tokens, index) == "by":
        index, exchanged = index + 1, not exchanged
    elif passive and not relation.compares:
        return None
    between = [token.lower for token in tokens[index : right.first] if token.lower not in _DETERMINERS]
    if index > right.first or len(between) > _NOUNS or not all(map(_may_be_noun, between)):
        return None
    if exchanged:
        return Statement(right.words, relation.verb, left.words, (_find_head(tokens, right), head))
    return Statement(left.words, relation.verb, right.words, (head, _find_head(tokens, right)))


def _find_head(tokens: Sequence[Token], name: Mention) -> str:
    """The stem of the noun after a name ("French cuisine"); empty for none."""
    after = text_at(tokens, name.end)
    same = name.end < len(tokens) and tokens[name.end].sentence == tokens[name.first].sentence
    return stem(after) if same and _may_be_noun(after) else ""


class _Relation(NamedTuple):
    verb: str
    end: int
    """Number of the token after it."""
    exchanged: bool = False
    """Whether the verb belongs to the other side: "lost to" is read as "beat"."""
    compares: bool = False


def _find_relation(tokens: Sequence[Token], index: int) -> _Relation | None:
    word, following = text_at(tokens, index), text_at(tokens, index + 1)
    if word in ("more", "less") and text_at(tokens, index + 2) == "than":
        return _Relation(f"more {following}", index + 3, word == "less", compares=True)
    if following == "than" and word.endswith("er") and word not in _NO_COMPARISON:
        name, exchanged = _name_comparison(word)
        return _Relation(name, index + 2, exchanged, compares=True)
    verb = _VERBS.get(word)
    if verb != "lose":
        return _Relation(verb, index + 1) if verb else None
    to = index + 1
    while text_at(tokens, to) in _CONTESTS:
        to += 1
    return _Relation("beat", to + 1, exchanged=True) if text_at(tokens, to) == "to" else None


def _name_comparison(word: str) -> tuple[str, bool]:
    """The comparison by which another is read, and whether that exchanges the sides."""
    word = _SYNONYMS.get(word, word)
    return _OPPOSITES.get(word, word), word in _OPPOSITES


def _is_helper(word: str) -> bool:
    return word in _HELPERS or (len(word) > 4 and word.endswith("ly"))


def _may_be_noun(word: str) -> bool:
    return word.isalpha() and word not in FUNCTION_WORDS and word not in _VERBS
