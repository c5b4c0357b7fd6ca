"""What adapting a bundle bought, measured on rows that were held out of everything that was fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from groundwire.engine import Verdict
from groundwire.engine.schema.base import Record
from groundwire.engine.verdict import decide_again
from groundwire.monitor.records import Estimate
from groundwire.runtime.bundles.calibration import ProfileName

from ..statistics.delivered import Counted, DeliveredLabels
from ..statistics.estimates import Bools, Floats, roc_auc, share
from ..statistics.resampling import Resamples, estimate
from .fitting import CANDIDATES, Candidate, Fit, Material, Rows, fit_candidates
from .rows import FOLDS, RowCounts

SCHEMA = 2


class ProfileFigures(Record, frozen=True):
    """A profile's verdicts. Positive: a response is called inconsistent."""

    balanced_accuracy: Estimate | None
    """The mean of the power and of 1 minus the false positive rate."""
    false_positive_rate: Estimate | None
    """Share of the consistent rows."""
    power: Estimate | None
    """Share of the inconsistent rows that are called so."""
    unverifiable_rate: Estimate | None
    """Share of the inconsistent rows that are called unverifiable, a part of what is missed."""
    cost: Estimate | None
    """Of 100 consistent and 100 inconsistent rows, in false positives: a missed error costs ``cost_of_missed``."""
    max_false_positive_rate: float | None
    """What the calibration promises; None where it promises nothing."""


class CandidateFigures(Record, frozen=True):
    """A candidate on held-out rows."""

    roc_auc: Estimate | None
    """ROC-AUC of the verdict's probability."""
    detector_roc_auc: Estimate | None
    """ROC-AUC of the detector alone."""
    profiles: dict[ProfileName, ProfileFigures]


class Gain(Record, frozen=True):
    """After less before, on the same rows and the same samples."""

    roc_auc: Estimate | None
    detector_roc_auc: Estimate | None
    balanced_accuracy: dict[ProfileName, Estimate | None]
    cost: dict[ProfileName, Estimate | None]
    """Less is better."""
    roc_auc_of_head: Estimate | None = None
    """The part of the gain in ROC-AUC that remains over the calibration alone."""


class AdaptationReport(Record, frozen=True, kw_only=True):
    """Everything that ``groundwire adapt`` reports: numbers, and no text of any row."""

    schema: int = SCHEMA
    bundle: str
    """Name and digest of the bundle that was adapted."""
    role: str
    metrics: tuple[str, ...]
    sets: tuple[str, ...]
    rows: RowCounts
    undecided: int
    """Used rows without a label from every candidate; no figure counts them."""
    folds: int = FOLDS
    seed: int
    repeats: int
    before: Candidate | None
    """``unchanged``, or ``calibration`` for a bundle that draws no verdict from these metrics; None where that cannot
    be fitted either."""
    candidates: dict[Candidate, CandidateFigures]
    after: CandidateFigures
    """What was chosen for each fold without looking at it: the figures of the whole procedure."""
    gain: Gain
    unverifiable: dict[Literal["consistent", "inconsistent"], int]
    """By their label, how many held-out rows were called unverifiable, and so not inconsistent, after."""
    chosen_in_folds: tuple[Candidate, ...]
    written: Candidate
    """Chosen on all rows, and written."""
    penalty: float | None
    """Penalty of the head that was written; None if it is the given head."""
    cost_of_missed: float = 1.0
    """How many false positives a missed error costs."""

    @property
    def conclusion(self) -> str:
        """What the rows bought, in one or two sentences."""
        balanced = self.gain.balanced_accuracy.get("balanced")
        parts = {"ROC-AUC": self.gain.roc_auc, "the balanced accuracy of balanced": balanced}
        better = [name for name, gain in parts.items() if gain is not None and gain.low > 0]
        worse = [name for name, gain in parts.items() if gain is not None and gain.high < 0]
        if self.before is None:
            return "Before, these metrics did not separate the labels, so there is no verdict to compare with."
        if worse:
            return (
                f"On held-out rows {' and '.join(worse)} got worse. Use the bundle as it is, or label more rows: "
                "what was written is not better."
            )
        if better:
            of_head = self.gain.roc_auc_of_head
            alone = self.before == "unchanged" and of_head is not None and of_head.low <= 0
            by = " The calibration alone did that: what the head adds includes 0." if alone else ""
            return f"On held-out rows {' and '.join(better)} rose by more than chance explains.{by}"
        return (
            "The rows bought nothing that chance does not explain: the intervals of the gains in ROC-AUC and balanced "
            "accuracy include 0."
        )

    @property
    def hint(self) -> str:
        """What to try if the labels call inconsistent what the verdict calls unverifiable; empty otherwise."""
        consistent, inconsistent = self.unverifiable["consistent"], self.unverifiable["inconsistent"]
        if inconsistent < 0.1 * self.rows.inconsistent or inconsistent < 2 * consistent:
            return ""
        return (
            f"{inconsistent} of the {self.rows.inconsistent} inconsistent rows, and {consistent} consistent ones, are "
            "called unverifiable. Your labels seem to call inconsistent what states nothing: try --set verifiable=0."
        )


class _Decided(NamedTuple):
    """A candidate's verdicts on all rows, each by the fit that held the row out."""

    probabilities: Floats
    """[rows]; NaN without one."""
    detector: Floats
    """[rows]"""
    positive: dict[ProfileName, Bools]
    """[rows]: called inconsistent."""
    unverifiable: Bools
    """[rows]"""
    known: Bools
    """[rows]: whether there is a verdict, under every profile."""


def measure_adaptation(
    material: Material, counts: RowCounts, repeats: int, watch: Callable[[int, int], None] = lambda done, total: None
) -> tuple[AdaptationReport, Fit]:
    """The report, and the fit to all rows that is to be written.

    Every fold is held out of a fit of all candidates, and of the choice among them. ``watch`` is called with how many
    of the fits are done. The bundle's name and the digest are left empty.
    """
    everything = np.arange(len(material.rows))
    fits: list[tuple[Rows, Fit]] = []
    for fold in range(FOLDS):
        watch(fold, FOLDS + 1)
        held_out = np.flatnonzero(material.folds == fold)
        fits.append((held_out, fit_candidates(material, np.flatnonzero(material.folds != fold))))
    watch(FOLDS, FOLDS + 1)
    final = fit_candidates(material, everything)
    watch(FOLDS + 1, FOLDS + 1)
    names = [name for name in CANDIDATES if all(name in fit.losses for _, fit in (*fits, (everything, final)))]
    decided = {name: _decide(material, [(part, fit, name) for part, fit in fits]) for name in names}
    chosen = _decide(material, [(part, fit, fit.chosen) for part, fit in fits])
    figures = _Figures(material, [*decided.values(), chosen], repeats)
    before: Candidate | None = next((name for name in names if name != "head"), None)
    bounds = {name: _list_bounds(final, name) for name in names}
    report = AdaptationReport(
        bundle="",
        role=material.role,
        metrics=material.metrics,
        sets=tuple(dict.fromkeys(row.set for row in material.rows)),
        rows=counts,
        undecided=int((~figures.known).sum()),
        seed=material.options.seed,
        repeats=repeats,
        before=before,
        candidates={name: figures.describe(decided[name], bounds[name]) for name in names},
        after=figures.describe(chosen, _list_bounds(final, final.chosen)),
        gain=Gain(None, None, {}, {})
        if before is None
        else figures.compare(decided[before], chosen, decided.get("calibration")),
        unverifiable={
            "consistent": int(chosen.unverifiable[material.labels == 1].sum()),
            "inconsistent": int(chosen.unverifiable[material.labels == 0].sum()),
        },
        chosen_in_folds=tuple(fit.chosen for _, fit in fits),
        written=final.chosen,
        penalty=final.head.penalty if final.chosen == "head" else None,
        cost_of_missed=material.options.cost_of_missed,
    )
    return report, final


def _list_bounds(fit: Fit, candidate: Candidate) -> dict[ProfileName, float | None]:
    calibration = fit.calibrations.get(candidate)
    profiles = calibration.fusions[0].profiles if calibration is not None else {}
    return {name: profile.max_false_positive_rate for name, profile in profiles.items()}


def _decide(material: Material, parts: Sequence[tuple[Rows, Fit, Candidate]]) -> _Decided:
    """The verdicts of each part's candidate on its rows."""
    count = len(material.rows)
    decided = _Decided(
        np.full(count, np.nan),
        np.full(count, np.nan),
        {name: np.zeros(count, dtype=bool) for name in material.profiles},
        np.zeros(count, dtype=bool),
        np.ones(count, dtype=bool),
    )
    for rows, fit, candidate in parts:
        calibration, change = fit.calibrations[candidate], fit.change(candidate)
        for row in rows.tolist():
            results = material.results(row, change)
            request = material.rows[row].example.request
            decided.detector[row] = results[material.role].value
            for profile in material.profiles:
                verdict: Verdict = decide_again(request, results, calibration, profile)[0]
                decided.positive[profile][row] = verdict.label == "inconsistent"
                decided.unverifiable[row] = verdict.label == "unverifiable"
                decided.known[row] &= verdict.label != "unknown"
                if verdict.probability is not None:
                    decided.probabilities[row] = verdict.probability
    return decided


class _Figures:
    """Figures over the rows that every candidate decided, all with the same samples of groups."""

    def __init__(self, material: Material, decided: Sequence[_Decided], repeats: int) -> None:
        self.known: Bools = np.all([of_candidate.known for of_candidate in decided], axis=0)
        self._rated: Bools = np.all([np.isfinite(of_candidate.probabilities) for of_candidate in decided], axis=0)
        self._consistent: Bools = np.asarray(material.labels == 1)
        self._cost = material.options.cost_of_missed
        self._groups = np.array([row.group for row in material.rows])
        self._samples = Resamples(self._groups.tolist(), repeats, material.options.seed)
        self._repeats = repeats

    def describe(self, decided: _Decided, bounds: Mapping[ProfileName, float | None]) -> CandidateFigures:
        """The figures of one candidate."""
        right, wrong = self._consistent, ~self._consistent
        return CandidateFigures(
            roc_auc=self._estimate(self._area(decided.probabilities), right & self._rated, wrong & self._rated),
            detector_roc_auc=self._estimate(self._area(decided.detector), right & self._rated, wrong & self._rated),
            profiles={
                name: ProfileFigures(
                    balanced_accuracy=self._estimate(
                        self._balanced_accuracy(name, decided), right & self.known, wrong & self.known
                    ),
                    false_positive_rate=self._estimate_share(self._deliver(name, decided).false_positives),
                    power=self._estimate_share(self._deliver(name, decided).found),
                    unverifiable_rate=self._estimate_share(self._deliver(name, decided).missed_unverifiable),
                    cost=self._estimate(self._sum_cost(name, decided)),
                    max_false_positive_rate=bounds.get(name),
                )
                for name in decided.positive
            },
        )

    def _deliver(self, profile: ProfileName, decided: _Decided) -> DeliveredLabels:
        positive = decided.positive[profile]
        return DeliveredLabels(self._consistent, ~self._consistent, positive, decided.unverifiable, self.known)

    def compare(self, before: _Decided, after: _Decided, calibrated: _Decided | None) -> Gain:
        """The differences, sample by sample."""

        def subtract(measure: Callable[[_Decided], Floats], earlier: _Decided = before) -> Estimate | None:
            return self._estimate(measure(after) - measure(earlier))

        def measure_area(decided: _Decided) -> Floats:
            return self._area(decided.probabilities)

        return Gain(
            roc_auc=subtract(measure_area),
            roc_auc_of_head=None if calibrated is None else subtract(measure_area, calibrated),
            detector_roc_auc=subtract(lambda decided: self._area(decided.detector)),
            balanced_accuracy={name: subtract(partial(self._balanced_accuracy, name)) for name in after.positive},
            cost={name: subtract(partial(self._sum_cost, name)) for name in after.positive},
        )

    def _area(self, values: Floats) -> Floats:
        return self._samples.measure(roc_auc(values[self._rated], self._consistent[self._rated]), self._rated)

    def _balanced_accuracy(self, profile: ProfileName, decided: _Decided) -> Floats:
        delivered = self._deliver(profile, decided)
        return np.asarray(1 - (self._share(*delivered.false_positives) + self._share(*delivered.missed)) / 2)

    def _sum_cost(self, profile: ProfileName, decided: _Decided) -> Floats:
        delivered = self._deliver(profile, decided)
        missed = self._share(*delivered.missed)
        return np.asarray(100 * (self._share(*delivered.false_positives) + self._cost * missed))

    def _share(self, part: Bools, whole: Bools) -> Floats:
        statistic = share(part.astype(np.float64), whole.astype(np.float64))
        return self._samples.measure(statistic, np.ones_like(whole))

    def _estimate(self, figure: Floats, *wholes: Bools) -> Estimate | None:
        """A figure with its interval; ``wholes`` are the rows of the shares that it is the mean of."""
        return estimate(figure, self._repeats, *(len(set(self._groups[whole])) for whole in wholes))

    def _estimate_share(self, counted: Counted) -> Estimate | None:
        return self._estimate(self._share(*counted), counted[1])
