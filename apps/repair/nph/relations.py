"""Which candidates fit the verb before a mention: what somebody wrote is a work, and whom it was written by a person.

A graph has one direction of a relation, (The BFG, written by, Roald Dahl), and a response says it in either voice: "He
wrote The BFG", "It was written by Roald Dahl". For verbs of making and acting the voice says which end of the triple a
mention is, so that "He also wrote Roald Dahl" is never put together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from groundwire.engine.extend import WORD
from groundwire.runtime.calls import Candidate
from groundwire.runtime.triples import Triple, readable

from ..kg import KnowledgeGraph

End: TypeAlias = Literal["maker", "work"]
"""Who makes, or plays in, something; or what is made, or played in."""
_FORMS = {
    "write": "writes wrote written writing writer author",
    "direct": "directs directed directing director",
    "produce": "produces produced producing producer",
    "compose": "composes composed composing composer",
    "create": "creates created creating creator",
    "paint": "paints painted painting painter",
    "design": "designs designed designing designer",
    "invent": "invents invented inventing inventor",
    "found": "founds founded founding founder",
    "develop": "develops developed developing developer",
    "publish": "publishes published publishing publisher",
    "record": "records recorded recording",
    "sing": "sings sang sung singing singer",
    "play": "plays played playing player",
    "act": "acts acted acting actor actors actress",
    "star": "stars starred starring",
    "appear": "appears appeared appearing appearance",
}
_VERBS = {form: verb for verb, forms in _FORMS.items() for form in (verb, *forms.split())}
_ACTING = frozenset({"act", "star", "play", "appear"})
"""One acts "in" a work, and a work "stars" an actor. A triple with any of these verbs says which end a name is."""
_SAYING = re.compile(r"\b(?:also|another|too|as well|other)\b", re.IGNORECASE)
_REACH = 60
"""Characters before a mention in which its verb is looked for."""
_END = re.compile(r"[.!?;:\n]")


class SaidRelation(NamedTuple):
    """The verb before a mention, and which end of it the mention is."""

    verb: str
    end: End
    is_another: bool
    """Whether the sentence says "also" or "another", so that the mention is none of those named before."""


def read_relation(response: str, start: int, taken: Sequence[tuple[int, int]] = ()) -> SaidRelation | None:
    """The relation that the words before the character ``start`` state; None without a verb that is known.

    ``taken`` are the ranges of other mentions, whose words do not count as verbs.

    >>> read_relation("He also wrote The BFG", 14)
    SaidRelation(verb='write', end='work', is_another=True)
    >>> read_relation("It was written by Roald Dahl", 18).end, read_relation("It stars Tom Hanks", 9).end
    ('maker', 'maker')
    """
    begin = max((match.end() for match in _END.finditer(response, 0, start)), default=0)
    words = [
        (match[0].lower(), match.start())
        for match in WORD.finditer(response, max(begin, start - _REACH), start)
        if not any(first <= match.start() < last for first, last in taken)
    ]
    verbs = [(index, _VERBS[word]) for index, (word, _) in enumerate(words) if word in _VERBS]
    if not verbs:
        return None
    index, verb = verbs[-1]
    after = [word for word, _ in words[index + 1 :]]
    is_another = _SAYING.search(response, begin, start) is not None
    if verb in _ACTING:
        return SaidRelation(verb, "work" if {"in", "on"} & {*after} else "maker", is_another)
    return SaidRelation(verb, "maker" if "by" in after else "work", is_another)


def fits(graph: KnowledgeGraph, candidate: Candidate, said: SaidRelation) -> bool:
    """Whether a triple of the candidate and its anchor has the relation, with the candidate at the right end."""
    return any(
        _find_end(triple, candidate.entity, said.verb) == said.end
        for triple in graph.triples_between(candidate.anchor, candidate.entity)
    )


def _find_end(triple: Triple, entity: str, verb: str) -> End | None:
    """Which end of the relation of ``verb`` an entity is; None if the triple has another relation, or no clear one."""
    verbs, subject = _read_predicate(triple.predicate)
    if subject is None or (verb not in verbs and not (verb in _ACTING and verbs & _ACTING)):
        return None
    if triple.subject == entity:
        return subject
    return "work" if subject == "maker" else "maker"


@lru_cache(4096)
def _read_predicate(predicate: str) -> tuple[frozenset[str], End | None]:
    """The verbs of a predicate, and which end its subject is; None where its last word does not say it.

    The subject of "written by", "starred actors" and "director" is the work; "acted in" and "author of" have another.
    """
    words = [word.lower() for word in WORD.findall(readable(predicate))]
    verbs = frozenset(_VERBS[word] for word in words if word in _VERBS)
    last = words[-1] if words else ""
    if last in ("in", "of", "for"):
        return verbs, "maker"
    names_maker = last.removesuffix("s") in _VERBS and last.removesuffix("s").endswith(("er", "or", "actress"))
    return verbs, "work" if last == "by" or names_maker else None
