"""The accessor of data frames."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine, InvalidRequest
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

pandas = load("pandas")
import groundwire.adapters.pandas  # noqa: E402, F401  # registers the accessor


def test_each_row_has_its_score_under_its_index(engine: Engine) -> None:
    frame = pandas.DataFrame(
        {
            "answer": [CONSISTENT, INCONSISTENT, GREETING, None],
            "document": [KNOWLEDGE, [KNOWLEDGE, "x"], KNOWLEDGE, ""],
        },
        index=[7, 5, 3, 1],
    )
    scores = frame.groundwire.score("answer", "document", engine=engine)
    assert list(scores.index) == [7, 5, 3, 1]
    assert list(scores["label"]) == ["consistent", "inconsistent", "unverifiable", "unknown"]
    assert scores["passed"].to_list() == [True, False, True, pandas.NA]
    assert scores["probability"].to_list()[:2] == [PROBABILITY[CONSISTENT], PROBABILITY[INCONSISTENT]]
    assert scores["probability"].isna().to_list() == [False, False, True, True]
    assert scores["nli"].to_list()[:2] == [1.0, 0.0]
    assert scores["nli"].isna().to_list() == [False, False, False, True]
    assert "response" in scores["reason"][1]
    assert scores["status"].to_list()[0] == "scored"
    assert scores["threshold"].notna().to_list()[:2] == [True, True]
    assert "metrics:" in scores["signature"][7]
    assert list(frame.join(scores)["answer"])[:2] == [CONSISTENT, INCONSISTENT]
    labelled = frame.assign(label=[1, 0, None, None]).join(scores, rsuffix="_groundwire")
    assert list(labelled["label_groundwire"]) == list(scores["label"])


def test_a_failed_metric_is_not_available(failing_engine: Engine) -> None:
    frame = pandas.DataFrame({"response": [CONSISTENT], "knowledge": [KNOWLEDGE], "before": [["Sweet?"]]})
    scores = frame.groundwire.score(history="before", engine=failing_engine)
    assert scores[["passed", "probability", "nli"]].isna().all(axis=None)
    assert scores["verifiability"].notna().all()
    assert FAILURE in scores["reason"][0]


def test_an_empty_frame_has_the_same_columns(engine: Engine) -> None:
    frame = pandas.DataFrame({"response": [], "knowledge": []})
    scores = frame.groundwire.score(engine=engine)
    assert len(scores) == 0
    assert {"label", "passed", "probability", "nli"} <= set(scores.columns)


def test_a_column_that_is_absent_is_named(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match=r"no column 'knowledge'; it has \['response'\]"):
        pandas.DataFrame({"response": ["a"]}).groundwire.score(engine=engine)
