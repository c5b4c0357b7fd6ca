"""The metric of ``evaluate``, on lists and in batches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

ROOT = Path(__file__).resolve().parents[2]
with pytest.MonkeyPatch.context() as patch:
    # A checkout has a folder of this name, which an installation has not.
    patch.setattr(sys, "path", [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT])
    load("evaluate")
load("datasets")
from groundwire.adapters.hf_evaluate import EvaluateMetric  # noqa: E402


def compute(engine: Engine, folder: Path, *responses: str, knowledge: str = KNOWLEDGE) -> dict[str, Any]:
    metric = EvaluateMetric(engine, cache_dir=str(folder))
    for response in responses:
        metric.add(prediction=response, reference=knowledge)
    result: dict[str, Any] = metric.compute()
    return result


def test_the_score_is_the_mean_of_what_states_something(engine: Engine, tmp_path: Path) -> None:
    result = compute(engine, tmp_path, CONSISTENT, INCONSISTENT, GREETING)
    assert result["score"] == pytest.approx(0.5)
    assert result["probabilities"] == [PROBABILITY[CONSISTENT], PROBABILITY[INCONSISTENT], None]
    assert result["passed"] == [True, False, True]
    assert (
        EvaluateMetric(engine, cache_dir=str(tmp_path)).compute(predictions=[CONSISTENT], references=[KNOWLEDGE])[
            "score"
        ]
        == PROBABILITY[CONSISTENT]
    )


def test_without_a_verdict_there_is_no_mean(engine: Engine, failing_engine: Engine, tmp_path: Path) -> None:
    result = compute(engine, tmp_path, CONSISTENT, "")
    assert (result["score"], result["passed"]) == (None, [True, None])
    result = compute(failing_engine, tmp_path, CONSISTENT)
    assert (result["score"], result["probabilities"]) == (None, [None])
    assert FAILURE in result["reasons"][0]
