"""Fixed calls on which an exported retriever is compared with its checkpoint, written for this project."""

from __future__ import annotations

from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.triples import Triple

_PHRASES = {
    "directed by": ("Who directed {s}?", "{s} was directed by {o}."),
    "starring": ("Who is in {s}?", "I think {s} stars {o}."),
    "released in": ("When did {s} come out?", "{s} was released in {o}."),
    "written by": ("Who wrote {s}?", "The author of {s} is {o}, if I remember well."),
    "capital": ("What is the capital of {s}?", "The capital of {s} is {o}."),
    "language": ("What do people speak in {s}?", "In {s} they speak {o}."),
    "genre": ("What kind of story is {s}?", "{s} is a {o}."),
}
_FACTS = """\
Alien|directed by|Ridley Scott
Alien|starring|Sigourney Weaver
Alien|released in|1979
Alien|genre|horror film
Blade Runner|directed by|Ridley Scott
Blade Runner|starring|Harrison Ford
Blade Runner|released in|1982
Jaws|directed by|Steven Spielberg
Jaws|starring|Roy Scheider
Jaws|released in|1975
Casablanca|directed by|Michael Curtiz
Casablanca|starring|Humphrey Bogart
Casablanca|genre|romantic drama
Metropolis|directed by|Fritz Lang
Metropolis|released in|1927
Dracula|written by|Bram Stoker
Dracula|genre|horror novel
Emma|written by|Jane Austen
Emma|genre|comedy of manners
Moby-Dick|written by|Herman Melville
Ulysses|written by|James Joyce
Ulysses|released in|1922
France|capital|Paris
France|language|French
Peru|capital|Lima
Peru|language|Spanish
Kenya|capital|Nairobi
Kenya|language|Swahili
Japan|capital|Tokyo
Japan|language|Japanese
Norway|capital|Oslo
Norway|language|Norwegian"""


def calls() -> list[Retrieve]:
    """Return two calls per fact: one masks its object, the other both subject and object."""
    facts = [Triple(*line.split("|")) for line in _FACTS.splitlines()]
    return [_call(facts, number, both=both) for number in range(len(facts)) for both in (False, True)]


def _call(facts: list[Triple], number: int, *, both: bool) -> Retrieve:
    fact = facts[number]
    # Neighbouring facts in the table mostly have the same subject.
    shown = tuple(facts[(number + step) % len(facts)] for step in (-2, -1, 0, 1, 2, 5))
    question, answer = (text.format(s=fact.subject, o=fact.object) for text in _PHRASES[fact.predicate])
    ends = sorted((fact.subject, fact.object), key=answer.index) if both else [fact.object]
    mentions = tuple((answer.index(end), answer.index(end) + len(end)) for end in ends)
    # A name and its anchor score the same in either order: both orders in one set would tie.
    objects = tuple(Candidate(triple.subject, triple.object) for triple in shown)
    subjects = tuple(Candidate(triple.object, triple.subject) for triple in shown)
    candidates = tuple(subjects if end == fact.subject else objects for end in ends)
    return Retrieve((question,), shown, answer, mentions, candidates, top=len(shown))
