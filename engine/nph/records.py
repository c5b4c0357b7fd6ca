"""The records that critique and repair return."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.runtime.triples import Triple

from ..schema.base import Record
from ..schema.explanations import FlaggedMention
from ..schema.results import Timings

StoppedStatus: TypeAlias = Literal["truncated", "deadline", "cancelled", "failed"]
"""As for metrics: the texts exceed what may be read, the request was stopped, or a model failed."""


class Critique(Record, frozen=True):
    """The names of a response that the graph does not support."""

    status: Literal["checked", "no_context"] | StoppedStatus
    """``no_context``: neither history nor response names an entity of the graph, so there is nothing to compare with.
    Only ``checked`` carries a decision."""
    hallucinated: bool | None
    """Whether a name is flagged (in the paper a response is hallucinated if one of its tokens is)."""
    probability: float | None
    """Highest probability, 0–1, that a word of the response is hallucinated."""
    mentions: tuple[FlaggedMention, ...]
    """The flagged names, in the order of the response."""
    context: tuple[str, ...]
    """The entities that history and response name."""
    triples: tuple[Triple, ...]
    """The triples that the critic read."""
    timings: Timings
    signature: str
    message: str = ""


class Alternative(Record, frozen=True):
    """A candidate entity for a flagged name."""

    entity: str
    anchor: str
    """The context node from which it was reached."""
    score: float
    """Score of the retriever, without bounds."""
    probability: float
    """Probability among all candidates of the name, 0–1."""
    path: tuple[Triple, ...]
    """The triple that joins anchor and entity; several triples if they are further apart."""


class Change(Record, frozen=True):
    """A name that was replaced: ``original[start:end] == old``, ``response[new_start:new_end] == new``."""

    old: str
    new: str
    """With its article if that changed too."""
    start: int
    end: int
    new_start: int
    new_end: int
    mention: FlaggedMention
    """The flagged name. A name that the critic does not flag is replaced only if it is exchanged with a flagged one, or
    with ``mask_all``."""
    chosen: Alternative
    """The new entity, and the triple that supports it."""
    runners_up: tuple[Alternative, ...]
    """The other candidates, best first."""

    @property
    def triple(self) -> Triple:
        """The triple that contains the new entity."""
        return self.chosen.path[-1]


class Refinement(Record, frozen=True):
    """A response before and after repair."""

    status: Literal["refined", "clean", "refused", "no_context"] | StoppedStatus
    """``clean``: no name is flagged. ``refused``: a name is flagged and no candidate is good enough; ``message`` says
    why. Only ``refined`` changes the response."""
    original: str
    response: str
    """The response after repair; equal to ``original`` under every status but ``refined``."""
    changes: tuple[Change, ...]
    """In the order of the response."""
    unresolved: tuple[FlaggedMention, ...]
    """Flagged names of the original that were not replaced and that the critic still flags."""
    accepted: bool | None
    """Whether the critic flags no name after the repair; None when nothing was changed."""
    before: Critique
    after: Critique | None
    """The critique of the new response; None when nothing was changed."""
    timings: Timings
    signature: str
    message: str = ""
