"""The records that generation returns."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.engine import Score
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Timings
from groundwire.runtime.calls import Decoding

from .options import GenerationOptions

GenerationStatus: TypeAlias = Literal["generated", "truncated", "deadline", "cancelled", "failed"]
"""``generated``: there is a response. ``truncated``: knowledge and history exceed what the model reads; nothing is cut.
``deadline``, ``cancelled``: the request was stopped. ``failed``: the model failed. Only ``generated`` has responses."""


class GeneratedToken(Record, frozen=True):
    """A token of a response: ``response.text[start:end]``, in characters."""

    id: int
    start: int
    end: int
    """Equal to ``start`` for a token that ends the response, and for a token that only begins a character."""
    log_prob: float
    """Nats, given the knowledge, the history and the tokens before it."""
    cpmi: float | None
    """Nats that the knowledge adds to ``log_prob``: it minus the log-probability without the knowledge. None at
    ``alpha`` 0, where the dialogue is not read without its knowledge."""


class GeneratedResponse(Record, frozen=True):
    """A response, its tokens and how it was scored."""

    text: str
    score: float
    """Of decoding: the mean over the tokens of ``alpha · cpmi + (1 − alpha) · log_prob``, with the length penalty for
    beams."""
    log_prob: float
    """Mean over the tokens, in nats."""
    cpmi: float | None
    """Mean over the tokens, in nats; None at ``alpha`` 0."""
    tokens: tuple[GeneratedToken, ...]
    finished: bool
    """Whether the model ended the response; False when it reached ``max_new_tokens``."""
    index: int
    """Rank by ``score``, from 0."""
    check: Score | None = None
    """What the metrics say about the response; None without metrics, and for a response without words."""


class Generation(Record, frozen=True):
    """Responses to a dialogue, best first."""

    status: GenerationStatus
    responses: tuple[GeneratedResponse, ...]
    """At most ``options.n``, ranked by the metrics if there are any and by ``score`` otherwise. Fewer, when decoding
    found no others."""
    options: GenerationOptions
    """As passed to ``Generator.generate``."""
    decoding: Decoding
    """The record that ``options.method`` became."""
    metrics: tuple[str, ...]
    """The metrics that checked the responses, by name; empty without checks."""
    timings: Timings
    signature: str
    """What determined the responses: version, bundle digest, precision, device, options."""
    message: str = ""
    """For every status but ``generated``: what happened and what to do."""

    @property
    def text(self) -> str:
        """The best response; empty when there is none."""
        return self.responses[0].text if self.responses else ""
