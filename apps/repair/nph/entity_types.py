"""The types of names that the graph does not know, from the named-entity recogniser of role ``spans``.

A graph rarely has types; the roles of its entities replace them (``KnowledgeGraph.role_similarity``). A name that is
not in the graph has no roles. The recogniser gives such a name a type, and gives each role the types of the entities
that have it, because it reads the candidates' triples as sentences. A candidate is of another type if the name's type
is much rarer in its roles than in the roles of other candidates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from groundwire.metrics import Steps
from groundwire.runtime.calls import FindSpans, TextSpan
from groundwire.runtime.triples import Triple, sentence

from ..kg import KnowledgeGraph
from .context import Context
from .repair import Slot

ROLE = "spans"
ENTITY = "ent:"
"""Begins the kind of a span that is a named entity; its label follows."""
MAX_TRIPLES = 32
"""Triples that the recogniser reads, at most."""
ROLE_TRIPLES = 6
"""Triples of one predicate among them, at most."""
UNRECOGNISED = 0.25
"""What an entity without a type counts for each type."""
TYPICAL = 0.5
"""Share of a type in a role, relative to the candidates' role in which it is most frequent, from which the role's
entities count as of that type."""
RoleTypes: TypeAlias = Mapping[str, Counter[str]]
"""For each role, as ``KnowledgeGraph.roles`` writes it, the number of entities of each type; "" for none."""


def find_other_types(context: Context, slots: Sequence[Slot]) -> Steps[tuple[Slot, ...]]:
    """Return the slots with ``other_type`` for the names that the graph does not know; the others are unchanged."""
    if all(slot.mention.entity is not None for slot in slots):
        return tuple(slots)
    triples = list(_select_triples(context.graph, slots))
    sentences = [f"{sentence(triple)}." for triple in triples]
    response_spans, triple_spans = yield [FindSpans(context.response), FindSpans(" ".join(sentences))]
    role_types = _count_types(triples, sentences, triple_spans)
    return tuple(
        slot
        if slot.mention.entity is not None
        else slot._replace(
            other_type=_list_other_types(
                context.graph, slot, role_types, _find_type(response_spans, slot.mention.start, slot.mention.end)
            )
        )
        for slot in slots
    )


def find_entities(context: Context) -> Steps[tuple[TextSpan, ...]]:
    """Return the named entities that the recogniser finds in the response."""
    (spans,) = yield [FindSpans(context.response)]
    return tuple(span for span in spans if span.kind.startswith(ENTITY))


def _select_triples(graph: KnowledgeGraph, slots: Sequence[Slot]) -> Iterable[Triple]:
    """One triple of each candidate that is next to its anchor, few of one predicate."""
    counts: Counter[str] = Counter()
    pairs = dict.fromkeys(candidate for slot in slots for candidate in slot.candidates)
    triples = (triple for pair in pairs for triple in graph.triples_between(pair.anchor, pair.entity)[:1])
    for triple in dict.fromkeys(triples):
        counts[triple.predicate] += 1
        if counts[triple.predicate] <= ROLE_TRIPLES and counts.total() <= MAX_TRIPLES:
            yield triple


def _count_types(triples: Sequence[Triple], sentences: Sequence[str], spans: Sequence[TextSpan]) -> RoleTypes:
    types: dict[str, dict[str, str]] = defaultdict(dict)
    start = 0
    for triple, text in zip(triples, sentences, strict=True):
        end = start + len(text) - 1
        subject_end = start + len(" ".join(triple.subject.split()))
        object_start = end - len(" ".join(triple.object.split()))
        types[f"subject:{triple.predicate}"][triple.subject] = _find_type(spans, start, subject_end)
        types[f"object:{triple.predicate}"][triple.object] = _find_type(spans, object_start, end)
        start += len(text) + 1
    return {role: Counter(type_of.values()) for role, type_of in types.items()}


def _find_type(spans: Iterable[TextSpan], start: int, end: int) -> str:
    """The label of the entity that covers at least half of a range; "" for none."""
    labels = (
        span.kind.removeprefix(ENTITY)
        for span in spans
        if span.kind.startswith(ENTITY) and 2 * (min(span.end, end) - max(span.start, start)) >= end - start
    )
    return next(labels, "")


def _list_other_types(graph: KnowledgeGraph, slot: Slot, role_types: RoleTypes, label: str) -> frozenset[str]:
    if not label:
        return slot.other_type
    shares = {
        candidate.entity: max(
            (_share(role_types[role], label) for role in graph.roles(candidate.entity) if role in role_types),
            default=UNRECOGNISED,
        )
        for candidate in slot.candidates
    }
    best = max(shares.values())
    return frozenset(entity for entity, share in shares.items() if share < TYPICAL * best)


def _share(types: Counter[str], label: str) -> float:
    return (types[label] + UNRECOGNISED * types[""]) / types.total()
