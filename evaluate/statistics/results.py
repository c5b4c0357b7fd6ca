"""The figures of an evaluation, as ``results.json`` holds them: all that a report or a comparison shows.

A metric is compared with human labels only on the examples where it has a value and a person gave a label or a grade.
``examples`` counts those; ``statuses`` counts all. Intervals are 95 % by bootstrap over contexts (``resampling``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from groundwire.engine import UnsupportedSpan
from groundwire.engine.schema.base import METHODS, Record
from groundwire.engine.schema.results import Citation, Label
from groundwire.monitor.records import Estimate, Shift
from groundwire.runtime.bundles.decode import decode_json
from groundwire.runtime.errors import InvalidRequest

from ..datasets.source import LeftOut

SCHEMA = 3
"""Version of ``results.json``."""


class Curve(Record, frozen=True):
    """Points of a curve, in order."""

    x: tuple[float, ...]
    y: tuple[float, ...]


class ClassFigures(Record, frozen=True):
    """How well a metric finds one of the two classes."""

    precision: Estimate
    recall: Estimate
    f1: Estimate


class Decision(Record, frozen=True):
    """Both classes at one threshold."""

    threshold: float
    """A response counts as consistent above 0.5, or from a tuned threshold on."""
    origin: str
    """``0.5``, or the name of the development set on which the threshold was tuned (best F1 of the class consistent, as
    in the PMI-Faith paper; its min-max form changes no decision)."""
    accuracy: Estimate
    balanced_accuracy: Estimate
    consistent: ClassFigures
    inconsistent: ClassFigures
    tuned_on: int = 0
    """Examples of the development set that the threshold was tuned on, without examples that share knowledge with this
    set."""


class Histogram(Record, frozen=True):
    """Values by class: ``edges`` has one more entry than the counts."""

    edges: tuple[float, ...]
    consistent: tuple[int, ...]
    inconsistent: tuple[int, ...]


class Reliability(Record, frozen=True):
    """Predicted probability and observed share of consistent responses by bin, without empty bins."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    examples: tuple[int, ...]
    error: float
    """Expected calibration error: mean distance of the two, weighted by examples."""


class SystemLevel(Record, frozen=True):
    """Graham & Liu's simulated systems, as the Q² paper uses them: Spearman of system scores with quality."""

    contexts: int
    """Contexts with two responses, exactly one of them inconsistent."""
    correlation: Estimate
    """Mean, and the 2.5 and 97.5 percentiles over the repeats."""
    means: dict[str, float]
    """Mean score of a simulated system by its share of inconsistent responses, "5 %" to "25 %"."""


class MetricFigures(Record, frozen=True):
    """One metric on one set. A figure that is undefined there is None."""

    metric: str
    examples: int
    """Those with a value, and a label or a grade."""
    statuses: dict[str, int]
    roc_auc: Estimate | None = None
    average_precision: Estimate | None = None
    """Average precision of the class inconsistent, which is searched for."""
    average_precision_consistent: Estimate | None = None
    decisions: tuple[Decision, ...] = ()
    spearman: Estimate | None = None
    pearson: Estimate | None = None
    """Both with ``Example.grade``."""
    ranking: Estimate | None = None
    """Share of (consistent, inconsistent) pairs of one context in the right order; a tie counts one half."""
    system_level: SystemLevel | None = None
    roc: Curve | None = None
    """Share of inconsistent (x) and of consistent responses (y) with a value from each threshold upwards."""
    precision_recall: Curve | None = None
    """Recall and precision of "inconsistent"."""
    precision_recall_consistent: Curve | None = None
    """The same of "consistent"."""
    histogram: Histogram | None = None
    reliability: Reliability | None = None
    """Only for probabilities: ``verdict``, and metrics whose value is one (``MetricNumber.is_probability``)."""
    brier: Estimate | None = None
    """Brier score of a probability: its mean squared distance from the label, 0 for a perfect one, 0.25 for 0.5."""
    by_source: dict[str, Estimate] = msgspec.field(default_factory=dict)
    """ROC-AUC by ``Example.source`` and, where there are several, by ``system=NAME``, ``length=WORDS``,
    ``sentences=KIND`` and ``language=NAME``. A response with several kinds of sentences is in the part of each."""
    part_examples: dict[str, int] = msgspec.field(default_factory=dict)
    """How many examples each figure of ``by_source`` is of."""


class PartRates(Record, frozen=True):
    """How often labels are wrong; the false positive rate is the share of consistent responses called inconsistent."""

    consistent: int
    """Consistent examples with a verdict."""
    false_positive_rate: float
    """Share of them, 0–1, that is called inconsistent."""
    inconsistent: int
    false_negative_rate: float
    """Share of the inconsistent ones, 0–1, that is called consistent or unverifiable."""
    coverage: float | None = None
    """As ``VerdictFigures.coverage``; None in files of older versions."""
    risk: float | None = None
    """As ``VerdictFigures.risk``; None without a sure label."""
    risk_if_unsure: float | None = None
    """As ``VerdictFigures.risk_if_unsure``; None where all labels are sure."""


class TradeOff(Record, frozen=True):
    """What other thresholds would do to the labels of a set, by ascending threshold."""

    thresholds: tuple[float, ...]
    false_positive_rate: tuple[float, ...]
    false_negative_rate: tuple[float, ...]


class VerdictFigures(Record, frozen=True):
    """The verdicts under one profile; the false positive rate is of consistent responses called inconsistent."""

    _other_words: ClassVar[Mapping[str, str]] = {**METHODS, "name": "profile"} | dict.fromkeys(
        ("precision", "recall", "f1", "accuracy"), "balanced_accuracy, false_positive_rate or called"
    )

    profile: str
    """Its name, or ``at most N %`` for a bound on the false positive rate."""
    labels: dict[str, int]
    """How many responses got each verdict."""
    threshold: float | None = None
    """Probability from which a response is called consistent."""
    balanced_accuracy: Estimate | None = None
    """1 minus the mean of the two error rates."""
    called: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """By human label, ``consistent`` and ``inconsistent``: how many of these examples got each verdict."""
    by_part: dict[str, PartRates] = msgspec.field(default_factory=dict)
    """By part, as ``MetricFigures.by_source``; only parts with both classes."""
    false_positive_rate: Estimate | None = None
    """Share of ``inconsistent`` among consistent examples."""
    false_negative_rate: Estimate | None = None
    """Share of ``consistent`` or ``unverifiable`` among inconsistent examples."""
    false_positive_rate_on_unverifiable: Estimate | None = None
    """Share of ``inconsistent`` among examples that state nothing to check."""
    verifiability_accuracy: Estimate | None = None
    max_false_positive_rate: float | None = None
    """What the calibration promises for responses like its own; None where it promises nothing."""
    coverage: Estimate | None = None
    """Share of the labels consistent and inconsistent that is sure (``Verdict.sure``), of examples with a human label.
    None in files of older versions."""
    risk: Estimate | None = None
    """Share of these sure labels that is wrong."""
    risk_if_unsure: Estimate | None = None
    """Share of the labels that are not sure that is wrong."""


class VerifiabilityFigures(Record, frozen=True):
    """How well ``verifiability`` separates responses that state something to check from the others."""

    examples: int
    """Those with such a label and a value."""
    accuracy: Estimate
    """At 0.5."""
    roc_auc: Estimate | None = None


class MarkingFigures(Record, frozen=True):
    """How well the words that a person marked as unsupported are marked, over all such responses together."""

    examples: int
    """Those whose unsupported words, or that there are none, a person marked."""
    words: ClassFigures
    spans: ClassFigures
    """Of runs of neighbouring words: right when both ends are."""


class CitingFigures(Record, frozen=True):
    """How well the sentences that a person named as evidence are cited, over all responses together."""

    examples: int
    """Those for which a person named the evidence, or said that there is none."""
    sentences: ClassFigures


class QuestionFigures(Record, frozen=True):
    """How often Q² found and answered questions."""

    with_question: Estimate
    """Share of responses for which Q² found a valid question."""
    questions: int
    no_answer: Estimate
    """Share of kept questions that the knowledge does not answer."""


class ErrorThreshold(Record, frozen=True):
    """The threshold of the leading metric that decides which examples are its errors."""

    value: float
    origin: str
    """``profile NAME`` of the verdict, ``0.5``, the name of the development set, or ``this set`` where the metric has
    no other threshold: best F1 of the class consistent on the examples themselves."""


class ErrorCase(Record, frozen=True):
    """An example that the leading metric puts on the wrong side of its threshold."""

    example: str
    """Its id."""
    label: int
    called: Label
    """What the leading metric calls it: not what ``label`` says."""
    value: float
    distance: float
    """How far on the wrong side: in ranks, 0–1."""
    response: str
    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    system: str
    source: str
    unsupported: tuple[UnsupportedSpan, ...]
    values: dict[str, float]
    """All metrics that scored."""
    questions: tuple[tuple[str, str, str], ...]
    """Question, answer from the response, answer from the knowledge ("" for none) of every question that Q² kept."""
    citations: tuple[Citation, ...] = ()


class SetFigures(Record, frozen=True):
    """All metrics on one set."""

    name: str
    examples: int
    labels: dict[str, int]
    """Examples by label: "consistent", "inconsistent", "unverifiable" (it states nothing to check), "none"."""
    metrics: dict[str, MetricFigures]
    """By name; ``verdict`` is the verdict's probability."""
    verdicts: tuple[VerdictFigures, ...] = ()
    questions: QuestionFigures | None = None
    errors: tuple[ErrorCase, ...] = ()
    """Those of ``leading``, the worst first; at most ``error_analysis.MAX_ERRORS``."""
    error_threshold: ErrorThreshold | None = None
    """What ``errors`` are on the wrong side of; None without ``leading``."""
    leading: str = ""
    """``verdict`` where there is a calibration, else the metric with the best ROC-AUC."""
    verifiability: VerifiabilityFigures | None = None
    """Figures of the metric ``verifiability``, which does not score consistency and is not among ``metrics``."""
    notes: tuple[str, ...] = ()
    """What limits the figures: examples left out, thresholds that could not be tuned, responses unlike the
    calibration."""
    marking: MarkingFigures | None = None
    citing: CitingFigures | None = None
    left_out: LeftOut | None = None
    """Broken examples, which are not among ``examples``; None where all were read."""
    fitted: int = 0
    """Further examples, left out of all figures: the calibration was fitted to them."""
    trade_off: TradeOff | None = None
    """Of the verdict; None without verdicts or without one of the classes."""
    risk_coverage: Curve | None = None
    """Share of responses that are decided (x) and share of wrong labels among them (y), if those whose probability is
    nearest to the threshold of the default profile are left to a person."""
    shifts: tuple[Shift, ...] = ()
    """Empty where the calibration does not describe its responses, or no consistent response has a verdict."""

    @property
    def labelled(self) -> int:
        """Examples that a metric can be compared on: examples with a label, or all of a set without labels."""
        return self.labels.get("consistent", 0) + self.labels.get("inconsistent", 0) or self.examples

    def count_missing(self, metric: MetricFigures) -> int:
        """How many of ``labelled`` the metric's figures leave out, since it did not score them."""
        return max(0, self.labelled - metric.examples)


class Results(Record, frozen=True):
    """One run over one or several sets."""

    schema: int
    when: str
    """ISO 8601, UTC."""
    signature: str
    """Settings of the scores: version, bundle and digest (of its models, without a calibration), precision, device,
    metrics, options; and the calibration that the verdicts were drawn with."""
    seed: int
    repeats: int
    """Samples of each bootstrap."""
    sets: tuple[SetFigures, ...]

    def save(self, path: Path) -> None:
        """Write ``results.json``.

        Args:
            path: The file; an existing file is replaced.
        """
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what ``save`` wrote.

        Args:
            path: The file ``results.json``.

        Returns:
            The figures of the run.

        Raises:
            InvalidRequest: The file is missing, of another schema, or not a ``results.json``.
        """
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error.strerror}. Give a run's results.json.") from error

        def say(reason: str) -> InvalidRequest:
            return InvalidRequest(f"{path} is not the results.json of an evaluation: {reason}.")

        schema = decode_json(raw, _Schema, say).schema
        if schema != SCHEMA:
            raise InvalidRequest(
                f"{path} has schema {schema}, and this version of Groundwire reads {SCHEMA}. Run `groundwire evaluate` "
                "again; it takes the scores that the run has kept."
            )
        return decode_json(raw, cls, say)


class _Schema(msgspec.Struct):
    schema: int
