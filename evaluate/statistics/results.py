"""What an evaluation finds: ``results.json``. Everything a report or a comparison shows stands here.

A metric is compared with people only on rows where it has a value and people gave a judgement; ``rows`` says how many
those are, ``statuses`` what became of all. Intervals are 95 % by bootstrap over rows (over contexts for pairs).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import UnsupportedSpan
from groundwire.runtime.errors import InvalidRequest

SCHEMA = 1


class Estimate(Record, frozen=True):
    """A number and the 95 % interval of it."""

    value: float
    low: float
    high: float


class Curve(Record, frozen=True):
    """Points of a curve, in order."""

    x: tuple[float, ...]
    y: tuple[float, ...]


class ClassFigures(Record, frozen=True):
    """How well one of the two classes is found."""

    precision: Estimate
    recall: Estimate
    f1: Estimate


class Decision(Record, frozen=True):
    """Both classes at one threshold."""

    threshold: float
    """Value of the metric from which a response counts as consistent."""
    origin: str
    """Where it comes from: ``0.5``, or the name of the development set it was tuned on (best F1 of the class
    consistent, as the PMI-Faith paper does; its min-max form changes no decision)."""
    accuracy: Estimate
    balanced_accuracy: Estimate
    consistent: ClassFigures
    inconsistent: ClassFigures
    tuned_on: int = 0
    """Rows of the development set that the threshold comes from; those that share knowledge with this set are not
    among them."""


class Histogram(Record, frozen=True):
    """Values by class: ``edges`` has one more entry than the counts."""

    edges: tuple[float, ...]
    consistent: tuple[int, ...]
    inconsistent: tuple[int, ...]


class Reliability(Record, frozen=True):
    """Predicted probability against the observed share of consistent responses, by bin; empty bins are left out."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    rows: tuple[int, ...]
    error: float
    """Expected calibration error: mean distance of the two, weighted by rows."""


class SystemLevel(Record, frozen=True):
    """Graham & Liu's simulated systems, as the Q² paper uses them: Spearman of system scores with quality."""

    contexts: int
    """Contexts of which exactly one of two responses is inconsistent."""
    correlation: Estimate
    """Mean, and the 2.5 and 97.5 percentiles over the repeats."""
    means: dict[str, float]
    """Mean score of a simulated system by its share of inconsistent responses, "5 %" to "25 %"."""


class MetricFigures(Record, frozen=True):
    """One metric on one set. What cannot be computed there is None."""

    metric: str
    rows: int
    statuses: dict[str, int]
    roc_auc: Estimate | None = None
    average_precision: Estimate | None = None
    """Of the class inconsistent, the one that is searched for."""
    decisions: tuple[Decision, ...] = ()
    spearman: Estimate | None = None
    pearson: Estimate | None = None
    """Both with ``Row.grade``."""
    ranking: Estimate | None = None
    """Share of (consistent, inconsistent) pairs of one context in the right order; a tie counts one half."""
    systems: SystemLevel | None = None
    roc: Curve | None = None
    """False positive rate and true positive rate of "consistent"."""
    precision_recall: Curve | None = None
    """Recall and precision of "inconsistent"."""
    histogram: Histogram | None = None
    reliability: Reliability | None = None
    """Only for probabilities: ``fused``, detectors."""
    by_source: dict[str, Estimate] = msgspec.field(default_factory=dict)
    """ROC-AUC by ``Row.source`` and, where there are several systems, by ``Row.system`` (``system=NAME``)."""


class VerdictFigures(Record, frozen=True):
    """The verdicts under one profile."""

    profile: str
    labels: dict[str, int]
    """How often each verdict was given."""
    false_positive_rate: Estimate | None = None
    """Share of ``inconsistent`` among consistent rows."""
    false_negative_rate: Estimate | None = None
    """Share of ``consistent`` or ``unverifiable`` among inconsistent rows."""
    alarms_on_unverifiable: Estimate | None = None
    """Share of ``inconsistent`` among rows that state nothing to check."""
    verifiability_accuracy: Estimate | None = None


class VerifiabilityFigures(Record, frozen=True):
    """How well ``verifiability`` tells which responses state something to check."""

    rows: int
    """Where people said so."""
    accuracy: Estimate
    """At 0.5."""
    roc_auc: Estimate | None = None


class QuestionFigures(Record, frozen=True):
    """How Q² got on."""

    with_a_question: Estimate
    """Share of responses about which a valid question was found."""
    questions: int
    no_answer: Estimate
    """Share of kept questions that the knowledge does not answer."""


class Mistake(Record, frozen=True):
    """A row on which the leading metric is most wrong."""

    row: str
    label: int
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


class SetFigures(Record, frozen=True):
    """All metrics on one set."""

    name: str
    rows: int
    labels: dict[str, int]
    """Rows by label: "consistent", "inconsistent", "none"."""
    metrics: dict[str, MetricFigures]
    """By name; ``fused`` is the verdict's probability."""
    verdicts: tuple[VerdictFigures, ...] = ()
    questions: QuestionFigures | None = None
    mistakes: tuple[Mistake, ...] = ()
    """Worst first, of ``leading``."""
    leading: str = ""
    """``fused`` where there is a calibration, else the metric with the best ROC-AUC."""
    verifiability: VerifiabilityFigures | None = None
    """Of the metric ``verifiability``, which judges no consistency and is not among ``metrics``."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know: rows left out, thresholds that could not be tuned."""


class Results(Record, frozen=True):
    """One run over one or several sets."""

    schema: int
    when: str
    """ISO 8601, UTC."""
    signature: str
    """Of the scores: version, bundle and digest (of its models, without a calibration), precision, device, metrics,
    options; and the calibration that the verdicts were drawn with."""
    seed: int
    repeats: int
    """Of the bootstraps."""
    sets: tuple[SetFigures, ...]

    def save(self, path: Path) -> None:
        """Write ``results.json``."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what ``save`` wrote; InvalidRequest when it is missing, something else, or newer."""
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error.strerror}. Give a run's results.json.") from error
        try:
            schema = msgspec.json.decode(raw, type=_Schema).schema
            if schema > SCHEMA:
                raise InvalidRequest(
                    f"{path} has schema {schema}; this version of Groundwire reads up to {SCHEMA}. Upgrade groundwire."
                )
            return msgspec.json.decode(raw, type=cls)
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"{path} is not the results.json of an evaluation: {error}.") from error


class _Schema(msgspec.Struct):
    schema: int
