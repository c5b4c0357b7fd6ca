"""What a metric is: how it is computed, and every fact about it that the rest of the engine needs.

A metric yields rounds of model calls and returns a MetricResult (``groundwire.engine.schema.steps``). Groups, help,
the verdict, the marked words, tables and reports take what they say about a metric from its record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from groundwire.runtime.protocol import RoleInfo

from ..schema.explanations import REASONS, Reason, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult, Status
from ..schema.steps import Steps
from .requests import ReadRequest

Group: TypeAlias = Literal["default", "all", "paper", "fast"]
GROUPS: dict[Group, str] = {
    "default": "those of the bundle's verdict; without a calibration q2, or all where its models are missing",
    "all": "every metric that the bundle has the models for",
    "paper": "those that the papers' tables have",
    "fast": "those that read knowledge and response at most once: classifiers, rules and shared words",
}
"""Names of sets of metrics, and what is in them."""


RoleInfos: TypeAlias = Callable[[str], RoleInfo]
"""What the bundle says about a role, by the role's name: ``Runtime.role_info``."""
Cell: TypeAlias = str | float
ROUNDING = 1e-6
"""How far beyond its bounds a value may be: models compute in single precision."""
_STATUSES = frozenset(get_args(Status))
SENTENCE_WEIGHTS: Mapping[str, float] = {"contradiction": 0.6}
"""Weight of evidence about a sentence, by reason; 0.4 for a reason that is not listed."""


@dataclass(frozen=True, slots=True)
class Details:
    """How a metric came to its value, as a table for people. A number is a value between 0 and 1."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    """What the table does not show, one sentence each."""


def spans_of_result(result: MetricResult) -> tuple[UnsupportedSpan, ...]:
    """The spans that a result lists."""
    return result.unsupported


def no_features(explanation: Any) -> Mapping[str, float]:
    """No numbers besides the metric's value."""
    return {}


def no_part(result: MetricResult, start: int, end: int) -> Mapping[str, float]:
    """Nothing to say about a part of the response."""
    return {}


def keep_options(options: Options) -> Options:
    """The options as they are."""
    return options


def no_details(result: MetricResult) -> Details | None:
    """Nothing to show besides the value."""
    return None


About: TypeAlias = Literal["support", "amount", "verifiability"]
"""What a number says of a text: how well it is supported, how much there is to check, or whether there is anything."""


@dataclass(frozen=True, slots=True)
class MetricNumber:
    """What one number of a metric says."""

    key: str = ""
    """Its key in ``Metric.features``; empty for the value."""
    about: About = "support"
    is_evidence: bool = False
    """Whether a fitted verdict reads it by default. Variants of another metric (Q² without inference, UPMI) have no
    such number."""
    is_lower_better: bool = False
    """Whether it grows with what is wrong."""
    is_probability: bool = False
    """Whether it is a model's probability, 0–1: a fitted verdict adds up the logits."""

    @property
    def rates_verifiability(self) -> bool:
        """Whether it says if there is anything to check."""
        return self.about == "verifiability"


@dataclass(frozen=True, slots=True)
class WordEvidence:
    """How a metric points at words of the response."""

    weight: float | Mapping[Reason, float]
    """Weight of its evidence about a word, perhaps by reason; from 1 on a word is marked by it alone."""
    precision: Literal[0, 1, 2] = 0
    """How precisely its evidence points: 0 at sentences, 1 at words that may be the wrong ones (an answer, a word that
    the knowledge lacks), 2 at words that are wrong. A sentence with words marked at one level marks none at a lower
    one."""
    family: str = ""
    """Metrics of one family agree by construction, so as evidence about words they count once. Empty: its own name."""
    spans: Callable[[MetricResult], tuple[UnsupportedSpan, ...]] = spans_of_result
    """The spans of a scored result that count as evidence."""
    is_certain: bool = False
    """Whether its spans are reported as they are, also in sentences that the verdict finds consistent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric and its facts. A new metric needs a record of this kind, and nothing anywhere else."""

    name: str
    title: str
    """As tables print it."""
    description: str
    """What it measures, in half a sentence without a full stop."""
    compute: Callable[[ReadRequest, Options, RoleInfos], Steps[MetricResult]]
    roles: frozenset[str] = frozenset()
    """Bundle roles it needs."""
    use_spare_time: Callable[[Options], Options] = keep_options
    """Options for a device with time to spare, where calls that may turn out not to be needed cost less than another
    round of calls. The values must not depend on it."""
    package: str = ""
    """A module that must be installed for it; empty when the base installation is enough."""
    groups: frozenset[Group] = frozenset()
    """Those of ``paper`` and ``fast`` that it belongs to; ``all`` has every metric."""
    order: int = 100
    """Its position in groups and lists: ascending, then by name."""
    bounds: tuple[float, float] | None = (0.0, 1.0)
    """Least and largest value; None where a value has no bounds."""

    # What the verdict and the marked words read.
    numbers: tuple[MetricNumber, ...] = ()
    """What its numbers say, as far as something is to be said about them."""
    features: Callable[[Any], Mapping[str, float]] = no_features
    """Further numbers in its explanation; the fusion knows each as ``name.key``, and the value as ``name``."""
    part: Callable[[MetricResult, int, int], Mapping[str, float]] = no_part
    """The numbers of a scored result about the characters ``start`` to ``end`` of the response, a sentence of it: by
    the keys of ``features``, ``""`` for the value. Those that need the whole response are left out."""
    reads_sentences: Literal["apart", "in_response"] | None = None
    """How its model reads the sentences that ``part`` has numbers of: ``apart`` from their response, which costs a call
    for each, or together, so that a fusion with such a metric scores the response as a whole (``Fusion.whole``) and
    reads no numbers of sentences apart. None: it does neither."""
    words: WordEvidence | None = None
    """How it points at words. None: it points at whole sentences, whose weight depends on the reason
    (``SENTENCE_WEIGHTS``)."""
    cites: bool = False
    """Whether its explanation (a ``CitationsExplanation``) names the sentences of the knowledge that support each
    sentence: the citations of the score."""
    quotes: bool = False
    """Whether its explanation (a ``QuotationsExplanation``) has the quotations of the score."""

    # How it is shown.
    details: Callable[[MetricResult], Details | None] = no_details

    def check(self, outcome: object, response: str) -> MetricResult:
        """Return what ``compute`` gave about a response, or the result ``failed`` that says what is wrong with it.

        A metric of the caller's may give anything. Nothing that it says wrongly reaches a verdict, a mark or a table.

        Args:
            outcome: What it gave.
            response: The response as the metric read it.

        Returns:
            The outcome, or a result without a value whose message names the metric and what is allowed.
        """
        problem = f"gave {type(outcome).__name__}; return a MetricResult"
        if isinstance(outcome, MetricResult) and not (problem := self._find_problem(outcome, response)):
            return outcome
        message = f"The metric {self.name} {problem}. This is a defect of its code."
        return MetricResult(self.name, "failed", message=message)

    def _find_problem(self, result: MetricResult, response: str) -> str:
        """What a result says that it may not, and what is allowed; empty for nothing."""
        value: Any = result.value  # of a metric of the caller's, whatever its type says
        if result.name != self.name:
            return f"gave a result with the name {result.name!r:.60}; name it {self.name!r}"
        if result.status not in _STATUSES:
            return f"gave the status {result.status!r:.60}; allowed are {', '.join(get_args(Status))}"
        if result.status != "scored":  # then it has no value
            return ""
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            return f"gave {value!r:.40} as its value; give a finite number"
        if self.bounds is not None and not self.bounds[0] - ROUNDING <= float(value) <= self.bounds[1] + ROUNDING:
            low, high = self.bounds
            return f"gave the value {value:g}; its Metric.bounds are {low:g} to {high:g}, and None is for no bounds"
        return next(filter(None, (_find_problem_of_span(span, response) for span in result.unsupported)), "")

    def number(self, key: str) -> MetricNumber:
        """Return what a number says.

        Args:
            key: Its key in ``features``; empty for the value.

        Returns:
            The entry of ``numbers``, or an entry that says nothing special.
        """
        return next((number for number in self.numbers if number.key == key), MetricNumber(key))

    def name_number(self, key: str) -> str:
        """Return the name that a number has as a feature of a fusion.

        Args:
            key: Its key in ``features``; empty for the value.

        Returns:
            ``name.key``, or ``name`` for the value.
        """
        return f"{self.name}.{key}" if key else self.name

    @property
    def rates_verifiability(self) -> bool:
        """Whether a number of it says if there is anything to check, so that it can do without knowledge."""
        return any(number.rates_verifiability for number in self.numbers)

    @property
    def family(self) -> str:
        """The family of its evidence about words, by default its own."""
        return (self.words and self.words.family) or self.name

    @property
    def precision(self) -> int:
        """How precisely it points, 0–2 (``WordEvidence.precision``)."""
        return self.words.precision if self.words else 0

    def list_spans(self, result: MetricResult) -> tuple[UnsupportedSpan, ...]:
        """Return the spans that count as evidence.

        Args:
            result: A scored result of the metric.

        Returns:
            Ranges of the response.
        """
        return self.words.spans(result) if self.words else result.unsupported

    def weight(self, span: UnsupportedSpan) -> float:
        """Return the weight of an unsupported span as evidence.

        Args:
            span: One of the metric's spans.

        Returns:
            The weight, from 0; 1 marks a word alone.
        """
        if self.words is None:
            return SENTENCE_WEIGHTS.get(span.reason, 0.4)
        weight = self.words.weight
        return weight if isinstance(weight, float | int) else weight[span.reason]


def _find_problem_of_span(span: Any, response: str) -> str:
    if not isinstance(span, UnsupportedSpan):
        return f"gave {type(span).__name__} as unsupported; give UnsupportedSpan records"
    if span.reason not in REASONS:
        return f"gave the reason {span.reason!r:.60}; allowed are {', '.join(REASONS)}"
    if not (type(span.start) is type(span.end) is int and 0 <= span.start < span.end <= len(response)):
        return (
            f"gave the characters {span.start!r:.20} to {span.end!r:.20} as unsupported; the response as it reads it "
            f"has {len(response)}"
        )
    return ""


class BoundResult(NamedTuple):
    """A metric and its result."""

    metric: Metric
    result: MetricResult


def skip(metric: Metric) -> Steps[MetricResult]:
    """The result of a metric that compares with knowledge, of a request without any; it asks no model."""
    message = "No knowledge was given, so there is nothing to compare with."
    return without_calls(lambda: MetricResult(metric.name, "nothing_to_verify", message=message))


def without_calls(build: Callable[[], MetricResult]) -> Steps[MetricResult]:
    """Return the steps of a metric that asks no model.

    Args:
        build: Computes the result.

    Returns:
        A generator without calls that returns the result.
    """
    yield from ()  # what makes this a generator
    return build()
