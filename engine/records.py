"""Requests, options and results: frozen, typed, and JSON by ``to_json``."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

import msgspec

from groundwire.runtime.calls import AnswerRule, Beam, Decoding, TextSpan
from groundwire.runtime.errors import InvalidRequest

Status: TypeAlias = Literal["scored", "nothing_to_verify", "truncated", "deadline", "cancelled", "failed", "invalid"]
"""``scored``: the value counts. ``nothing_to_verify``: the metric found nothing it can judge. ``truncated``: the texts
exceed what may be read. ``deadline``, ``cancelled``: the request was stopped. ``failed``: a model failed. ``invalid``:
the input is not usable (only in ``score_many``, which goes on; ``score`` raises). Only ``scored`` carries a value."""


class Record(msgspec.Struct, frozen=True):
    """Base of the records: a JSON form, and back."""

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read ``to_json``'s form; InvalidRequest names the field that does not fit."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"Not a {cls.__name__}: {error}.") from error


class Q2Options(Record, frozen=True):
    """How Q² asks and compares. Defaults: the setting of the paper's main tables (REFERENCE: the authors' code)."""

    decoding: Decoding = Beam()
    """``Beam()``, ``Greedy()`` or ``Sampling()``; the paper's tables 6–7 compare them."""
    questions: Literal["single", "all"] = "single"
    """``single``: the first valid question of each span, in beam order; ``all``: every valid one."""
    personal_filter: bool = True
    """Drop questions about the speakers ("what do you …", "… my …"). Off for personal dialogue (the DNLI setting)."""
    nli: bool = True
    """Compare unequal answers by inference; off is the ablation "Q² w/o NLI"."""
    fallback: bool = True
    """Without any valid question, classify (knowledge, response) end to end: 1, 0.5 or 0. Off:
    ``nothing_to_verify``."""
    rule: AnswerRule = "independent"
    """How the reader picks an answer; ``independent`` follows the authors' code."""
    spans: tuple[tuple[int, int], ...] | None = None
    """Character ranges of the response to ask about, instead of those the span finder gives."""
    questions_at_once: int = 1
    """``single`` only: questions asked per span and wave. 1 does the least work, ``decoding``'s number the fewest
    waves; the score is the same."""


class Options(Record, frozen=True):
    """Settings of one request."""

    q2: Q2Options = Q2Options()
    deadline_ms: float | None = None
    """Milliseconds after which the request is given up with status ``deadline``; None waits."""
    max_windows: int = 512
    """Windows of knowledge one model call may read; more is status ``truncated``, never a silent cut."""
    max_response_chars: int = 20_000
    max_knowledge_chars: int = 4_000_000
    """Characters of knowledge, over all passages."""


class Request(Record, frozen=True):
    """A response, the knowledge it should rest on, and the dialogue before it."""

    response: str
    knowledge: tuple[str, ...]
    """One or more passages."""
    history: tuple[str, ...] = ()
    """Utterances, oldest first."""


class UnsupportedSpan(Record, frozen=True):
    """Words of the response that the knowledge does not support: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    reason: Literal["no_answer", "contradiction", "mismatch"]
    """``no_answer``: the knowledge does not say it. ``contradiction``, ``mismatch``: it says something else."""
    knowledge_says: str = ""
    metric: str = ""


class Comparison(Record, frozen=True):
    """One question of Q² and what came of it."""

    span: TextSpan
    question: str
    rank: int
    """Place in the generator's order, from 0."""
    kept: bool
    discarded: Literal["", "personal", "no_answer_in_response", "other_answer_in_response"] = ""
    """Why the question was not kept."""
    response_answer: str = ""
    """What the reader answers from the response."""
    knowledge_answer: str | None = None
    """What it answers from the knowledge; None when it finds no answer, or for discarded questions."""
    f1: float | None = None
    """Token F1 of the knowledge answer with the span."""
    nli: str | None = None
    """Label of ("question knowledge answer.", "question span."), when it was asked."""
    nli_probabilities: dict[str, float] | None = None
    value: float | None = None
    """The question's score, 0–1."""


class Q2Explanation(Record, frozen=True, tag="q2"):
    """What Q² saw: the spans it asked about, every question, and the fallback's label when no question was valid."""

    spans: tuple[TextSpan, ...]
    questions: tuple[Comparison, ...]
    fallback: str | None = None
    fallback_probabilities: dict[str, float] | None = None


Explanation: TypeAlias = Q2Explanation


class MetricResult(Record, frozen=True):
    """What one metric says. ``value`` is a number if and only if ``status`` is ``scored``."""

    name: str
    status: Status
    value: float | None = None
    message: str = ""
    """For every status but ``scored``: what happened and what to do."""
    explanation: Explanation | None = None
    unsupported: tuple[UnsupportedSpan, ...] = ()
    coverage: float | None = None
    """Share of the knowledge's characters that models read, 0–1; None when none was asked about it."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.status == "scored"):
            raise ValueError(f"{self.name}: status {self.status!r} with value {self.value!r}")


class Timings(Record, frozen=True):
    """Milliseconds. Stages of requests that share batches overlap, so they may add up to more than the total."""

    total_ms: float
    stages_ms: dict[str, float]
    """By model role: the run time of the batches that carried this request's calls."""


class Score(Record, frozen=True):
    """How faithful a response is to its knowledge.

    ``value`` and ``status`` are those of the first metric asked for; ``metrics`` has all of them by name.
    """

    status: Status
    value: float | None
    metrics: dict[str, MetricResult]
    unsupported: tuple[UnsupportedSpan, ...]
    """Union over the metrics, in the order of the response."""
    coverage: float | None
    """The smallest of the metrics' coverages."""
    timings: Timings
    signature: str
    """What determined the values: version, bundle digest, precision, device, options."""
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dictionaries and lists."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built
