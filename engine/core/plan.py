"""What a request will compute, decided once and without any model: its metrics, and the signature of its scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from groundwire.runtime.arguments import check_sequence
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.decoding.search import check_decoding
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Identity

from ..metrics import GROUPS, Metric, available, select
from ..metrics.claims import VERIFIABILITY
from ..schema.base import check_record
from ..schema.options import Options
from ..schema.validation import check_texts
from ..verdict.fusion import Criteria, bind_criteria
from ..verdict.operating_point import find_operating_point
from .signature import signature

check_record(Options(), Options)  # here on one thread: its annotations are read at the first use
DEFAULT_METRICS = ("q2",)
"""Without a calibration, whose metrics are the default otherwise; all metrics where the bundle lacks its roles."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How requests with these metrics and options are scored."""

    metrics: tuple[Metric, ...]
    options: Options
    calibration: Calibration | None
    signature: str
    """The signature of every score that the plan gives."""
    complete: Options
    """The options with what they leave to the plan: how the metrics compute."""
    criteria: Criteria
    """How the results become a verdict."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics, in order."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def roles(self) -> frozenset[str]:
        """The roles whose models run."""
        of_metrics = frozenset(role for metric in self.metrics for role in metric.roles)
        return of_metrics | ({VERIFIABILITY} if self.options.claim_filter == "verifiable" else set())


def make_plan(
    roles: Iterable[str],
    identity: Identity,
    calibration: Calibration | None,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
    calibration_digest: str | None = None,
) -> Plan:
    """Resolve metric names and groups against the bundle's roles, and check the options.

    Args:
        roles: Roles of the bundle.
        identity: The bundle and runtime that run the models, for the signature.
        calibration: How values are read; None where none was fitted.
        metrics: Names of metrics or groups, also as one string with commas; None, and ``default``, take the metrics of
            the calibration; without one, ``q2`` if the roles suffice, else all metrics for which they do.
        options: Options of the requests; None takes the defaults.
        calibration_digest: ``calibration.digest()``, where it is known; computing it takes half a millisecond.

    Raises:
        InvalidRequest: A name is unknown or cannot be computed with these roles, the profile is unknown, the
            calibration cannot promise the false positive rate, or a claim filter lacks its role.
    """
    roles = frozenset(roles)
    options = check_options(options, roles, calibration)
    selected = select(_names(metrics, calibration, roles), roles)
    names = tuple(metric.name for metric in selected)
    if calibration is not None and calibration_digest is None:
        calibration_digest = calibration.digest()
    signed = signature(identity, names, options, calibration_digest)
    point = options.profile, options.max_false_positive_rate, options.threshold
    criteria = bind_criteria(selected, calibration, *point)
    return Plan(selected, options, calibration, signed, _complete(options, criteria), criteria)


def _complete(options: Options, criteria: Criteria) -> Options:
    """The options with ``sentences`` of inference and detectors as the verdict needs it."""
    apart = criteria.rule is None or not criteria.rule.weights.reads_in_response
    if options.nli.sentences is None:
        options = replace(options, nli=replace(options.nli, sentences=apart))
    if options.detector.sentences is None:
        options = replace(options, detector=replace(options.detector, sentences=apart))
    return options


def check_options(options: Options | None, roles: frozenset[str], calibration: Calibration | None) -> Options:
    """The options, by default the defaults; InvalidRequest for a value out of range, for a profile or a claim filter
    that the bundle lacks, for two choices of a threshold, and for a false positive rate that its calibration cannot
    promise."""
    options = Options() if options is None else check_record(options, Options)
    for decoding in (options.q2.decoding, options.feqa.decoding):
        if decoding is not None:
            check_decoding(decoding)
    check_texts(options)
    if options.threshold is not None:
        others = {"max_false_positive_rate": options.max_false_positive_rate, "profile": options.profile}
        for name, value in others.items():
            if value != getattr(Options(), name):
                raise InvalidRequest(
                    f"Options.threshold is {options.threshold:g} and Options.{name} is {value!r}, and both choose the "
                    "threshold of the verdict; give one of them."
                )
    if calibration is not None:
        for fusion in calibration.fusions:
            find_operating_point(fusion, options.profile, options.max_false_positive_rate)
    if options.claim_filter == "verifiable" and VERIFIABILITY not in roles:
        raise InvalidRequest(
            f"Options.claim_filter is 'verifiable', but the bundle has no role {VERIFIABILITY!r}; "
            "export one into it, or leave claim_filter out."
        )
    return options


def _names(
    metrics: Sequence[str] | str | None, calibration: Calibration | None, roles: frozenset[str]
) -> Sequence[str]:
    default: Sequence[str] = DEFAULT_METRICS if available(roles).keys() >= set(DEFAULT_METRICS) else ("all",)
    if calibration is not None:
        default = calibration.metrics
    if metrics is None:
        return default
    if isinstance(metrics, str):
        metrics = [name.strip() for name in metrics.split(",")]
    allowed = f"a list of names, or of {', '.join(GROUPS)}"
    names: list[str] = []
    for name in check_sequence("metrics", metrics, allowed):
        if not isinstance(name, str):
            raise InvalidRequest(f"metrics has {name!r}, which is no name; pass {allowed}.")
        names += default if name == "default" else (name,)
    return names
