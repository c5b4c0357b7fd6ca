"""What critique and repair give back."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.engine.schema.base import Record
from groundwire.engine.schema.explanations import FlaggedMention
from groundwire.engine.schema.results import Timings
from groundwire.runtime.triples import Triple

Stopped: TypeAlias = Literal["truncated", "deadline", "cancelled", "failed"]
"""As for metrics: the texts exceed what may be read, the request was stopped, or a model failed."""


class Critique(Record, frozen=True):
    """Which names of a response the graph does not support."""

    status: Literal["judged", "no_context"] | Stopped
    """``no_context``: neither history nor response names an entity of the graph, so there is nothing to judge by. Only
    ``judged`` carries a decision."""
    hallucinated: bool | None
    """Whether a name is flagged (the paper: a response is hallucinated if one token is)."""
    probability: float | None
    """Of the word that the critic doubts most, 0–1."""
    mentions: tuple[FlaggedMention, ...]
    """The flagged names, in the order of the response."""
    context: tuple[str, ...]
    """The entities that history and response name."""
    triples: tuple[Triple, ...]
    """What the critic was shown."""
    timings: Timings
    signature: str
    message: str = ""


class Alternative(Record, frozen=True):
    """An entity that was considered for a mention."""

    entity: str
    anchor: str
    """The context node it was reached from."""
    score: float
    """The retriever's, without bounds."""
    probability: float
    """Among all candidates of the mention, 0–1."""
    path: tuple[Triple, ...]
    """The triple that joins anchor and entity; several where they are further apart."""


class Change(Record, frozen=True):
    """A mention that was replaced: ``original[start:end] == old``, ``response[new_start:new_end] == new``."""

    old: str
    new: str
    """With its article where that changed too."""
    start: int
    end: int
    new_start: int
    new_end: int
    mention: FlaggedMention
    """What was flagged. A mention that the critic let pass is replaced where it changes places with a flagged one."""
    chosen: Alternative
    """What took its place, and the triple that justifies it."""
    runners_up: tuple[Alternative, ...]
    """The other candidates, best first."""

    @property
    def triple(self) -> Triple:
        """The triple that the new entity stands in."""
        return self.chosen.path[-1]


class Refinement(Record, frozen=True):
    """A response before and after repair."""

    status: Literal["refined", "clean", "refused", "no_context"] | Stopped
    """``clean``: nothing is flagged. ``refused``: something is, and no candidate is good enough; ``message`` says why.
    Only ``refined`` changes the response."""
    original: str
    response: str
    """After repair; the original in every other case."""
    changes: tuple[Change, ...]
    """In the order of the response."""
    unresolved: tuple[FlaggedMention, ...]
    """Flagged mentions of the original that were left as they are, and that the critic still flags."""
    accepted: bool | None
    """Whether the critic flags nothing after the repair; None when nothing was changed."""
    before: Critique
    after: Critique | None
    """The critic on the new response; None when nothing was changed."""
    timings: Timings
    signature: str
    message: str = ""
