"""A graph of films small enough to check critique and repair by hand, with a critic and a retriever by rules."""

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
    "directed_by": r"{s} was directed by {o}|{o} directed {s}|{s} is a film of {o}",
    "starring": r"{s} stars {o}|{o} plays in {s}|{s} was directed by \w+ \w+ and stars {o}",
    "release_year": r"{s} came out in {o}|the year of {s} is {o}",
    "has_genre": r"{s} is an? {o}",
    "born_in": r"{o} is where {s} was born",
}
NAMES = re.compile(r"\b(?:[A-Z]\w+(?: [A-Z]\w+)*|\d{4}|science fiction|romance|epic)\b")


def critic(call: ClassifyTokens) -> Outcome:
    """Flag the names of a claim that no triple states, except the topics of the history; both names if exchanged."""
    parts = call.premises[0].split(SEPARATOR)
    known = [triple for triple in FILMS if _sentence(triple) in parts]
    turns = set(parts).difference(map(_sentence, known))
    topics = {name[0].lower() for turn in turns for name in NAMES.finditer(turn)}
    supported = {
        span
        for triple in known
        for span in _find_claim(call.text, triple.predicate, triple.subject, triple.object, topics)
    }
    swapped = {
        span
        for triple in known
        for span in _find_claim(call.text, triple.predicate, triple.object, triple.subject, set())
    }
    claims = re.search(r"direct|stars|plays|came out|year of|is an? |is where", call.text)
    flagged = []
    for name in NAMES.finditer(call.text) if claims else ():
        topic = name[0].lower() in topics and name.span() not in swapped
        if name.span() not in supported and not topic and name[0] not in ("Yes", "It", "The", "Sure", "No"):
            flagged.append(name.span())
    tags = []
    for token in re.finditer(r"\w+|[^\w\s]", call.text):
        span = next((span for span in flagged if span[0] <= token.start() < span[1]), None)
        first = span is not None and span[0] == token.start()
        probabilities = (0.9, 0.06, 0.04) if span is None else (0.1, 0.8, 0.1) if first else (0.2, 0.1, 0.7)
        tags.append(ClassifiedToken(token.start(), token.end(), probabilities))
    total = sum(map(len, call.premises))
    return ClassifiedTokens(LABELS, tuple(tags), Read(1, total, total))


def retriever(call: Retrieve) -> Outcome:
    """Prefer the entities that the response's verb asks for, then the given order."""
    retrieved = []
    for (start, end), candidates in zip(call.mentions, call.candidates, strict=True):
        wanted = _find_wanted(call.response[:start], call.response[end:])
        weights = [
            8.0 if any(_joins(triple, candidate.anchor, candidate.entity, wanted) for triple in FILMS) else 1.0
            for candidate in candidates
        ]
        ranked = [
            Retrieved(candidate.anchor, candidate.entity, weight, weight / sum(weights))
            for candidate, weight in zip(candidates, weights, strict=True)
        ]
        retrieved.append(tuple(sorted(ranked, key=lambda candidate: -candidate.score)[: call.top]))
    return tuple(retrieved)


def world(**other: Callable[[Any], Outcome]) -> FakeRuntime:
    """The fake runtime with critic and retriever, some roles replaced."""
    return FakeRuntime({"critic": critic, "retriever": retriever} | other, role_info=FACTS)


def _sentence(triple: Triple) -> str:
    return f"{triple.subject} {triple.predicate.replace('_', ' ')} {triple.object}"


def _find_claim(text: str, predicate: str, subject: str, object_: str, topics: set[str]) -> set[tuple[int, int]]:
    """The ranges of both names where ``text`` states the triple; a topic may be "it"."""
    it = "|it" if subject.lower() in topics else ""
    pattern = SAYS[predicate].format(s=f"(?:{re.escape(subject)}{it})", o=re.escape(object_))
    return {
        (claim.start() + name.start(), claim.start() + name.end())
        for claim in re.finditer(pattern, text, re.IGNORECASE)
        for entity in (subject, object_)
        for name in re.finditer(re.escape(entity), claim[0], re.IGNORECASE)
    }


def _find_wanted(before: str, after: str) -> tuple[str, str]:
    """The predicate of the sentence around a name, and which end of it the name is."""
    if re.search(r"(directed by|is a film of)\s*$", before):
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
