"""A world small enough to check critique and repair by hand: films, a critic and a retriever that look up."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from groundwire.runtime.calls import ClassifiedToken, ClassifiedTokens, ClassifyTokens, Read, Retrieve, Retrieved
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome, RoleInfo
from groundwire.runtime.triples import SEPARATOR, Triple

LABELS = ("O", "B", "I")
FACTS = {"critic": RoleInfo(LABELS, ("O",))}
FILMS = (
    Triple("Alien", "directed_by", "Ridley Scott"),
    Triple("Alien", "starring", "Sigourney Weaver"),
    Triple("Alien", "starring", "John Hurt"),
    Triple("Alien", "release_year", "1979"),
    Triple("Alien", "has_genre", "Science fiction"),
    Triple("Gladiator", "directed_by", "Ridley Scott"),
    Triple("Gladiator", "starring", "Russell Crowe"),
    Triple("Gladiator", "release_year", "2000"),
    Triple("Gladiator", "has_genre", "Epic"),
    Triple("Titanic", "directed_by", "James Cameron"),
    Triple("Titanic", "starring", "Kate Winslet"),
    Triple("Titanic", "release_year", "1997"),
    Triple("Titanic", "has_genre", "Romance"),
    Triple("Ridley Scott", "born_in", "South Shields"),
)
SAYS = {
    "directed_by": r"{s} was directed by {o}|{o} directed {s}",
    "starring": r"{s} stars {o}|{o} plays in {s}|{s} was directed by \w+ \w+ and stars {o}",
    "release_year": r"{s} came out in {o}|the year of {s} is {o}",
    "has_genre": r"{s} is an? {o}",
    "born_in": r"{o} is where {s} was born",
}
NAMES = re.compile(r"\b(?:[A-Z]\w+(?: [A-Z]\w+)*|\d{4}|science fiction|romance|epic)\b")


def critic(call: ClassifyTokens) -> Outcome:
    """Flags the names of a claim that no triple says, but not what the history is about; both when they are swapped."""
    parts = call.premises[0].split(SEPARATOR)
    told = [one for one in FILMS if _sentence(one) in parts]
    turns = set(parts).difference(map(_sentence, told))
    topics = {name[0].lower() for turn in turns for name in NAMES.finditer(turn)}
    fine = {place for one in told for place in _said(call.text, one.predicate, one.subject, one.object, topics)}
    swapped = {place for one in told for place in _said(call.text, one.predicate, one.object, one.subject, set())}
    claims = re.search(r"direct|stars|plays|came out|year of|is an? |is where", call.text)
    flagged = []
    for name in NAMES.finditer(call.text) if claims else ():
        topic = name[0].lower() in topics and name.span() not in swapped
        if name.span() not in fine and not topic and name[0] not in ("Yes", "It", "The", "Sure", "No"):
            flagged.append(name.span())
    tags = []
    for token in re.finditer(r"\w+|[^\w\s]", call.text):
        place = next((one for one in flagged if one[0] <= token.start() < one[1]), None)
        first = place is not None and place[0] == token.start()
        shares = (0.9, 0.06, 0.04) if place is None else (0.1, 0.8, 0.1) if first else (0.2, 0.1, 0.7)
        tags.append(ClassifiedToken(token.start(), token.end(), shares))
    total = sum(map(len, call.premises))
    return ClassifiedTokens(LABELS, tuple(tags), Read(1, total, total))


def retriever(call: Retrieve) -> Outcome:
    """Prefers the entities that the response's verb asks for, then the order they are given in."""
    out = []
    for (start, end), candidates in zip(call.mentions, call.candidates, strict=True):
        wanted = _wanted(call.response[:start], call.response[end:])
        weights = [
            8.0 if any(_joins(one, candidate.anchor, candidate.entity, wanted) for one in FILMS) else 1.0
            for candidate in candidates
        ]
        found = [
            Retrieved(candidate.anchor, candidate.entity, weight, weight / sum(weights))
            for candidate, weight in zip(candidates, weights, strict=True)
        ]
        out.append(tuple(sorted(found, key=lambda one: -one.score)[: call.top]))
    return tuple(out)


def world(**other: Callable[[Any], Outcome]) -> FakeRuntime:
    """The fake runtime with critic and retriever, some roles replaced."""
    return FakeRuntime({"critic": critic, "retriever": retriever} | other, role_info=FACTS)


def _sentence(triple: Triple) -> str:
    return f"{triple.subject} {triple.predicate.replace('_', ' ')} {triple.object}"


def _said(text: str, predicate: str, subject: str, thing: str, topics: set[str]) -> set[tuple[int, int]]:
    """The places of both names where ``text`` states the triple; of a topic it may say "it"."""
    it = "|it" if subject.lower() in topics else ""
    pattern = SAYS[predicate].format(s=f"(?:{re.escape(subject)}{it})", o=re.escape(thing))
    return {
        (found.start() + at.start(), found.start() + at.end())
        for found in re.finditer(pattern, text, re.IGNORECASE)
        for name in (subject, thing)
        for at in re.finditer(re.escape(name), found[0], re.IGNORECASE)
    }


def _wanted(before: str, after: str) -> tuple[str, str]:
    """The predicate that a place in a sentence speaks of, and which end of it."""
    if re.search(r"directed by\s*$", before):
        return "directed_by", "object"
    if re.match(r"\s*was directed by", after):
        return "directed_by", "subject"
    if re.match(r"\s*directed", after):
        return "directed_by", "object"
    if re.search(r"directed\s*$", before):
        return "directed_by", "subject"
    if re.search(r"stars\s*$", before) or re.match(r"\s*plays in", after):
        return "starring", "object"
    if re.search(r"(came out in|year of \w+ is)\s*$", before):
        return "release_year", "object"
    if re.search(r"is an?\s*$", before):
        return "has_genre", "object"
    return "", ""


def _joins(triple: Triple, anchor: str, entity: str, wanted: tuple[str, str]) -> bool:
    predicate, end = wanted
    ends = (anchor, entity) if end == "object" else (entity, anchor)
    return triple.predicate == predicate and (triple.subject, triple.object) == ends
