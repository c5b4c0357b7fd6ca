"""What a metric is: how it is computed, and every fact about it that the rest of the engine needs.

A metric yields rounds of model calls and returns a MetricResult (``groundwire.engine.scheduling.steps``). Groups, help,
the verdict, the marked words, tables and reports take what they say about a metric from its record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from groundwire.runtime.protocol import RoleInfo

from ..scheduling.steps import Steps
from ..schema.explanations import Reason, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult, Request

Group: TypeAlias = Literal["all", "paper", "fast"]
GROUPS: dict[Group, str] = {
    "all": "every metric that the bundle has the models for",
    "paper": "those that the papers' tables have",
    "fast": "those that read knowledge and response at most once: classifiers, rules and shared words",
}
"""Names of sets of metrics, and what is in them."""


class HasRange(Protocol):
    """A part of a text, in characters."""

    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


Ranged = TypeVar("Ranged", bound=HasRange)
RoleInfos: TypeAlias = Callable[[str], RoleInfo]
"""What the bundle says about a role, by the role's name: ``Runtime.role_info``."""
Cell: TypeAlias = str | float
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


class Refutes(NamedTuple):
    """A number of a metric that is proof where it is above 0."""

    feature: str
    """Its key in ``Metric.features``."""
    probability: float
    """The highest probability that a sentence with it is consistent."""


class Confirms(NamedTuple):
    """Parts of a response that it finds in the knowledge, and what they are worth where nothing else is doubted."""

    feature: str
    """Key in ``Metric.features`` of how many such parts there are."""
    unless: tuple[str, ...]
    """Keys of numbers that must not be above 0."""
    ranges: Callable[[MetricResult], Iterable[HasRange]]
    """The parts."""
    logit: float
    """What is added to the logit of the probability that a sentence is consistent."""
    disputed_logit: float
    """What is added instead where other metrics doubt words of these parts: their doubts are refuted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric and its facts. A new metric needs a record of this kind, and nothing anywhere else."""

    name: str
    title: str
    """As tables print it."""
    description: str
    """What it measures, in half a sentence without a full stop."""
    compute: Callable[[Request, Options, RoleInfos], Steps[MetricResult]]
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

    # What the verdict and the marked words make of it.
    family: str = ""
    """Metrics of one family agree by construction, so as evidence about words they count once. Empty: its own name."""
    word_weight: float | Mapping[Reason, float] | None = None
    """Weight of its evidence about the words it points at, perhaps by reason; from 1 on a word is marked by it alone.
    None: it points at whole sentences, whose weight depends on the reason (``SENTENCE_WEIGHTS``)."""
    precision: Literal[0, 1, 2] = 0
    """How precisely its evidence points: 0 at sentences, 1 at words that may be the wrong ones (an answer, a word that
    the knowledge lacks), 2 at words that are wrong. A sentence with words marked at one level marks none at a lower
    one."""
    spans: Callable[[MetricResult], tuple[UnsupportedSpan, ...]] = spans_of_result
    """The spans of a scored result that count as evidence."""
    features: Callable[[Any], Mapping[str, float]] = no_features
    """Further numbers in its explanation; the fusion knows each as ``name.key``, and the value as ``name``."""
    part: Callable[[MetricResult, int, int], Mapping[str, float]] = no_part
    """The numbers of a scored result about the characters ``start`` to ``end`` of the response, a sentence of it: by
    the keys of ``features``, ``""`` for the value. Those that need the whole response are left out."""
    in_context: bool = False
    """Whether its model reads the sentences of a response together, so that a fusion that reads it scores the response
    as a whole (``Fusion.whole``)."""
    apart: bool = False
    """Whether its model reads a sentence apart from its response for the numbers of ``part``, which costs a call for
    each. A fusion of a metric that is ``in_context`` does not read them."""
    refutes: tuple[Refutes, ...] = ()
    """The numbers that are proof rather than evidence."""
    confirms: Confirms | None = None
    """What speaks for a sentence in which no metric doubts another word; None: nothing does."""
    states: str = ""
    """Key of a number above 0 where a text states something that can be checked, whatever a classifier makes of it."""
    contradicts: str = ""
    """Key of the probability that the knowledge says the opposite: what it contradicts surely was stated."""
    evidence: tuple[str, ...] = ()
    """The numbers that a fitted verdict reads by default: ``""`` for the value, else keys of ``features``. Variants of
    another metric (Q² without inference, UPMI) have none."""
    lower_is_better: tuple[str, ...] = ()
    """Those that grow with what is wrong."""
    probabilities: tuple[str, ...] = ()
    """Those that are a model's probabilities, 0–1: a fitted verdict adds up their logits."""
    uninformative: tuple[str, ...] = ()
    """Those that say how much there is to check, and not whether it is supported."""
    verifiability: str | None = None
    """The number that says if there is anything to check, and not how consistent it is: ``""`` for the value, else a
    key of ``features``. Below the calibration's ``verifiable`` the verdict is ``unverifiable``. None: no number is."""
    cites: bool = False
    """Whether its explanation (a ``CitationsExplanation``) names the sentences of the knowledge that support each
    sentence: the citations of the score."""

    # How it is shown.
    details: Callable[[MetricResult], Details | None] = no_details

    @property
    def evidence_family(self) -> str:
        """``family``, or the metric's name."""
        return self.family or self.name

    def weight(self, span: UnsupportedSpan) -> float:
        """Return the weight of an unsupported span as evidence.

        Args:
            span: One of the metric's spans.

        Returns:
            The weight, from 0; 1 marks a word alone.
        """
        if isinstance(self.word_weight, Mapping):
            return self.word_weight[span.reason]
        return self.word_weight if self.word_weight is not None else SENTENCE_WEIGHTS.get(span.reason, 0.4)


def within(items: Iterable[Ranged], start: int, end: int) -> tuple[Ranged, ...]:
    """Those of ``items`` that lie in the characters ``start`` to ``end``."""
    return tuple(item for item in items if start <= item.start and item.end <= end)


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
