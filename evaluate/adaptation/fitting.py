"""Fits the candidates for an adapted bundle to some rows, and chooses one of them without seeing any other row.

Candidates: the bundle as it is; its models with a calibration of their own; and a changed head with one. Within the
rows, values of a changed head come from a fit without the row's fold, so neither the strength of the change nor the
calibration is fitted to values that were trained on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from groundwire.engine import MetricResult
from groundwire.engine.verdict import decide_again, features
from groundwire.metrics import bind_results
from groundwire.runtime.bundles.calibration import Calibration, Fusion, ProfileName
from groundwire.runtime.errors import InvalidRequest

from ..calibration.features import collect_features, list_sentences
from ..calibration.fusion import FusionOptions, LabelledFeatures, weigh_examples
from ..calibration.operating_points import fit_calibration
from ..statistics.estimates import Floats
from .detector import DetectorAnswers
from .head import PENALTIES, HeadChange, fit_changes, measure_log_loss
from .rows import LabelledRow

Candidate: TypeAlias = Literal["unchanged", "calibration", "head"]
CANDIDATES: dict[Candidate, str] = {
    "unchanged": "the bundle as it is",
    "calibration": "its models, calibration fitted to the rows",
    "head": "head and calibration fitted to the rows",
}
"""In the order in which equally good ones are preferred."""
PROFILES: tuple[ProfileName, ...] = ("strict", "balanced", "lenient")
Rows: TypeAlias = NDArray[np.int64]
"""Indices of rows."""
SMALLEST = 1e-6
"""Probabilities of 0 and 1 would have an infinite log-loss."""


@dataclass(frozen=True)
class Material:
    """The rows, and what is known of them before anything is fitted."""

    rows: Sequence[LabelledRow]
    folds: Rows
    """[rows]"""
    answers: DetectorAnswers
    """About the rows, in their order."""
    role: str
    metrics: tuple[str, ...]
    """Those that were computed."""
    calibration: Calibration | None
    """The bundle's own."""
    options: FusionOptions
    """How calibrations are fitted. The bundle's own knows of no cost and of no other promise, so it is not written
    where these ask for one."""

    @property
    def labels(self) -> Floats:
        """1.0 for consistent, 0.0 for inconsistent [rows]."""
        return np.array([row.example.label for row in self.rows], dtype=np.float64)

    def results(self, row: int, change: HeadChange | None = None) -> Mapping[str, MetricResult]:
        """The metrics' results about a row, with a changed head."""
        metrics = self.rows[row].score.metrics
        return metrics if change is None else {**metrics, self.role: self.answers.result(row, change)}

    def describe(self, row: int, change: HeadChange | None = None) -> LabelledFeatures:
        """What a calibration is fitted to, with a changed head."""
        described = self._described[row]
        if change is None:
            return described
        changed = {self.role: self.answers.result(row, change)}
        parts = list_sentences(self.rows[row].example.response, changed)
        return described._replace(
            features={**described.features, **features(bind_results(changed))},
            sentences=tuple({**part, **other} for part, other in zip(described.sentences, parts, strict=True)),
            results={**described.results, **changed},
        )

    @cached_property
    def _described(self) -> list[LabelledFeatures]:
        return [
            described._replace(group=str(row.group))
            for row in self.rows
            for described in collect_features({row.set: [row.example]}, {row.set: [row.score]})
        ]

    @property
    def profiles(self) -> tuple[ProfileName, ...]:
        """The profiles that every calibration has."""
        fusions = self.calibration.fusions if self.calibration is not None else ()
        return tuple(name for name in PROFILES if all(name in fusion.profiles for fusion in fusions))

    @cached_property
    def deciding(self) -> Rows:
        """The window that decides about each row [rows]."""
        return np.array([self.answers.find_deciding(row) for row in range(len(self.rows))], dtype=np.int64)

    @cached_property
    def unchanged_probabilities(self) -> Floats:
        """Probabilities of the verdicts of the bundle as it is [rows]; NaN where there is none."""
        if self.calibration is None:
            return np.full(len(self.rows), np.nan)
        profile = next(iter(self.calibration.fusions[0].profiles))
        verdicts = [
            decide_again(row.example.request, row.score.metrics, self.calibration, profile)[0] for row in self.rows
        ]
        return np.array([np.nan if v.probability is None else v.probability for v in verdicts], dtype=np.float64)


class HeadFit(NamedTuple):
    """A fitted change of the head, and the values of the rows that it was fitted to."""

    change: HeadChange
    penalty: float
    held_out: dict[int, HeadChange]
    """By fold, the change that was fitted without it."""


class Fit(NamedTuple):
    """The candidates that were fitted to some rows, and the chosen one."""

    calibrations: dict[Candidate, Calibration]
    losses: dict[Candidate, float]
    """Log-loss of verdicts on held-out rows, both labels alike."""
    chosen: Candidate
    head: HeadFit

    def change(self, candidate: Candidate) -> HeadChange | None:
        """The change of the head that belongs to a candidate."""
        return self.head.change if candidate == "head" else None


def fit_candidates(material: Material, rows: Rows) -> Fit:
    """Fit all candidates to ``rows`` and choose the one with the least loss on held-out ones among them.

    A candidate whose values do not separate the labels is left out. InvalidRequest when none is left.
    """
    options = material.options
    calibrations: dict[Candidate, Calibration] = {}
    losses: dict[Candidate, float] = {}
    probabilities, labels = material.unchanged_probabilities[rows], material.labels[rows] == 1
    finite = np.isfinite(probabilities)
    if material.calibration is not None and finite.mean() >= 0.5 and len(np.unique(labels[finite])) == 2:
        calibrations["unchanged"] = material.calibration
        losses["unchanged"] = average_loss(probabilities[finite & labels], probabilities[finite & ~labels])
    head = fit_head(material, rows)
    changes_of: dict[Candidate, dict[int, HeadChange]] = {"calibration": {}, "head": head.held_out}
    for candidate, changes in changes_of.items():
        examples = [material.describe(row, changes.get(int(material.folds[row]))) for row in rows.tolist()]
        try:
            fitted = fit_calibration(examples, material.metrics, options)
        except InvalidRequest:
            if candidate == "head" and not losses:
                raise
            continue
        calibrations[candidate], losses[candidate] = fitted, measure_held_out(fitted.fusions[0])
    candidates = [candidate for candidate in CANDIDATES if candidate in losses]
    if options.moves_thresholds and len(candidates) > 1:
        candidates = [candidate for candidate in candidates if candidate != "unchanged"]
    chosen = min(candidates, key=losses.__getitem__)
    return Fit(calibrations, losses, chosen, head)


def fit_head(material: Material, rows: Rows) -> HeadFit:
    """The change whose penalty has the least loss over ``rows``, each held out once with its fold."""
    deciding = material.deciding[rows]
    read, margins = material.answers.features[deciding], material.answers.margins[deciding]
    labels, folds = material.labels[rows], material.folds[rows]
    weights = weigh_examples([material.describe(row) for row in rows.tolist()])
    losses = np.zeros(len(PENALTIES))
    without: dict[int, list[HeadChange]] = {}
    for fold in np.unique(folds).tolist():
        fitted_rows, left_out = folds != fold, folds == fold
        share = weights[fitted_rows] / weights[fitted_rows].sum()
        without[fold] = list(fit_changes(read[fitted_rows], margins[fitted_rows], labels[fitted_rows], share))
        for index, change in enumerate(without[fold]):
            changed = margins[left_out] + change.change_margins(read[left_out])
            losses[index] += measure_log_loss(changed, labels[left_out], weights[left_out])
    best = int(np.argmin(losses))
    *_, change = fit_changes(read, margins, labels, weights, PENALTIES[: best + 1])
    return HeadFit(change, PENALTIES[best], {fold: changes[best] for fold, changes in without.items()})


def measure_held_out(fusion: Fusion) -> float:
    """The log-loss, both labels alike, of the probabilities that a fusion's fit held out."""
    assert fusion.held_out is not None
    return average_loss(np.array(fusion.held_out.consistent.values), np.array(fusion.held_out.inconsistent.values))


def average_loss(consistent: Floats, inconsistent: Floats) -> float:
    """The mean of the mean log-losses of the probabilities of consistent and of inconsistent rows; infinite without."""
    if not len(consistent) or not len(inconsistent):
        return math.inf
    right, wrong = np.maximum(consistent, SMALLEST), np.maximum(1 - inconsistent, SMALLEST)
    return float(-(np.log(right).mean() + np.log(wrong).mean()) / 2)
