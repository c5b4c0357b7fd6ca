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

from groundwire.engine import Engine, InvalidRequest, Options

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

    def __sklearn_clone__(self) -> Self:
        """Return another with the same engine, which cannot be copied."""
        return type(self)(self.engine, metrics=self.metrics, options=self.options)

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
            rows: A response and its knowledge each, as lists, or as an array or a table of two columns.

        Returns:
            An array of integers.

        Raises:
            InvalidRequest: A row is not of two.
            NoScore: A response has no verdict.
        """
        checks = self._check(rows)
        for index, checked in enumerate(checks):
            if checked.passed is None:
                raise NoScore(f"rows[{index}]: {checked.reason}")
        return np.array([bool(checked.passed) for checked in checks], dtype=int)

    def predict_proba(self, rows: Iterable[Sequence[Any]]) -> np.ndarray[Any, Any]:
        """Return the probabilities of being inconsistent and consistent; NaN for a response without them.

        Curves need rows without NaN: leave out responses that state nothing.

        Args:
            rows: As for ``predict``.

        Returns:
            An array with a row for each response, and a column for each of the two.
        """
        checks = self._check(rows)
        consistent = np.array([np.nan if checked.probability is None else checked.probability for checked in checks])
        return np.stack([1 - consistent, consistent], axis=1)

    def _check(self, rows: Iterable[Sequence[Any]]) -> list[Checked]:
        list_rows = getattr(rows, "itertuples", None)  # of a table of pandas
        checker = Checker(self.engine, metrics=self.metrics, options=self.options)
        return list(checker.check_many(map(_read_row, rows if list_rows is None else list_rows(index=False))))


def _read_row(row: Any) -> tuple[Any, Any]:
    if isinstance(row, str) or len(row) != 2:
        raise InvalidRequest(f"A row is {row!r:.100}; pass a response and its knowledge.")
    response, knowledge = row
    return response, knowledge
