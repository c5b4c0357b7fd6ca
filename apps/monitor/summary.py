"""From scored lines to the report about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np

from groundwire.engine.schema.results import Label
from groundwire.runtime.bundles.calibration import Calibration, Fusion, ProfileName
from groundwire.runtime.errors import InvalidRequest

from .concentration import find_groups
from .drift import compare_with_reference
from .observations import Observation, Observations, to_iso
from .prevalence import correct_share, count_errors, share
from .records import (
    MIN_RESPONSES,
    SCHEMA,
    CorrectedShare,
    Drift,
    Estimate,
    ProbabilityCounts,
    ShareRange,
    Shift,
    TrafficReport,
)
from .shift import compare_responses
from .systems import compare_systems

BINS = 20


class Reference(NamedTuple):
    """What the traffic is compared with, and how."""

    observations: Observations
    name: str
    alert_rate: float
    look_size: int
    looks_before: int = 0


def build_report(
    observations: Observations,
    source: str,
    when: str,
    calibration: Calibration | None,
    *,
    rate: float = 1.0,
    lines: int | None = None,
    reference: Reference | None = None,
) -> TrafficReport:
    """Describe traffic by its verdicts.

    Args:
        observations: The scores, at least one.
        source: Name of the input, for the report.
        when: Date of the report.
        calibration: The calibration of the verdicts, which corrects the share; None leaves that out.
        rate: Share of the input's lines that was drawn, above 0 up to 1.
        lines: Lines of the input; None for as many as there are observations.
        reference: Earlier traffic to compare with; None for no comparison.

    Returns:
        The report.

    Raises:
        InvalidRequest: No line has a score.
    """
    if not observations.rows:
        raise InvalidRequest(
            f"{source} has no line with a score, so there is nothing to report. Give responses with their knowledge, "
            "or the results of `groundwire score`."
        )
    verdicts = observations.verdicts
    inconsistent = sum(row.is_inconsistent for row in verdicts)
    systems = compare_systems(verdicts)
    notes: list[str] = []
    fusion = _find_fusion(observations, calibration, notes)
    corrected = None
    if calibration is not None and fusion is not None:
        corrected = _correct(observations, inconsistent, len(verdicts), calibration, fusion, notes)
    like_calibration = _compare_with_calibration(verdicts, fusion)
    if corrected is not None and (unlike := _explain_unlike(like_calibration)):
        corrected = None
        notes.append(unlike)
    drift = _find_drift(observations, reference, notes)
    times = [row.time for row in observations.rows if row.time is not None]
    thresholds = {threshold for _, threshold in observations.thresholds}
    return TrafficReport(
        SCHEMA,
        when,
        source,
        tuple(signature for signature, _ in observations.signatures.most_common()),
        observations.labels.total() if lines is None else lines,
        rate,
        {label: observations.labels[label] for label in (*get_args(Label), "unscored")},
        dict(observations.problems),
        observations.incomplete,
        Estimate(*share(inconsistent, len(verdicts))) if verdicts else None,
        corrected,
        thresholds.pop() if len(thresholds) == 1 else None,
        find_groups(verdicts, {name for pair in systems for name in (pair.a, pair.b)}),
        like_calibration,
        drift,
        observations.worst,
        ProbabilityCounts(_count_bins(verdicts), _count_bins(reference.observations.verdicts) if reference else ()),
        to_iso(min(times, default=None)),
        to_iso(max(times, default=None)),
        tuple(notes),
        _find_range(observations.rows, reference) if verdicts else None,
        None if fusion is None else _find_stopped(observations.rows, fusion),
        systems,
        sum(row.sure for row in verdicts),
    )


def _find_range(rows: Sequence[Observation], reference: Reference | None) -> ShareRange | None:
    labels = [row.label for row in rows if row.label != "unknown"]
    inconsistent = labels.count("inconsistent")
    called = inconsistent / len(labels)
    low, others = called, [row.label for row in reference.observations.rows] if reference else []
    if "consistent" in others:
        # If all of the reference are right, so often are right ones called inconsistent; if not, it is less often.
        usual = others.count("inconsistent") / len(others)
        low = max(0.0, (called - usual) / (1 - usual))
    high = (inconsistent + labels.count("unverifiable")) / len(labels)
    return ShareRange(low, high, len(labels)) if low < high else None


def _find_stopped(rows: Sequence[Observation], fusion: Fusion) -> dict[ProfileName, float]:
    values = [row.probability for row in rows if row.has_verdict and row.probability is not None]
    return {
        name: sum(value < profile.threshold for value in values) / len(rows)
        for name, profile in fusion.profiles.items()
    }


def _explain_unlike(shifts: Sequence[Shift]) -> str:
    """Why the calibration's error rates may not be taken for these responses; empty where they may."""
    if not shifts:
        return (
            "The share is not corrected: it is not known whether the responses are like those of the calibration, "
            "whose error rates are known."
        )
    if any(shift.band == "too few to tell" for shift in shifts):
        return (
            f"The share is not corrected: fewer than {MIN_RESPONSES} responses are called consistent, too few to tell "
            "whether they are like those of the calibration, whose error rates are known."
        )
    unlike = [shift.quantity for shift in shifts if shift.band != "alike"]
    if not unlike:
        return ""
    return (
        f"The share is not corrected: the responses differ from those of the calibration in {' and '.join(unlike)}, "
        "so how often the verdict errs here is not known. Label the responses nearest to the threshold (--sheet), and "
        "calibrate on them."
    )


def _find_fusion(observations: Observations, calibration: Calibration | None, notes: list[str]) -> Fusion | None:
    """The fusion that all verdicts are by; None, and a note, where they are not by one of this calibration."""
    fusions = {fusion for fusion, _ in observations.thresholds}
    if not fusions:
        notes.append("No response has a verdict consistent or inconsistent, so there is no share of inconsistent ones.")
        return None
    foreign = [
        signature
        for signature in observations.signatures
        if calibration is None or not signature.endswith(f"|calibration:{calibration.digest()}")
    ]
    if calibration is None or foreign:
        notes.append(
            "The share is not corrected: verdicts are by another calibration than that of the bundle, whose error "
            "rates are known. Name theirs with --bundle, or their calibration."
        )
        return None
    if len(fusions) > 1:
        notes.append(f"The share is not corrected: verdicts are by several fusions, {', '.join(sorted(fusions))}.")
        return None
    return calibration.fusion(fusions.pop())


def _correct(
    observations: Observations,
    inconsistent: int,
    verdicts: int,
    calibration: Calibration,
    fusion: Fusion,
    notes: list[str],
) -> CorrectedShare | None:
    thresholds = {threshold for _, threshold in observations.thresholds}
    threshold = thresholds.pop()
    if thresholds or threshold is None:
        notes.append("The share is not corrected: verdicts have several thresholds. Report on each by itself.")
        return None
    rates = count_errors(calibration, fusion, threshold)
    if rates is None:
        notes.append(
            "The share is not corrected: the calibration is of trusted responses, and how often real errors are missed "
            "is not known. Fit one to labelled responses."
            if fusion.held_out is not None and fusion.held_out.made
            else "The share is not corrected: the calibration does not know the error rates of this threshold. Fit it "
            "again with `groundwire calibrate`."
        )
        return None
    corrected = correct_share(inconsistent, verdicts, rates)
    if corrected is None:
        notes.append(
            "The share is not corrected: at this threshold, inconsistent responses are not called so more often than "
            "consistent ones."
        )
        return None
    return CorrectedShare(
        Estimate(*corrected), rates.false_positive_rate, rates.consistent, rates.true_positive_rate, rates.inconsistent
    )


def _compare_with_calibration(verdicts: Sequence[Observation], fusion: Fusion | None) -> tuple[Shift, ...]:
    """Lengths and overlap of the responses called consistent. Their probabilities are above the threshold, so they
    cannot be compared."""
    distributions = {} if fusion is None else {**fusion.distributions}
    distributions.pop("probability", None)
    texts = [{"words": row.words, "overlap": row.overlap} for row in verdicts if not row.is_inconsistent]
    measured = [{name: value for name, value in text.items() if value is not None} for text in texts]
    return compare_responses(distributions, measured)  # type: ignore[arg-type]


def _find_drift(observations: Observations, reference: Reference | None, notes: list[str]) -> Drift | None:
    if reference is None:
        return None
    if set(reference.observations.signatures) != set(observations.signatures):
        notes.append("Reference and traffic were scored with different settings, which may be why they differ.")
    drift = compare_with_reference(
        reference.observations.rows,
        observations.rows,
        reference.name,
        alert_rate=reference.alert_rate,
        look_size=reference.look_size,
        looks_before=reference.looks_before,
    )
    if drift is None:
        notes.append("Reference or traffic has no verdict consistent or inconsistent, so they cannot be compared.")
    return drift


def _count_bins(rows: Sequence[Observation]) -> tuple[int, ...]:
    values = [row.probability for row in rows if row.probability is not None]
    return tuple(np.histogram(values, BINS, (0, 1))[0].tolist())
