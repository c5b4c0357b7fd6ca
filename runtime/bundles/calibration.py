"""What a bundle knows about its metrics' values: their calibration, how to fuse them, where to draw the line.

Numbers only, fitted on labelled development sets and stored in the manifest or in a user's own file; what they mean is
computed in ``groundwire.engine.verdict`` and ``groundwire.engine.verdict.operating_point``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from operator import lt
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from ..errors import BundleError, InvalidRequest
from .decode import SCHEMA, decode_versioned

MAX_BYTES = 1 << 24
"""Bytes of a calibration's file; one of six sets has 100,000."""
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
ProfileName: TypeAlias = Literal["balanced", "strict", "lenient"]
Quantity: TypeAlias = Literal["probability", "words", "overlap"]
"""The fused probability of a held-out response, its length in words, the share of its words that the knowledge has."""


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The calibration of one metric."""

    low: float
    high: float
    """Smallest and largest value on the development set: 0 and 1 of the min-max form (PMI-Faith, table 9)."""
    threshold: Share
    """On the min-max form, 0–1: from here on (inclusive) a response counts as consistent. It has the best balanced
    accuracy on the development set, and decides ``MetricResult.decision``."""

    def normalize(self, value: float) -> float:
        """Return the min-max form of a metric's value.

        Args:
            value: The metric's value.

        Returns:
            Its place between ``low`` and ``high``, 0–1; 0 where these are equal.
        """
        if self.high <= self.low:
            return 0.0
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


MAX_LOGIT = math.log(999)
"""Largest logit of a feature, for the probability 0.999: beyond it a model's confidence says nothing more."""


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One input of the fusion: ``weight · (value − mean) / deviation`` is added to the logit."""

    name: str
    """A metric, or a number of its explanation (``groundwire.engine.verdict.fusion`` lists them)."""
    mean: float
    deviation: Annotated[float, msgspec.Meta(gt=0)]
    weight: float
    needed: bool = False
    """Without it the verdict is unknown; another feature that is missing counts as its mean."""
    logit: bool = False
    """Whether the value is a probability, 0–1, whose logit counts instead (``bounded_logit``)."""

    def contribution(self, value: float) -> float:
        """Return what a metric's value adds to the logit of the verdict.

        Args:
            value: The metric's value; a probability, 0–1, if ``logit`` is set.

        Returns:
            The summand, in units of the logit; NaN for a value that is not a probability where one is needed.
        """
        return self.weight * ((bounded_logit(value) if self.logit else value) - self.mean) / self.deviation


def bounded_logit(probability: float) -> float:
    """Return log(p / (1 − p)), bounded on both sides.

    >>> bounded_logit(0.5), bounded_logit(1.0) == MAX_LOGIT, bounded_logit(1.5)
    (0.0, True, nan)

    Args:
        probability: A probability, 0–1.

    Returns:
        The logit, from −``MAX_LOGIT`` to ``MAX_LOGIT``; NaN, which gives no verdict, outside 0–1.
    """
    if not 0 <= probability <= 1:
        return math.nan
    if probability in (0, 1):
        return math.copysign(MAX_LOGIT, probability - 0.5)
    return min(max(math.log(probability / (1 - probability)), -MAX_LOGIT), MAX_LOGIT)


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An operating point and what to expect of it. Positive: called inconsistent.

    The rates are means over labelled sets. Each set was left out when the threshold that is measured on it was chosen,
    and each response when the weights were fitted.
    """

    threshold: Share
    """Probability, 0–1, from which a response is called consistent."""
    max_false_positive_rate: Share | None = None
    """The promise: the false positive rate on responses like the calibration's is at most this
    (``engine.verdict.operating_point``). None: a profile that promises none."""
    false_positive_rate: Share
    """Share, 0–1, of the consistent responses that are called inconsistent."""
    false_negative_rate: Share
    """Share, 0–1, of the inconsistent responses that are not called so; 1 minus the power."""
    unverifiable_rate: Share
    """The part of the false negative rate whose responses are called unverifiable; the others are called consistent."""
    coverage: Share
    """Share, 0–1, of the labels consistent and inconsistent that are sure (``Fusion.band``); both classes count the
    same."""
    risk: Share
    """Share, 0–1, of these sure labels that are wrong; 0 without any."""
    sets: Annotated[int, msgspec.Meta(ge=0)]
    """Sets that were left out; 1 for one set, whose folds were left out; 0 where nothing was measured."""


class OrderStatistics(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Probabilities of held-out responses of one class, sorted, by a fusion that was fitted without them.

    The m values have the ranks ``j · count // m`` for j from 1 to m: all of them where ``count`` is m, otherwise
    evenly spread. They are rounded down, so that a threshold drawn from them is never too high.
    """

    count: Annotated[int, msgspec.Meta(ge=0)]
    """Responses, without those that are called unverifiable."""
    values: tuple[Share, ...]
    """Ascending, at most as many as ``count``."""
    unverifiable: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Further responses, which are called unverifiable whatever the threshold."""

    def __post_init__(self) -> None:
        if (
            len(self.values) > self.count
            or (self.count and not self.values)
            or list(self.values) != sorted(self.values)
        ):
            raise ValueError("the values are ascending, at least one where count is above 0, and at most count")


class HeldOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What thresholds are drawn from."""

    consistent: OrderStatistics
    inconsistent: OrderStatistics
    made: bool = False
    """Whether the inconsistent responses are edited consistent ones (``groundwire calibrate --trusted``): then how
    often real errors are missed is not known."""


class Distribution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a quantity is distributed over the consistent responses of a calibration: counts between its deciles."""

    edges: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
    """Strictly ascending; a value is in the bin after the last edge that it reaches."""
    counts: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
    """One more than edges."""

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.edges) + 1 or not all(map(lt, self.edges, self.edges[1:])):
            raise ValueError("the edges are strictly ascending, and there is one count more than edges")


class Band(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Probabilities at which labels are not sure: from ``low``, and below ``high``."""

    low: Share = 0.0
    high: Share = 1.0

    def is_sure(self, probability: float, *, consistent: bool) -> bool:
        """Return whether a label is sure.

        Args:
            probability: The probability, 0–1, of being consistent.
            consistent: Whether the label is consistent; else it is inconsistent.
        """
        return probability >= self.high if consistent else probability < self.low


class Fusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One probability of "consistent" from a set of metrics, and the thresholds for it."""

    name: str
    """``reader``, ``full``, ``fast`` or what ``groundwire calibrate --set fusion=NAME`` was given."""
    metrics: tuple[str, ...]
    """Those that it reads, and verifiability where that is checked."""
    intercept: float
    features: Annotated[tuple[Feature, ...], msgspec.Meta(min_length=1)]
    """At least one: without evidence the verdict is unknown."""
    profiles: Annotated[dict[ProfileName, Profile], msgspec.Meta(min_length=1)]
    band: Band = Band()
    """Where labels are not sure. Outside it at least 90 % of the labels of held-out responses are right, of each label
    for itself, with both classes in equal shares; where that is not reached, as many as can be. Without a fit no label
    is sure."""
    whole: bool = False
    """Whether a response of several sentences is scored by all its numbers together, instead of by its worst sentence:
    for models that read sentences in their response."""
    held_out: HeldOut | None = None
    """None in calibrations of earlier versions, which have the thresholds of their profiles and no others."""
    distributions: dict[Quantity, Distribution] = {}
    """How the calibration's consistent responses look, for comparison with others; empty in earlier versions."""

    def profile(self, name: ProfileName) -> Profile:
        """Return an operating point by its name.

        Args:
            name: Name of one of ``profiles``.

        Returns:
            The operating point: a threshold with its error rates.

        Raises:
            InvalidRequest: The fusion has no such profile.
        """
        if name not in self.profiles:
            raise InvalidRequest(f"The calibration has no profile {name!r}; it has {', '.join(self.profiles)}.")
        return self.profiles[name]


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything a verdict needs besides the metrics."""

    schema: int = SCHEMA
    fitted_on: tuple[str, ...]
    """Names of the labelled sets."""
    rows: Annotated[int, msgspec.Meta(ge=0)]
    """How many labelled responses they have."""
    row_digests: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Digests of these responses with their knowledge (``evaluate.datasets.examples.Example.digest``), ascending. Unset
    in calibrations of earlier versions, which do not know their rows."""
    fusions: Annotated[tuple[Fusion, ...], msgspec.Meta(min_length=1)]
    """The first one's metrics are the default of ``Engine.score``. Which of them draws a verdict depends on the metrics
    that are asked for (``engine.verdict.fusion``)."""
    scales: dict[str, Scale]
    """By metric."""
    verifiable: Share | None = 0.5
    """Verifiability below which a response is ``unverifiable``; None never says so."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the first fusion: the default of ``Engine.score``."""
        return self.fusions[0].metrics

    def fusion(self, name: str) -> Fusion:
        """Return a fusion by its name.

        Args:
            name: Name of one of ``fusions``.

        Returns:
            The fusion.

        Raises:
            InvalidRequest: The calibration has no such fusion.
        """
        for fusion in self.fusions:
            if fusion.name == name:
                return fusion
        raise InvalidRequest(
            f"The calibration has no fusion {name!r}; it has {', '.join(f.name for f in self.fusions)}."
        )

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a file that ``save`` wrote.

        Args:
            path: The file.

        Returns:
            The calibration.

        Raises:
            BundleError: The file is missing, damaged, or of another schema.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise BundleError(f"The calibration {path} cannot be read ({error.strerror}).") from error
        if len(raw) > MAX_BYTES:
            raise BundleError(f"{path} has more than {MAX_BYTES:,} bytes, so it is no calibration.")
        return decode_versioned(
            raw,
            cls,
            path,
            lambda reason: BundleError(f"{path} is no calibration: {reason}. Write one with Calibration.save."),
        )

    def save(self, path: str | Path) -> None:
        """Write the file that ``load`` reads.

        Args:
            path: The file; an existing file is replaced.

        Raises:
            OSError: The file cannot be written.
        """
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    def digest(self) -> str:
        """Eight hexadecimal digits that change with any number."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:8]


def join_calibrations(calibrations: Sequence[Calibration | None]) -> Calibration | None:
    """Join the calibrations of bundles that are loaded together.

    Args:
        calibrations: The calibration of each bundle, in the order of loading; None for a bundle without one.

    Returns:
        The first calibration, with the fusions and scales that only others have. The fusions of the others come before
        its own, so the first of them says which metrics are the default. None where no bundle has a calibration.
    """
    present = [calibration for calibration in calibrations if calibration is not None]
    if not present:
        return None
    first = present[0]
    for other in present[1:]:
        names = {fusion.name for fusion in first.fusions}
        first = msgspec.structs.replace(
            first,
            fitted_on=tuple(dict.fromkeys((*first.fitted_on, *other.fitted_on))),
            rows=max(first.rows, other.rows),
            row_digests=tuple(sorted({*(first.row_digests or ()), *(other.row_digests or ())})) or msgspec.UNSET,
            fusions=(*(fusion for fusion in other.fusions if fusion.name not in names), *first.fusions),
            scales={**other.scales, **first.scales},
        )
    return first
