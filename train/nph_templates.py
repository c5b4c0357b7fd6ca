"""Dialogues about a knowledge graph, made from its triples by templates: what the critic and the retriever learn from.

A dialogue has one to three turns of history, a neighbourhood of the graph, and a response that says one to three facts
of it, with the exact place of every entity it mentions and the triples behind each. The wording of about eighty
relations is written by hand (``nph_phrases.tsv``), films most of all; other relations get a generic wording. Graphs name
the same relation differently and in both directions, so a dialogue shows each of its relations under the name in the
data or under another one.

Sources are FB15k-237's triples. It has no dates, so films get a year that is made up: a response is held against the
triples it is shown, not against the world.
"""

from __future__ import annotations

import msgspec

from groundwire.runtime.triples import Triple


class Mention(msgspec.Struct, frozen=True):
    """An entity in a response: ``response[start:end]`` names ``entity``, perhaps in other words than the graph."""

    start: int
    end: int
    entity: str
    triples: tuple[Triple, ...] = ()
    """Triples that the response states with it, as they stand in the dialogue's; empty when it is only talked of."""


class GraphDialogue(msgspec.Struct, frozen=True):
    """A response and what it should rest on."""

    history: tuple[str, ...]
    """Turns before the response, oldest first."""
    triples: tuple[Triple, ...]
    """The neighbourhood that is shown, in no order; what the response states is among it."""
    response: str
    mentions: tuple[Mention, ...]
    """Disjoint, in the order of the text."""

    def stated(self) -> tuple[Triple, ...]:
        """The triples that the response states, each once."""
        return tuple(dict.fromkeys(triple for mention in self.mentions for triple in mention.triples))


class Phrases(msgspec.Struct, frozen=True):
    """How people talk of a relation. ``{s}`` and ``{o}`` stand for the subject and the object."""

    types: tuple[str, str] = ("thing", "thing")
    """What subject and object are: it, person, org, place, year, or word, a common noun."""
    forward: tuple[str, ...] = ()
    """Predicates of a sentence about the subject."""
    inverse: tuple[str, ...] = ()
    """Predicates of a sentence about the object."""
    whole: tuple[str, ...] = ()
    ask_object: tuple[str, ...] = ()
    """Questions that the object answers."""
    ask_subject: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Other predicates for it; ``~`` turns the triple round."""
