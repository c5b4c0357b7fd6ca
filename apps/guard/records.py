"""What a stream reports: frozen records, which the field ``type`` distinguishes in JSON."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.engine import Score, UnsupportedSpan, Verdict
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Citation

Outcome: TypeAlias = Literal[
    "consistent", "inconsistent", "unverifiable", "unknown", "deadline", "failed", "truncated", "overflow"
]
"""What a policy goes by. The label of a verdict; or why there is none: ``deadline``, ``failed`` and ``truncated`` are
statuses of a metric, ``overflow`` says that more was held back, or longer, than the policy allows."""
ActionName: TypeAlias = Literal["release", "flag", "block", "redact", "refine", "correct", "regenerate", "fallback"]
"""``release`` is what happens to a consistent sentence, the others are what a policy may say."""


class NotChecked(Record, frozen=True):
    """A part of an answer that was not checked."""

    part: Literal["text", "calls", "refusal"]
    reason: Outcome | Literal["policy"]
    """Why: ``policy`` lets it leave unchecked; else what came in the place of a verdict, such as ``deadline``."""
    message: str = ""


class SentenceEvent(Record, frozen=True, tag="sentence"):
    """A sentence was checked: ``text == response[start:end]``. What it says is final."""

    index: int
    """The number of the sentence in the response, from 0."""
    text: str
    start: int
    end: int
    outcome: Outcome
    action: ActionName
    """What the policy does about the outcome."""
    verdict: Verdict
    """``unknown`` where a metric could not look at the sentence, whatever the other metrics say."""
    unsupported: tuple[UnsupportedSpan, ...] = ()
    """The words that are not supported, by their place in the response."""
    citations: tuple[Citation, ...] = ()
    """Where in the knowledge its support is, with the metric ``citations``."""


class EarlyVerdict(Record, frozen=True, tag="early_verdict"):
    """A sentence is inconsistent by itself, while the response is written. Comes once, after that sentence's event.

    The whole response may be consistent: several sentences are decided together."""

    index: int
    """The number of the sentence."""
    verdict: Verdict
    """The verdict on the sentence."""


class Release(Record, frozen=True, tag="release"):
    """Text that may leave. A reader of the stream sees the texts of its releases in order, and nothing else."""

    text: str
    start: int
    end: int
    """Characters ``start`` to ``end`` of the response are what ``text`` is, or what it replaces; the next one begins at
    ``end``."""
    outcome: Outcome
    """Outcome of the original text; a rewritten sentence has the outcome of its own check."""
    action: ActionName
    checked: bool
    """Whether a verdict was reached about this text: False for what left by a policy that lets unchecked text leave,
    and for the policy's own words (``Fallback``, ``Redact`` without words to replace)."""


class Blocked(Record, frozen=True, tag="blocked"):
    """The stream has ended: nothing from ``start`` on has left or will."""

    start: int
    outcome: Outcome
    message: str = ""
    """Why, as far as the verdict or a metric says so."""


class FinalEvent(Record, frozen=True, tag="final"):
    """The stream was finished."""

    score: Score
    """The score of the response as it was fed, as ``Engine.score`` gives it: before policies replaced parts of it.
    Where a sentence was inconsistent by itself and the response is not, a warning says so."""
    released: str
    """All text that has left."""


Event: TypeAlias = SentenceEvent | EarlyVerdict | Release | Blocked | FinalEvent
