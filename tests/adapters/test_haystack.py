"""The component, alone and in pipelines."""

from __future__ import annotations

import math

import pytest

from groundwire.engine import Engine, InvalidRequest
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("haystack.components.evaluators")
from haystack import Pipeline  # noqa: E402

from groundwire.adapters.haystack import HaystackEvaluator  # noqa: E402


def test_a_pipeline_scores_every_answer(engine: Engine) -> None:
    pipeline = Pipeline()
    pipeline.add_component("faithfulness", HaystackEvaluator(engine))
    given = {
        "predicted_answers": [CONSISTENT, INCONSISTENT, GREETING],
        "contexts": [[KNOWLEDGE]] * 3,
        "questions": ["What is honey like?", "Which colour?", "Here it is."],
    }
    result = pipeline.run({"faithfulness": given})["faithfulness"]
    assert result["individual_scores"][:2] == [PROBABILITY[CONSISTENT], PROBABILITY[INCONSISTENT]]
    assert math.isnan(result["individual_scores"][2])
    assert result["score"] == pytest.approx(0.5)
    assert [row["status"] for row in result["results"]] == ["evaluated", "evaluated", "nothing_to_verify"]
    assert [row["passed"] for row in result["results"]] == [True, False, True]


def test_an_answer_without_a_verdict_leaves_no_mean(engine: Engine) -> None:
    result = HaystackEvaluator(engine).run([CONSISTENT, ""], [[KNOWLEDGE]] * 2)
    assert result["individual_scores"][0] == PROBABILITY[CONSISTENT]
    assert result["results"][1]["status"] == "error"
    assert math.isnan(result["individual_scores"][1])
    assert math.isnan(result["score"])


def test_a_failed_metric_is_an_error(failing_engine: Engine) -> None:
    result = HaystackEvaluator(failing_engine).run([CONSISTENT], [[KNOWLEDGE]])
    assert math.isnan(result["score"])
    assert result["results"][0]["status"] == "error"
    assert FAILURE in result["results"][0]["reason"]


def test_lists_of_different_lengths_are_refused(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="2 answers, 1 contexts"):
        HaystackEvaluator(engine).run([CONSISTENT, CONSISTENT], [[KNOWLEDGE]])


def test_a_pipeline_is_saved_without_its_engine(engine: Engine) -> None:
    pipeline = Pipeline()
    pipeline.add_component("faithfulness", HaystackEvaluator(metrics=["nli"]))
    copy = Pipeline.loads(pipeline.dumps(), allowed_modules=["groundwire.adapters.haystack"])
    assert copy.get_component("faithfulness").to_dict()["init_parameters"] == {"metrics": ["nli"]}
    with pytest.raises(InvalidRequest, match="GROUNDWIRE_BUNDLE"):
        HaystackEvaluator(engine).to_dict()
