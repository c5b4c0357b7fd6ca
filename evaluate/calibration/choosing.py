"""Chooses between a fit to labelled rows and the calibration that is there, by verdicts on rows that no fit has seen.

Few rows say little about a dozen weights, more about one threshold, and something about the rates of a verdict that is
kept. So weights and thresholds that are there give way only to what errs less by two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest

from ..statistics.estimates import Bools
from .fusion import FOLDS, MIN_CLASS, FusionOptions, LabelledFeatures, labels_of, list_groups, weigh_examples
from .operating_points import build_calibration, decide_kept, draw_points, fit_fusions
from .profiles import HeldOutVerdicts, call_left_out

Candidate: TypeAlias = Literal["unchanged", "thresholds", "weights"]
CANDIDATES: dict[Candidate, str] = {
    "unchanged": "the verdict that is there",
    "thresholds": "its weights, with thresholds of these rows",
    "weights": "weights and thresholds of these rows",
}
"""What of the calibration that is there gives way: in each case the rates are of these rows, and ``lenient`` and the
band of labels that are not sure are drawn from them."""


CLEAR = 1.96
"""Standard errors of a difference beyond which one candidate errs clearly less: by chance, each of the two does so in
2.5 % of the cases."""


class Choice(NamedTuple):
    """A calibration, and how the candidates for it err on rows that no fit of theirs has seen."""

    calibration: Calibration
    delivered: Candidate
    rows: int = 0
    """Rows that the candidates are compared on; 0 where there is nothing to compare with."""
    shares_knowledge: bool = False
    """Whether left-out rows are about the knowledge of others, because there are fewer texts than folds: the figures
    flatter."""
    accuracy: Mapping[Candidate, float] = MappingProxyType({})
    """Balanced accuracy, 0–1, at the profile ``balanced``; empty where there is nothing to compare with."""
    errors: Mapping[Candidate, float] = MappingProxyType({})
    """What is compared, 0–1: the false positive rate and ``FusionOptions.cost_of_missed`` times the false negative
    rate, over 1 plus that cost."""

    @property
    def is_worse(self) -> bool:
        """Whether the delivered verdict errs more than the verdict that is there."""
        return bool(self.errors) and self.errors[self.delivered] > self.errors["unchanged"]

    def check(self) -> None:
        """Raise InvalidRequest with both figures when the delivered verdict errs more than the one that is there."""
        if self.is_worse:
            raise InvalidRequest(
                f"The verdict of these rows has a balanced accuracy of {self.accuracy[self.delivered]:.1%}, and the "
                f"verdict that is there {self.accuracy['unchanged']:.1%}, on the same {self.rows} rows, each left out "
                "of the fit. Keep the verdict that is there, label more rows, or take the worse one all the same by "
                "force (--force, force=True)."
            )


def choose_calibration(
    examples: Sequence[LabelledFeatures],
    metrics: Sequence[str],
    options: FusionOptions | None = None,
    there: Calibration | None = None,
    name: str | None = None,
) -> Choice:
    """Fit a calibration to labelled responses, or thresholds alone.

    Args:
        examples: The responses, with the results of metrics.
        metrics: The computed metrics.
        options: How to fit. Weights are fitted for sure where ``features`` or ``needed`` are named.
        there: The calibration to compare with, whose weights may be kept; rows that it was fitted to say nothing of it.
        name: Name of the only fusion, as for ``fit_fusions``; it is compared with nothing.

    Returns:
        The calibration, and the figures that it was chosen by.

    Raises:
        InvalidRequest: Rows are too few, or no metric separates the labels.
    """
    options = options or FusionOptions()
    fitted = fit_fusions(examples, metrics, options, name)
    own_calibration = build_calibration([of.fusion for of in fitted], examples, metrics, options)
    seen = set(there.row_digests or ()) if there is not None else set()
    fresh = np.array([not example.digest or example.digest not in seen for example in examples])
    rows = [example for example, is_fresh in zip(examples, fresh, strict=True) if is_fresh]
    usable = [] if there is None or name else [of for of in there.fusions if set(of.metrics) <= set(metrics)]
    if there is None or not usable or min(labels_of(rows).sum(), (1 - labels_of(rows)).sum()) < MIN_CLASS:
        return Choice(own_calibration, "weights")
    held_out = [decide_kept(of, rows, options) for of in usable]
    first, balanced = held_out[0], usable[0].profiles["balanced"]
    called: dict[Candidate, Bools] = {
        "unchanged": first.stating & (first.probabilities < balanced.threshold),
        "thresholds": call_left_out(first, options.cost_of_missed, options.balanced),
        "weights": call_left_out(fitted[0].held_out, options.cost_of_missed, options.balanced)[fresh],
    }
    decided = _find_decided(first) & _find_decided(fitted[0].held_out)[fresh]
    wrong = {candidate: (of != (labels_of(rows) == 0))[decided] for candidate, of in called.items()}
    shares = weigh_examples([row for row, is_decided in zip(rows, decided, strict=True) if is_decided])
    costs = np.where(labels_of(rows)[decided] == 1, 1.0, options.cost_of_missed) * 2 / (1 + options.cost_of_missed)
    errors = {candidate: float(shares * costs @ of) for candidate, of in wrong.items()}
    delivered: Candidate = "unchanged"
    if options.cost_of_missed != 1 and errors["thresholds"] <= errors["unchanged"]:
        delivered = "thresholds"  # what is there knows of no cost
    for candidate in CANDIDATES:
        spread = math.sqrt(float((shares * costs) ** 2 @ (wrong[delivered] ^ wrong[candidate])))
        if errors[delivered] - errors[candidate] > CLEAR * spread:
            delivered = candidate
    if options.features or options.needed:
        delivered = "weights"
    calibration = own_calibration
    if delivered != "weights":
        redrawn = [
            draw_points(of, verdicts, rows, options, of.profiles if delivered == "unchanged" else {})
            for of, verdicts in zip(usable, held_out, strict=True)
        ]
        calibration = replace(build_calibration(redrawn, rows, metrics, options), scales=there.scales)
    accuracy = {candidate: 1 - float(shares @ of) for candidate, of in wrong.items()}
    return Choice(calibration, delivered, int(decided.sum()), len(set(list_groups(rows))) < FOLDS, accuracy, errors)


def _find_decided(verdicts: HeldOutVerdicts) -> Bools:
    return verdicts.stating | verdicts.unverifiable
