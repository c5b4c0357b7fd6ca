"""The bodies of requests and answers that are not records of the engine."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from groundwire.engine import GenerationOptions, Options, Ranked, Score, Triple
from groundwire.runtime.arguments import OptionRecord

from .problems import Problem

Knowledge: TypeAlias = str | tuple[str, ...]
Triples: TypeAlias = tuple[Triple | tuple[str, str, str], ...]
Metrics: TypeAlias = str | tuple[str, ...]


class Turn(OptionRecord, frozen=True, kw_only=True):
    """What a response should rest on, and the dialogue before it."""

    knowledge: Knowledge = ()
    """One text, or several passages."""
    history: tuple[str, ...] = ()
    """Utterances, oldest first."""
    triples: Triples = ()
    """Facts of a knowledge graph, as records or [subject, predicate, object]; they are the knowledge where no text is
    given."""


class ScoreBody(Turn, frozen=True, kw_only=True):
    """A response to score."""

    response: str
    metrics: Metrics | None = None
    """Names, or a group: all, paper, fast. null: those that the server was started with, else those of the verdict."""
    options: Options = Options()
    """deadline_ms and priority are bounded by the server."""


class ScoreLine(Turn, frozen=True, kw_only=True):
    """A line of ``/score_many``."""

    response: str
    id: str | int | None = None
    """Comes back with the score."""


class ScoredLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a line of ``/score_many``: a score or a problem."""

    line: int
    """Number of the line, from 1; empty lines count."""
    id: str | int | None = None
    score: Score | None = None
    """Look at its status: only ``scored`` carries a value."""
    error: Problem | None = None


class RankBody(Turn, frozen=True, kw_only=True):
    """Candidate responses to one turn."""

    candidates: tuple[str, ...]
    metric: str = "pmi"
    options: Options = Options()


class Ranking(msgspec.Struct, frozen=True):
    """The candidates, best first; those without a value come last."""

    ranked: tuple[Ranked, ...]


class RefineBody(OptionRecord, frozen=True, kw_only=True):
    """A response whose names are checked against triples, and replaced."""

    response: str
    history: tuple[str, ...] = ()
    triples: Triples
    top: int = 5
    """Candidates of each name that are reported."""
    type_aware: bool = True
    """Prefer candidates that play a part in the triples that what they replace plays too."""
    min_probability: float = 0.05
    """0–1; a name is replaced only by a candidate that has it."""
    options: Options = Options()


class GenerateBody(OptionRecord, frozen=True, kw_only=True):
    """A dialogue to answer from its knowledge."""

    knowledge: Knowledge
    history: tuple[str, ...]
    generation: GenerationOptions = GenerationOptions()
    metrics: Metrics | None = None
    """Score every candidate by these; null: only with ``generation.n_candidates``."""
    options: Options = Options()


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the server lives, or is ready."""

    status: str
    detail: str = ""


JsonObject: TypeAlias = dict[str, Any]
