"""The verdict as a classifier of scikit-learn, for its metrics, curves and pipelines.

Needs the extra: ``pip install 'groundwire[sklearn]'``.

>>> from groundwire.adapters.sklearn import VerdictClassifier                               # doctest: +SKIP
>>> VerdictClassifier().predict([("Honey is blue.", "Honey is golden.")])                       # doctest: +SKIP
array([0])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from groundwire.engine import Engine, Options

from .checking import Checked, Checker, NoScore
from .extras import needs

with needs("sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["VerdictClassifier"]


class VerdictClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not read by mypy
    """A classifier of rows of a response and its knowledge: 1 for a response that passes, 0 for an inconsistent one."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the classifier, which has nothing to fit.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self.engine, self.metrics, self.options = engine, metrics, options
        self.classes_ = np.array([0, 1])

    def fit(self, rows: Any = None, labels: Any = None) -> Self:
        """Return this classifier: there is nothing to fit.

        Args:
            rows: Not read.
            labels: Not read.

        Returns:
            This classifier.
        """
        return self

    def predict(self, rows: Iterable[Sequence[Any]]) -> np.ndarray[Any, Any]:
        """Return 1 for each response that passes, and 0 for each that is inconsistent.

        Args:
            rows: A response and its knowledge each, as lists or as an array of two columns.

        Returns:
            An array of integers.

        Raises:
            NoScore: A response has no verdict.
        """
        checks = self._check(rows)
        for index, checked in enumerate(checks):
            if checked.passed is None:
                raise NoScore(f"rows[{index}]: {checked.reason}")
        return np.array([int(bool(checked.passed)) for checked in checks])

    def predict_proba(self, rows: Iterable[Sequence[Any]]) -> np.ndarray[Any, Any]:
        """Return the probabilities of being inconsistent and consistent; NaN for a response without them.

        Args:
            rows: As for ``predict``.

        Returns:
            An array with a row for each response, and a column for each of the two.
        """
        checks = self._check(rows)
        consistent = np.array([np.nan if checked.probability is None else checked.probability for checked in checks])
        return np.stack([1 - consistent, consistent], axis=1)

    def _check(self, rows: Iterable[Sequence[Any]]) -> list[Checked]:
        checker = Checker(self.engine, metrics=self.metrics, options=self.options)
        return list(checker.check_many((response, knowledge) for response, knowledge in rows))
