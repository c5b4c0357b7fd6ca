"""The records of critique, repair and correction."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.engine import Score, UnsupportedSpan
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.explanations import FlaggedMention, PassageRange
from groundwire.engine.schema.results import Timings
from groundwire.runtime.triples import Triple

StoppedStatus: TypeAlias = Literal["truncated", "deadline", "cancelled", "failed"]
"""As for metrics: the texts exceed what may be read, the request was stopped, or a model failed."""


CorrectionStatus: TypeAlias = (
    Literal["corrected", "partial", "clean", "unverifiable", "refused", "unknown"] | StoppedStatus
)
EditSource: TypeAlias = Literal["value", "answer", "wording", "candidate", "removal"]
"""Where the words of a correction come from. ``value``: the knowledge has this value where the response has another.
``answer``: it answers a question about the replaced words so. ``wording``: its sentence has these words where the
sentence of the response, otherwise alike, has others. ``candidate``: it is of the same type and in the most similar
sentence. ``removal``: there are none."""


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


class Edit(Record, frozen=True):
    """Words that were replaced: ``original[start:end] == old``, ``response[new_start:new_end] == new``."""

    old: str
    new: str
    """With its article if that changed too; empty where words were removed."""
    start: int
    end: int
    new_start: int
    new_end: int


class Change(Edit, frozen=True):
    """A name that was replaced by an entity of a knowledge graph."""

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

    status: Literal["refined", "clean", "unverifiable", "refused", "no_context"] | StoppedStatus
    """``clean``: no name is flagged. ``unverifiable``: all flagged names are in what the response says about its
    speakers, of which the graph knows nothing. ``refused``: a name is flagged and no candidate is good enough;
    ``message`` says why. Only ``refined`` changes the response."""
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


class CorrectionEdit(Edit, frozen=True):
    """Unsupported words of a response that were replaced by words of the knowledge, or removed."""

    action: Literal["replace", "insert", "remove", "remove_sentence"]
    source: EditSource
    evidence: PassageRange | None
    """Where in the knowledge the new words are, or what contradicts the old ones; None for a removal without such."""
    span: UnsupportedSpan | None
    """The unsupported words that the edit is about; None where no single words were marked, as for a lost negation."""


class Correction(Record, frozen=True):
    """A response before and after correction from its knowledge."""

    status: CorrectionStatus
    """``corrected``: no sentence is inconsistent any more. ``partial``: the response is better, and a sentence of it is
    still inconsistent. ``clean``: the verdict is consistent. ``unverifiable``: by the verdict it states nothing that
    could be checked. ``refused``: it is inconsistent, and no correction is good enough. ``unknown``: without a verdict
    nothing is corrected. ``message`` says why. Only ``corrected`` and ``partial`` change the response."""
    original: str
    response: str
    """The response after correction; equal to ``original`` under every status but ``corrected`` and ``partial``."""
    edits: tuple[CorrectionEdit, ...]
    """In the order of the response."""
    unresolved: tuple[UnsupportedSpan, ...]
    """Unsupported spans of the original, in inconsistent sentences, that no edit touches."""
    accepted: bool | None
    """Whether no sentence is inconsistent after the correction (``corrected``); None when nothing was changed."""
    before: Score
    """The score of the original."""
    after: Score | None
    """The score of the corrected response, by the metrics that corrections are compared by; None when nothing was
    changed. Its probability is to be compared with ``probability_before``, not with the probability in ``before``."""
    probability_before: float | None
    """The probability that the original is consistent, by the metrics of ``after``, 0–1."""
    timings: Timings
    signature: str
    message: str = ""
