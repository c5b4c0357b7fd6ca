"""What a caller may set for critique and repair."""

from __future__ import annotations

from typing import TypeVar

from groundwire.engine.schema.base import Count, Probability, Record, check_record

R = TypeVar("R", bound=Record)


class CritiqueOptions(Record, frozen=True):
    """Which triples of a graph the critic reads."""

    hops: Count = 1
    """Triples, at most, between an entity of the dialogue and a triple that is read."""
    look_up: bool = True
    """Look up what the response states in words that can be read: a name that a triple supports is not flagged, and a
    name that contradicts one is. False, as in the paper: the critic alone decides."""


class RefineOptions(Record, frozen=True):
    """How a response is repaired."""

    hops: Count = 1
    """Triples, at most, between a candidate and a context node, where ``veto`` is off; else up to which the critic
    reads triples."""
    top: Count = 5
    """Candidates reported for a mention: the chosen one and its runners-up."""
    type_aware: bool = True
    """Where ``veto`` is off, prefer candidates of the type of the name they replace (the paper's appendix G):
    candidates that share a role in the graph with it or, where the graph does not know the name and a bundle has the
    role ``spans``, candidates in whose roles the name's recognised type is typical. The probability of the others is
    multiplied by 0.3, and a number is replaced by a number only."""
    min_probability: Probability = 0.05
    """Least probability, 0–1, among the candidates of a mention, of a candidate that the critic reads."""
    mask_all: bool = False
    """Mask every name of the response, not only the names that the critic flags, and let the retriever alone decide
    whether a name stays (the paper's table 3, "NPH-w/o critic"): names that the graph knows, that the critic flags and,
    where a bundle has the role ``spans``, that it recognises. The critic still reads both responses."""
    veto: bool = True
    """Accept a new name only where a triple has it at the end of the relation that the response states, reached in one
    hop or, over the author of the book and the like, in two. False, as in the paper: take the most probable repair."""


def check_options(options: R | None, kind: type[R]) -> R:
    """Return ``options``, the defaults for None; InvalidRequest names a field that is out of range."""
    return kind() if options is None else check_record(options, kind)
