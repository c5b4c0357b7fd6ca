"""The change of a detector's head: a penalized logistic regression that starts from the head as it is.

The margin of a window is the logit of "supported": how far the logits of the supported labels are above the others. The
change adds a linear function of what the head reads. A penalty draws it to no change at all, so few rows change little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from ..statistics.estimates import Floats

PENALTIES = (10.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
"""Factors of the squared change, relative to the mean log-loss, of features divided by their deviations."""


class HeadChange(NamedTuple):
    """What is added to the margin of a window: ``features @ weight + shift``."""

    weight: Floats
    """[features]"""
    shift: float

    def change_margins(self, features: Floats) -> Floats:
        """What is added [windows] for features [windows, features]."""
        return np.asarray(features @ self.weight + self.shift)


def fit_changes(
    features: Floats, margins: Floats, labels: Floats, weights: Floats, penalties: Sequence[float] = PENALTIES
) -> Iterator[HeadChange]:
    """The change for each penalty, the strongest first: each fit starts from the one before.

    ``features`` [N, F] and ``margins`` [N] come from the window that decides about each row; ``labels`` [N] are 1.0
    for consistent and 0.0, ``weights`` [N] add up to 1.
    """
    mean, deviation = features.mean(0), features.std(0)
    deviation = np.where(deviation > 1e-6, deviation, np.inf)  # what never changes says nothing
    x, signs = (features - mean) / deviation, 2 * labels - 1
    theta = np.zeros(features.shape[1] + 1)
    for penalty in penalties:

        def loss(theta: Floats, penalty: float = penalty) -> tuple[float, Floats]:
            margin = signs * (margins + x @ theta[1:] + theta[0])
            slope = -weights * signs / (1 + np.exp(np.clip(margin, -50, 50)))
            value = weights @ np.logaddexp(0, -margin) + penalty * theta[1:] @ theta[1:]
            return float(value), np.concatenate([[slope.sum()], x.T @ slope + 2 * penalty * theta[1:]])

        theta = minimize(loss, theta, jac=True, method="L-BFGS-B").x
        weight = theta[1:] / deviation
        yield HeadChange(weight, float(theta[0] - mean @ weight))


def measure_log_loss(margins: Floats, labels: Floats, weights: Floats) -> float:
    """The weighted log-loss of margins [N]."""
    return float(weights @ np.logaddexp(0, -(2 * labels - 1) * margins))
