"""The report about traffic, as records; ``traffic.json`` is ``TrafficReport``."""

from __future__ import annotations

from typing import Literal, TypeAlias

from groundwire.engine import UnsupportedSpan
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Citation
from groundwire.runtime.bundles.calibration import ProfileName

SCHEMA = 1
MIN_RESPONSES = 30
"""Of fewer responses, nothing is said about a shift or a drift."""
Factor: TypeAlias = Literal[
    "term", "response length", "knowledge length", "sentences", "language", "system", "source", "time"
]
"""By what responses are grouped."""


class Estimate(Record, frozen=True):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


Band: TypeAlias = Literal["alike", "too few to tell", "shifted", "different"]
"""``alike``: an index below 0.1, or no more than by chance; ``different``: above 0.25; ``too few to tell``: of
fewer than ``MIN_RESPONSES`` responses."""


class Shift(Record, frozen=True):
    """How far responses are from others in one quantity: the population stability index (``monitor.shift``)."""

    quantity: str
    responses: int
    index: float
    by_chance: float
    """What it is at most in 95 of 100 samples of this size without any shift."""
    band: Band


class CorrectedShare(Record, frozen=True):
    """The share of inconsistent responses, corrected for the verdict's errors (``monitor.prevalence``)."""

    share: Estimate
    """0–1. The interval counts the uncertainty of the traffic and of both error rates."""
    false_positive_rate: float
    """Share, 0–1, of the calibration's held-out consistent responses that are called inconsistent."""
    consistent: int
    """How many held-out consistent responses there are."""
    true_positive_rate: float
    """Share, 0–1, of its inconsistent responses, called so."""
    inconsistent: int


class ShareRange(Record, frozen=True):
    """What verdicts alone say of the share of inconsistent responses, where their error rates are not known."""

    low: float
    """Share, 0–1, that is called inconsistent, of the responses with a label; with a reference what is left of it where
    right responses are called so as often as the reference's are."""
    high: float
    """The same, and the share that is called unverifiable."""
    responses: int


class RowToLabel(Record, frozen=True):
    """A response near the threshold; it has no verdict, which would lead the person who labels it."""

    line: int
    id: str
    response: str
    knowledge: tuple[str, ...]
    history: tuple[str, ...]


class Group(Record, frozen=True):
    """Responses that share a term, a length, a system or a time, compared with all others."""

    factor: Factor
    name: str
    responses: int
    inconsistent: int
    """How many of them are called inconsistent."""
    share: Estimate
    others: float
    """The share among the other responses that the factor is known of."""
    p: float
    """Of Fisher's exact test, two-sided."""
    adjusted_p: float
    """By Benjamini and Yekutieli, over all groups of the report: of the groups below 0.05, 5 % are expected to be
    there by chance, whatever the tests have to do with each other."""


class ShareChange(Record, frozen=True):
    """A label's share of the responses, now and in the reference."""

    label: str
    reference: float
    now: float
    difference: Estimate
    """Newcombe's interval, from the intervals of both shares."""
    p: float
    """p value of the two-proportion z test, two-sided."""


class SystemDifference(Record, frozen=True):
    """Two systems by their shares of responses that are called inconsistent."""

    a: str
    b: str
    responses_a: int
    """Responses of A with a verdict consistent or inconsistent."""
    responses_b: int
    share_a: float
    """0–1."""
    share_b: float
    difference: Estimate
    """A − B; Newcombe's interval, from the intervals of both shares."""

    @property
    def is_small(self) -> bool:
        """Whether either system has fewer than ``MIN_RESPONSES`` responses."""
        return min(self.responses_a, self.responses_b) < MIN_RESPONSES


class Look(Record, frozen=True):
    """One of the times at which the traffic is compared with the reference."""

    number: int
    """From 1, over all reports of the traffic."""
    first: int
    last: int
    """Numbers of its first and last line."""
    responses: int
    inconsistent: int
    share: Estimate
    level: float
    """What the smaller p has to be below for an alert."""
    p: float
    """p value of Fisher's exact test that more of this look's responses are inconsistent than of the reference's."""
    p_so_far: float
    """The same of all responses up to this look."""
    alert: bool


class SampledTraffic(Record, frozen=True):
    """What a ``Monitor`` has counted."""

    offered: int
    """Responses that were offered to it."""
    drawn: int
    """Responses that were drawn and accepted; a response without a label waits."""
    dropped: int
    """Responses that were drawn while too many waited."""
    invalid: int
    """Responses whose texts are not usable."""
    failed: int
    """Drawn responses that could not be scored or written down."""
    labels: dict[str, int]
    """Scored responses by verdict."""
    share: Estimate | None
    """The share called inconsistent among the verdicts consistent and inconsistent; Wilson's interval."""
    corrected: Estimate | None
    """The same, corrected for the verdict's errors (``monitor.prevalence``); None where they are not known."""


class Drift(Record, frozen=True):
    """The traffic compared with a reference."""

    reference: str
    """What the reference is."""
    responses: int
    """Responses of the reference with a verdict consistent or inconsistent."""
    inconsistent: int
    share: Estimate
    changes: tuple[ShareChange, ...]
    shifts: tuple[Shift, ...]
    looks: tuple[Look, ...]
    alert_rate: float
    """The chance, 0–1, of any alert in any look without a change."""

    @property
    def alerts(self) -> tuple[Look, ...]:
        """The looks with an alert."""
        return tuple(look for look in self.looks if look.alert)

    @property
    def sizes(self) -> str:
        """How many responses are compared with how many of the reference."""
        return f"{sum(look.responses for look in self.looks)} against {self.responses}"

    @property
    def is_small(self) -> bool:
        """Whether no alert means nothing: either has fewer than ``MIN_RESPONSES`` responses."""
        return min(self.responses, sum(look.responses for look in self.looks)) < MIN_RESPONSES


class WorstResponse(Record, frozen=True):
    """An inconsistent response with one of the lowest probabilities."""

    line: int
    id: str
    probability: float
    response: str = ""
    """Empty, with the other texts, where the traffic has scores and no texts."""
    knowledge: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    system: str = ""
    source: str = ""
    time: str = ""
    unsupported: tuple[UnsupportedSpan, ...] = ()
    citations: tuple[Citation, ...] = ()


class ProbabilityCounts(Record, frozen=True):
    """Probabilities in twenty equal bins from 0 to 1."""

    now: tuple[int, ...]
    reference: tuple[int, ...] = ()


class TrafficReport(Record, frozen=True):
    """How much of the traffic is inconsistent, where, and since when."""

    schema: int
    when: str
    """ISO 8601, UTC."""
    source: str
    signatures: tuple[str, ...]
    """Signatures of the scores, the most frequent first."""
    lines: int
    """Lines of the input, less the lines of the reference."""
    rate: float
    """The share of lines that was drawn, 0–1."""
    labels: dict[str, int]
    """Lines by verdict; ``unscored`` are lines without a score."""
    problems: dict[str, int]
    """Lines without a score, by status."""
    incomplete: int
    """Verdicts with a feature that had no value and counts as its mean."""
    share: Estimate | None
    """The share called inconsistent among the responses with a verdict consistent or inconsistent; Wilson's interval.
    None without any."""
    corrected: CorrectedShare | None
    """None where the error rates are not known, or the responses are not like the calibration's; ``notes`` say why."""
    threshold: float | None
    """The threshold of all verdicts; None where they have several."""
    groups: tuple[Group, ...]
    """Groups that differ (adjusted p below 0.05) come first, the largest difference first."""
    like_calibration: tuple[Shift, ...]
    """Responses called consistent, compared with the calibration's consistent ones."""
    drift: Drift | None
    worst: tuple[WorstResponse, ...]
    probabilities: ProbabilityCounts
    first_time: str = ""
    last_time: str = ""
    notes: tuple[str, ...] = ()
    range: ShareRange | None = None
    """None without a verdict, and where both ends are the same: nothing is unverifiable."""
    stopped: dict[ProfileName, float] | None = None
    """Share, 0–1, of the scored lines that each profile would call inconsistent; None where the verdicts are not by a
    fusion of the calibration."""
    systems: tuple[SystemDifference, ...] = ()
    """Every pair of the largest systems (``monitor.systems``); empty of fewer than two systems."""
    sure: int = 0
    """How many of the labels consistent and inconsistent are sure (``Verdict.sure``)."""
