"""What generation gives back."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Score, Timings
from groundwire.runtime.calls import Decoding

GenerationStatus: TypeAlias = Literal["written", "truncated", "deadline", "cancelled", "failed"]
"""``written``: there is a response. ``truncated``: knowledge and history exceed what the model reads; nothing is cut.
``deadline``, ``cancelled``: the request was stopped. ``failed``: the model failed. Only ``written`` has responses."""


class GeneratedToken(Record, frozen=True):
    """A token of a response: ``response.text[start:end]``, in characters."""

    id: int
    start: int
    end: int
    """As ``start`` for what ends the response, and for a token that only begins a character."""
    log_prob: float
    """In nats, given the knowledge, the history and the tokens before it."""
    cpmi: float | None
    """What of that the knowledge brings: minus the log-probability without it. None at ``alpha`` 0, where the dialogue
    is not read without its knowledge."""


class GeneratedResponse(Record, frozen=True):
    """A response, and how it came about."""

    text: str
    score: float
    """Of decoding: the mean of a token's ``alpha · cpmi + (1 − alpha) · log_prob``, with the length penalty for
    beams."""
    log_prob: float
    """Mean of the tokens'."""
    cpmi: float | None
    """Mean of the tokens'."""
    tokens: tuple[GeneratedToken, ...]
    finished: bool
    """Whether the model ended it; False when ``max_tokens`` did."""
    index: int
    """Its place by ``score``, from 0."""
    check: Score | None = None
    """What the metrics say about it; None where none was asked, or the response has no words to score."""


class GenerationOptions(Record, frozen=True):
    """The settings a generation was made with, defaults filled in."""

    alpha: float
    top_p: float
    decoding: Decoding
    n: int
    n_candidates: int
    """Responses that were written to choose ``n`` of."""
    metrics: tuple[str, ...] = ()
    """Those that checked them."""


class Generation(Record, frozen=True):
    """Responses to a dialogue, best first."""

    status: GenerationStatus
    responses: tuple[GeneratedResponse, ...]
    """At most ``options.n``, by the checks where there are any and by ``score`` otherwise. Fewer, when decoding found
    no others."""
    options: GenerationOptions
    timings: Timings
    signature: str
    """What determined the responses: version, bundle digest, precision, device, options."""
    message: str = ""
    """For every status but ``written``: what happened and what to do."""

    @property
    def text(self) -> str:
        """The best response; empty when there is none."""
        return self.responses[0].text if self.responses else ""
