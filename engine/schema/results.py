"""Requests and results: frozen, typed, and JSON by ``to_json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from groundwire.runtime.arguments import check_sequence, suggest
from groundwire.runtime.bundles.calibration import ProfileName
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple

from .base import METHODS, Record, digest_fields
from .card import CardSentence, write_card
from .explanations import Explanation, PassageRange, QuotedText
from .explanations import UnsupportedSpan as UnsupportedSpan

T = TypeVar("T")
E = TypeVar("E", bound=Record)
Status: TypeAlias = Literal["scored", "nothing_to_verify", "truncated", "deadline", "cancelled", "failed", "invalid"]
"""``scored``: the value counts. ``nothing_to_verify``: the metric found nothing that it can check. ``truncated``: the
texts exceed what may be read, or too much of them is unknown to the model's tokenizer. ``deadline``, ``cancelled``:
the request was stopped. ``failed``: a model failed. ``invalid``: the input is not usable (only in ``score_many``,
which goes on; ``score`` raises). Only ``scored`` carries a value."""
STOPPED: frozenset[Status] = frozenset({"truncated", "deadline", "cancelled", "failed"})
"""Statuses of metrics that could not look at the texts; ``nothing_to_verify`` is what a metric says about them."""


class Request(Record, frozen=True):
    """A response, the knowledge it should rest on, and the dialogue before it."""

    response: str
    knowledge: tuple[str, ...]
    """Passages; where only triples were given, these as one text. Without any, as where a search found nothing, a
    response is ``unverifiable`` if it states nothing, and ``inconsistent`` otherwise."""
    history: tuple[str, ...] = ()
    """Utterances, oldest first."""
    triples: tuple[Triple, ...] = ()
    """Facts of a knowledge graph, for the metrics that read them."""

    def digest(self) -> str:
        """Return sixteen hexadecimal digits of the response, the knowledge, the history and the triples."""
        fields = msgspec.to_builtins(self)
        if not fields["triples"]:
            del fields["triples"]  # requests without triples keep the digest they had before there were any
        return digest_fields(fields)


class MetricResult(Record, frozen=True):
    """What one metric says. ``value`` is a number if and only if ``status`` is ``scored``."""

    name: str
    status: Status
    value: float | None = None
    message: str = ""
    """For every status but ``scored``: what happened and what to do. For ``scored``: what knowledge was not read, if
    any."""
    explanation: Explanation | None = None
    unsupported: tuple[UnsupportedSpan, ...] = ()
    coverage: float | None = None
    """Share of the knowledge's characters that models read, 0–1; None when none was asked about it."""
    decision: Literal["consistent", "inconsistent"] | None = None
    """In ``Score.metrics``: what the value alone says, by the threshold that the calibration has for this metric. It is
    consistent if its min-max form is at least the threshold with the best balanced accuracy on the calibration's
    development sets. None without such a threshold, and for ``verifiability``."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.status == "scored"):
            raise ValueError(f"{self.name}: status {self.status!r} with value {self.value!r}")


class Ranked(Record, frozen=True):
    """One of several candidate responses, in its place."""

    _other_words: ClassVar[Mapping[str, str]] = {**METHODS, "text": "response"} | dict.fromkeys(
        ("score", "value", "probability"), "result.value"
    )

    response: str
    index: int
    """Its place among the candidates as they were given, from 0."""
    result: MetricResult


class Timings(Record, frozen=True):
    """Milliseconds. Batches are shared and run beside each other, so stages may add up to more than the total."""

    total_ms: float
    stages_ms: dict[str, float]
    """By model role: the run time of the batches that carried this request's calls. Roles that a batch served in one
    pass are joined by ``+``."""
    queued_ms: float = 0.0
    """Part of the total: the time before the engine began with this request, because it was working on others."""
    fold_ms: float = 0.0
    """After the total: the time in which the score was drawn from the results."""

    def __add__(self, other: Timings) -> Timings:
        """Return the time of two jobs, one after the other."""
        roles = dict.fromkeys((*self.stages_ms, *other.stages_ms))
        return Timings(
            self.total_ms + other.total_ms,
            {role: self.stages_ms.get(role, 0.0) + other.stages_ms.get(role, 0.0) for role in roles},
            self.queued_ms + other.queued_ms,
            self.fold_ms + other.fold_ms,
        )


Label: TypeAlias = Literal["consistent", "inconsistent", "unverifiable", "unknown"]


class Verdict(Record, frozen=True):
    """What the engine says about a response."""

    _other_words: ClassVar[Mapping[str, str]] = {
        **METHODS,
        **dict.fromkeys(("consistent", "is_consistent", "passed"), "label"),
        **dict.fromkeys(("score", "value", "confidence"), "probability"),
    }

    label: Label
    """``unverifiable``: it states nothing that knowledge could confirm. ``unknown``: a needed metric did not score, a
    metric of the fusion failed, or the bundle has no calibration; ``message`` says which. A text that models could not
    read is ``unknown``, whatever else the response is."""
    probability: float | None = None
    """Of being consistent, 0–1; None when a number that it needs is missing (``unknown``, perhaps ``unverifiable``)."""
    profile: ProfileName | None = "balanced"
    """None where ``Options.max_false_positive_rate`` or ``Options.threshold`` took its place."""
    threshold: float | None = None
    """Probability from which a response is called consistent."""
    sure: bool = False
    """Whether the probability is outside the band in which labels are often wrong (``Fusion.band``); the calibration's
    profiles say how many labels are sure and how many of those are wrong. ``unverifiable`` is sure unless the
    probability is below the threshold, ``unknown`` never is."""
    contributions: dict[str, float] | None = None
    """What each number added to the logit; they and the intercept add up to it."""
    message: str = ""
    max_false_positive_rate: float | None = None
    """The bound, 0–1, on the share of consistent responses that the threshold calls inconsistent, for responses like
    the responses of the calibration. None where the calibration promises none; where a metric that the fusion reads was
    not asked, or did not end well; and for a sentence of several: the bound is about responses."""
    fusion: str = ""
    """Which of the calibration's fusions drew the verdict: ``reader``, the default where the bundle reader is loaded,
    ``full``, ``fast``, or the name that ``groundwire calibrate --set fusion=NAME`` was given."""
    absent: tuple[str, ...] = ()
    """Features of the fusion without a value. In a probability each counts as its mean."""


class SentenceVerdict(Record, frozen=True):
    """What the engine says about one sentence of a response: ``text == response[start:end]``."""

    text: str
    start: int
    end: int
    verdict: Verdict
    """By the numbers that metrics have about this sentence alone (``Metric.part``); for an only sentence, the verdict
    of the response."""
    unsupported: tuple[UnsupportedSpan, ...] = ()
    """Those of ``Score.unsupported`` that begin in it."""


class Citation(Record, frozen=True):
    """A sentence of the knowledge that supports a sentence of the response."""

    start: int
    end: int
    """The sentence of the response, in characters."""
    evidence: PassageRange
    """The sentence of the knowledge."""
    text: str
    """``text == knowledge[evidence.passage][evidence.start:evidence.end]``."""
    support: float
    """Probability, 0–1, that it supports the sentence of the response."""


class Score(Record, frozen=True):
    """How faithful a response is to its knowledge.

    ``verdict`` is drawn from all metrics; ``value`` and ``status`` belong to the first metric asked for;
    ``metrics`` has all metrics by name. Where a defect ends what draws the verdict, the status is ``failed``.
    """

    _other_words: ClassVar[Mapping[str, str]] = {
        **METHODS,
        **dict.fromkeys(("consistent", "is_consistent", "faithful", "passed"), "verdict.label"),
        **dict.fromkeys(("score", "confidence"), "verdict.probability"),
        **dict.fromkeys(("reason", "reasons", "spans", "errors", "hallucinations"), "unsupported"),
        "claims": "sentences",
    }

    status: Status
    value: float | None
    verdict: Verdict
    metrics: dict[str, MetricResult]
    unsupported: tuple[UnsupportedSpan, ...]
    """What the metrics together take for unsupported: disjoint, in the order of the response. A sentence whose verdict
    is ``consistent`` or ``unverifiable`` has none."""
    coverage: float | None
    """The smallest of the metrics' coverages."""
    timings: Timings
    signature: str
    """What determined the values: version, bundle digest, precision, device, options."""
    message: str = ""
    sentences: tuple[SentenceVerdict, ...] = ()
    """The sentences of the response, in order, each with its verdict; empty when the response's verdict is ``unknown``.
    A response of several is as consistent as the worst sentence that states something, unless the fusion scores it as a
    whole (``Fusion.whole``); then it is inconsistent where one of them is."""
    citations: tuple[Citation, ...] = ()
    """Where in the knowledge the support of each sentence is, by sentence and then by support; only with the metric
    ``citations``. A sentence that is ``unverifiable`` has none."""
    quotations: tuple[QuotedText, ...] = ()
    """What the response quotes, and whether the knowledge has it so; only with the metric ``quotations``."""
    warnings: tuple[str, ...] = ()
    """What makes the values doubtful although they were computed: a text that does not look like English, say."""
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    """Entries that ``shorten`` has left out, by the path of their list, as ``metrics.reader.explanation.tokens``."""

    def explain(self, kind: type[E], metric: str | None = None) -> E | None:
        """Return what a metric says about its value, typed.

        Args:
            kind: The record of the metric's explanation, of ``groundwire.explanations``.
            metric: Name of the metric; None takes the first that explains itself so.

        Returns:
            The explanation; None where no such metric was asked, or it did not score.

        Raises:
            InvalidRequest: ``kind`` is no record.

        >>> score.explain(ReaderExplanation).sentences[0].supported                            # doctest: +SKIP
        """
        if not isinstance(kind, type):
            raise InvalidRequest(
                f"kind is {kind!r:.100}; pass a record of groundwire.explanations, as explain(Q2Explanation)."
            )
        for result in self.metrics.values():
            if isinstance(result.explanation, kind) and metric in (None, result.name):
                return result.explanation
        return None

    def __repr__(self) -> str:
        """One line: the verdict and the first words that are not supported."""
        shown = [f"Score({self.verdict.label}", *self._describe()]
        if self.status != "scored":
            shown.append(f"status {self.status}")
        if self.unsupported:
            more = f" and {len(self.unsupported) - 1} more" if len(self.unsupported) > 1 else ""
            shown.append(f"unsupported {self.unsupported[0].text[:60]!r}{more}")
        return f"{', '.join(shown)}, metrics {len(self.metrics)})"

    def _repr_html_(self) -> str:
        """A small card for notebooks."""
        sentences = (
            CardSentence(sentence.verdict.label, sentence.text, sentence.start, sentence.unsupported)
            for sentence in self.sentences
        )
        return write_card(
            self.verdict.label, "".join(self._describe()), self.verdict.message or self.message, sentences
        )

    def _describe(self) -> list[str]:
        """The probability, and whether the label is not sure; empty without a probability."""
        if self.verdict.probability is None:
            return []
        return [f"{self.verdict.probability:.2f}{'' if self.verdict.sure else ' (not sure)'}"]

    def shorten(self, max_entries: int | None) -> Score:
        """Return the score with the first entries of each list: of sentences, and of what metrics explain.

        Args:
            max_entries: Entries that a list keeps; 0 or more. None keeps all.

        Returns:
            The score; ``left_out`` counts the other entries. ``unsupported``, ``citations`` and ``quotations``
            are whole.
        """
        if max_entries is None:
            return self
        left_out: dict[str, int] = {}

        def cut(path: str, entries: tuple[T, ...]) -> tuple[T, ...]:
            if len(entries) > max_entries:
                left_out[path] = len(entries) - max_entries
            return entries[:max_entries]

        metrics = dict[str, MetricResult]()
        for name, result in self.metrics.items():
            explanation: Any = result.explanation
            for field in () if explanation is None else explanation.__struct_fields__:
                if isinstance(entries := getattr(explanation, field), tuple):
                    path = f"metrics.{name}.explanation.{field}"
                    explanation = replace(explanation, **{field: cut(path, entries)})
            unsupported = cut(f"metrics.{name}.unsupported", result.unsupported)
            metrics[name] = replace(result, explanation=explanation, unsupported=unsupported)
        sentences = cut("sentences", self.sentences)
        return replace(self, metrics=metrics, sentences=sentences, left_out=left_out) if left_out else self

    def select(self, fields: Sequence[str] | None = None, *, explanations: bool = True) -> dict[str, Any]:
        """Return some of the fields as plain dictionaries and lists, for an answer that is small as JSON.

        Args:
            fields: Names of fields of this record; None takes all of them.
            explanations: Whether metrics have their ``explanation`` and ``unsupported``, sentences their
                ``unsupported``, and verdicts their ``contributions``. The score's own ``unsupported`` stays.

        Returns:
            The fields by name, in the order of the record, and ``left_out`` where that is not empty.

        Raises:
            InvalidRequest: A name is not a field of this record.

        >>> score.select(["verdict", "unsupported"], explanations=False)                       # doctest: +SKIP
        """
        score = self if explanations else _drop_explanations(self)
        names = check_fields(fields)
        selected: dict[str, Any] = msgspec.to_builtins(
            {name: getattr(score, name) for name in score.__struct_fields__ if name in names}
        )
        if score.left_out:
            selected["left_out"] = score.left_out
        return selected


def check_fields(fields: Sequence[str] | None) -> Sequence[str]:
    """Return the names of fields of a Score, all of them for None; InvalidRequest for a name that it does not have."""
    allowed = Score.__struct_fields__
    if fields is None:
        return allowed
    names = check_sequence("fields", fields, "a list of names of a Score's fields")
    for index, name in enumerate(names):
        if name not in allowed:
            near = suggest(str(name), allowed)
            raise InvalidRequest(f"fields[{index}] is {name!r:.100}{near}; allowed are {', '.join(allowed)}.")
    return names


def number_evidence(citations: Iterable[Citation]) -> dict[PassageRange, int]:
    """Return the cited sentences of the knowledge, numbered from 1 in the order of the knowledge."""
    cited = {citation.evidence for citation in citations}
    order = sorted(cited, key=lambda evidence: (evidence.passage, evidence.start, evidence.end))
    return {evidence: number for number, evidence in enumerate(order, 1)}


def _drop_explanations(score: Score) -> Score:
    verdict = replace(score.verdict, contributions=None)
    metrics = {name: replace(result, explanation=None, unsupported=()) for name, result in score.metrics.items()}
    sentences = tuple(
        replace(sentence, verdict=replace(sentence.verdict, contributions=None), unsupported=())
        for sentence in score.sentences
    )
    left_out = {path: count for path, count in score.left_out.items() if not path.startswith("metrics.")}
    return replace(score, verdict=verdict, metrics=metrics, sentences=sentences, left_out=left_out)
