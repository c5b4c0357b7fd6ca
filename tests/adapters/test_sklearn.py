"""The classifier, with scikit-learn's own functions."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from groundwire.adapters.checking import NoScore
from groundwire.adapters.sklearn import VerdictClassifier
from groundwire.engine import Engine, InvalidRequest
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY

ROWS = [(CONSISTENT, KNOWLEDGE), (INCONSISTENT, [KNOWLEDGE])]


def test_it_predicts_labels_and_probabilities(engine: Engine) -> None:
    classifier = clone(VerdictClassifier(engine)).fit(ROWS, [1, 0])
    assert classifier.predict(ROWS).tolist() == [1, 0]
    consistent = classifier.predict_proba(ROWS)[:, 1]
    assert consistent.tolist() == [PROBABILITY[CONSISTENT], PROBABILITY[INCONSISTENT]]
    assert roc_auc_score([1, 0], consistent) == classifier.score(ROWS, [1, 0]) == 1.0


def test_a_response_that_states_nothing_passes_without_a_probability(engine: Engine) -> None:
    rows = np.array([[GREETING, KNOWLEDGE]])
    assert VerdictClassifier(engine).predict(pandas.DataFrame(rows, columns=["ab", "cd"])).tolist() == [1]
    assert VerdictClassifier(engine).predict([]).dtype == int
    assert VerdictClassifier(engine).predict(rows).tolist() == [1]
    assert np.isnan(VerdictClassifier(engine).predict_proba(rows)).all()


def test_a_row_of_another_form_is_refused(engine: Engine) -> None:
    for row in ("ab", (CONSISTENT,)):
        with pytest.raises(InvalidRequest, match="pass a response and its knowledge"):
            VerdictClassifier(engine).predict([row])


def test_a_response_without_a_verdict_has_no_label(failing_engine: Engine) -> None:
    assert np.isnan(VerdictClassifier(failing_engine).predict_proba(ROWS)).all()
    with pytest.raises(NoScore, match=rf"rows\[0\]: .*{FAILURE}"):
        VerdictClassifier(failing_engine).predict(ROWS)
