"""Relations in words: which relation a predicate or a word is about, and which end of it a name is at.

A graph has one direction of a relation, (The BFG, written by, Roald Dahl), and a response says it in either: "He wrote
The BFG", "It was written by Roald Dahl". Both name the relation by words of one family; voice and preposition say which
end a name is at. Irregular forms and synonyms are in a table, and every other predicate is read by its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import is_letters
from groundwire.runtime.triples import Triple, readable


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


End: TypeAlias = Literal["first", "second"]
"""The second end is what a noun of the relation names (the author, the capital, the sequel, the year of release); the
first is what it is the author, the capital, the sequel or the year of."""
Kind: TypeAlias = Literal["verb", "work_verb", "noun", "inverse_noun"]
"""The subject of a ``verb`` is the second end ("she wrote it"), of a ``work_verb`` the first ("it stars her"). A
``noun`` names the second end, an ``inverse_noun`` the first ("its prequel")."""
AGENT, NOUN = "agent", "noun"
ACTING, YEAR = "star", "release"
KINDS = ("genre", "profession")
"""Families with a grammar of their own: an actor acts in a work; "a film from 1979" is about its year; "a comedy" about
its genre."""
ORIGINS = ("country", "origin", "nationality", "bear")
"""Families that "from" may be about."""
INTRANSITIVE = frozenset(("base", "bear", "die", "display", "flow", "locate", "release", "set"))
"""Families whose verbs have no object that counts: "it sits on a river"."""
PREPOSITIONS = word_set(
    "about across after against along alongside among around as at before between by during for from in inside "
    "into near off on onto over through to toward towards under until upon via with within without"
)
_SAME_PREPOSITIONS = {
    **dict.fromkeys(("at", "inside", "within", "during"), "in"),
    **dict.fromkeys(("along", "upon", "off", "near"), "on"),
}
_EMPTY = word_set("a an are be been co has have is its of the was were")
"""Words of a predicate that name no relation."""
_FORMS: dict[tuple[str, Kind], str] = {
    ("write", "verb"): "write writes wrote written writing pen pens penned penning scripted authored",
    ("write", "noun"): "writer writers author authors novelist screenwriter screenwriters screenplay script",
    ("direct", "verb"): "direct directs directed directing make makes made making helmed",
    ("direct", "noun"): "director directors filmmaker",
    ("compose", "verb"): "compose composes composed composing scored",
    ("compose", "noun"): "music score soundtrack composer composers",
    ("illustrate", "verb"): "illustrate illustrates illustrated illustrating",
    ("illustrate", "noun"): "illustrator illustrators illustrations pictures drawings",
    ("design", "verb"): "design designs designed designing",
    ("design", "noun"): "architect architects designer engineer",
    ("sculpt", "verb"): "sculpt sculpts sculpted",
    ("sculpt", "noun"): "sculptor",
    ("paint", "verb"): "paint paints painted painting",
    ("paint", "noun"): "painter",
    ("produce", "verb"): "produce produces produced producing",
    ("produce", "noun"): "producer producers",
    ("translate", "verb"): "translate translates translated translating",
    ("translate", "noun"): "translator translation",
    ("found", "verb"): "found founds founded founding cofounded",
    ("found", "noun"): "founder founders cofounder",
    ("publish", "verb"): "publish publishes published publishing",
    ("publish", "noun"): "publisher publishers",
    ("release", "verb"): "release releases released published come comes came premiered dates dated appeared",
    ("release", "noun"): "release publication year",
    ("star", "verb"): "play plays played playing act acts acted acting appear appears appeared appearing",
    ("star", "work_verb"): "star stars starred starring feature features featured featuring",
    ("star", "noun"): "actor actors actress actresses cast lead",
    ("sing", "verb"): "sing sings sang sung singing",
    ("sing", "noun"): "singer",
    ("sequel", "verb"): "follow follows followed",
    ("sequel", "noun"): "sequel sequels follow-up successor continuation",
    ("sequel", "inverse_noun"): "prequel predecessor",
    ("genre", "noun"): "genre genres",
    ("profession", "noun"): "profession occupation job",
    ("cinematographer", "verb"): "shot filmed",
    ("cinematographer", "noun"): "cinematographer cinematography",
    ("character", "noun"): "character characters hero heroine protagonist",
    ("marry", "verb"): "married marry marries wed",
    ("marry", "noun"): "wife husband spouse",
    ("child", "noun"): "daughter son child",
    ("child", "inverse_noun"): "father mother parent",
    ("friend", "noun"): "friend",
    ("border", "verb"): "border borders bordered bordering neighbours neighbors",
    ("bear", "verb"): "born",
    ("bear", "noun"): "birthplace birth hometown",
    ("country", "noun"): "country",
    ("origin", "noun"): "origin",
    ("nationality", "noun"): "nationality citizenship",
    ("die", "verb"): "die dies died",
    ("die", "noun"): "death",
    ("locate", "verb"): "lie lies stand stands stood sit sits located situated",  # terms: literal
    ("locate", "noun"): "location",
    ("display", "verb"): "hang hangs hung displayed exhibited",
    ("flow", "verb"): "flow flows flowed flowing empties",
    ("cross", "verb"): "cross crosses crossed crossing spans",
    ("complete", "verb"): "complete completes completed finished",
    ("complete", "noun"): "completion",
    ("open", "verb"): "open opens opened opening",
    ("open", "noun"): "opening",
    ("set", "verb"): "set takes took",
    ("base", "verb"): "based",
    ("win", "verb"): "win wins won winning",
    ("win", "noun"): "winner",
    ("capital", "noun"): "capital",
    ("height", "noun"): "height tall high",
    ("elevation", "noun"): "elevation altitude high",
    ("elevation", "work_verb"): "rises reaches",
    ("time", "noun"): "time length long",
    ("time", "work_verb"): "runs run lasts running",
}
_PHRASES = (
    (re.compile(r"\bhit (?:the )?(?:cinemas|theaters|theatres|screens|shelves|shops)\b", re.IGNORECASE), "released"),
    (re.compile(r"\b(?:wrote|did|does|made|writing) the (music|score|soundtrack)\b", re.IGNORECASE), "music"),
    (re.compile(r"\b(?:drew|did|made) the (illustrations|pictures|drawings)\b", re.IGNORECASE), "pictures"),
    (re.compile(r"\bnext (?:book|novel|film|movie|one|part|volume|instalment|installment)\b", re.IGNORECASE), "sequel"),
    (re.compile(r"\b(?:took|takes|take) home\b", re.IGNORECASE), "won"),
    (re.compile(r"\b(?:first )?saw the light of (?:day|the world)\b", re.IGNORECASE), "born"),
    (re.compile(r"\b(?:counts|qualifies) as\b", re.IGNORECASE), "is"),
    (re.compile(r"\btook place\b", re.IGNORECASE), "set"),
)


class WordRelation(NamedTuple):
    """A relation that a word or a predicate names, apart from which name is at which end."""

    family: str
    """What its verbs and nouns have in common."""
    form: str
    """``agent`` of a verb with its subject, its object or "by"; ``noun``; or the preposition of another complement, as
    in "born in"."""

    def matches(self, other: WordRelation) -> bool:
        """Whether both may be about the same facts; a noun does not say which complement of its verb it names."""
        return self.family == other.family and (self.form == other.form or NOUN in (self.form, other.form))


class Fact(NamedTuple):
    """What a predicate says, and at which end of it its subject is."""

    relation: WordRelation
    subject: End


def opposite(end: End) -> End:
    """Return the other end."""
    return "first" if end == "second" else "second"


def named_end(kind: Kind) -> End:
    """Return the end that a noun names, and the subject of a verb."""
    return "second" if kind in ("verb", "noun") else "first"


def is_verb(kind: Kind) -> bool:
    """Whether a word of this kind has a subject and an object."""
    return kind in ("verb", "work_verb")


def adjunct(family: str, preposition: str) -> WordRelation:
    """Return the relation of a verb and the complement after a preposition."""
    return WordRelation(family, _SAME_PREPOSITIONS.get(preposition, preposition))


@lru_cache(4096)
def read_predicate(predicate: str) -> tuple[Fact, ...]:
    """Return what a predicate says, nothing where its words do not show its direction.

    >>> read_predicate("written_by")
    (Fact(relation=WordRelation(family='write', form='agent'), subject='first'),)
    >>> read_predicate("capital_of")
    (Fact(relation=WordRelation(family='capital', form='noun'), subject='second'),)
    """
    words = readable(predicate).lower().replace("co-", "").split()
    last = words[-1] if words else ""
    if words in (["is", "a"], ["instance", "of"], ["type"], ["kind"]):
        return (Fact(WordRelation(KINDS[0], NOUN), "first"),)
    words = [word for word in words if word not in _EMPTY and word not in PREPOSITIONS]
    is_alone = len(words) == 1
    if last in PREPOSITIONS or last in ("of", "for"):
        words = [word for word in words if word in _READ] or words[-1:]
    elif len(words) > 1 and words[-1] not in _READ:
        # Of "birth place" the first word says which place; of "featured locations" no word is read.
        words = [word for word in words if any(not is_verb(kind) for _, kind in _READ.get(word, ()))] or words[-1:]
    else:
        words = words[-1:]
    return tuple(
        dict.fromkeys(
            fact
            for word in words
            for family, kind in read_word(word)
            for fact in _read_fact(family, kind, last, is_alone=is_alone)
        )
    )


def _read_fact(family: str, kind: Kind, last: str, *, is_alone: bool) -> Iterable[Fact]:
    if last == "by":
        yield Fact(WordRelation(family, AGENT), "first")
    elif last in ("of", "for") or (last == "to" and not is_verb(kind)):
        yield Fact(WordRelation(family, AGENT if is_verb(kind) else NOUN), named_end(kind))
    elif last in PREPOSITIONS and family == ACTING:
        yield Fact(WordRelation(family, AGENT), "second")
    elif last in PREPOSITIONS:
        yield Fact(adjunct(family, last), "first")
    elif is_verb(kind) and is_alone:
        yield Fact(WordRelation(family, AGENT), named_end(kind))
    elif not is_verb(kind):
        yield Fact(WordRelation(family, NOUN), opposite(named_end(kind)))


def read_word(word: str) -> tuple[tuple[str, Kind], ...]:
    """Return the families that a word belongs to; a word that is not in the table has its stem for a family.

    >>> read_word("wrote"), read_word("commissioned")
    ((('write', 'verb'),), (('commission', 'verb'),))
    """
    return _READ.get(word) or _read_stem(word)


def _read_stem(word: str) -> tuple[tuple[str, Kind], ...]:
    if len(word) < 4 or not is_letters(word):
        return ()
    if word.endswith(("ed", "ing")):
        return ((_cut(word, ("ed", "ing")), "verb"),)
    return ((_cut(word, ("ers", "ors", "er", "or", "es", "s", "e")), "noun"),)


def _cut(word: str, endings: tuple[str, ...]) -> str:
    ending = next((ending for ending in endings if word.endswith(ending) and len(word) - len(ending) > 3), "")
    return word[: len(word) - len(ending)].removesuffix("e")


def mark_phrases(text: str) -> str:
    """Return the text with one word for each phrase that names a relation, at the same offsets.

    >>> mark_phrases("It hit the cinemas in 1975.")
    'It released        in 1975.'
    """
    for pattern, word in _PHRASES:
        for match in pattern.finditer(text):
            text = text[: match.start()] + word.ljust(len(match[0])) + text[match.end() :]
    return text


def find_ends(triple: Triple, relation: WordRelation) -> tuple[str, str] | None:
    """Return the first and the second end of a triple by a relation; None if it has another relation."""
    for fact in read_predicate(triple.predicate):
        if fact.relation.matches(relation):
            ends = (triple.subject, triple.object)
            return ends if fact.subject == "first" else (ends[1], ends[0])
    return None


FAMILIES = frozenset(family for family, _ in _FORMS)
"""The families of the table."""
_READ: dict[str, tuple[tuple[str, Kind], ...]] = {}
for _key, _words in _FORMS.items():
    for _word in _words.split():
        _READ[_word] = (*_READ.get(_word, ()), _key)
