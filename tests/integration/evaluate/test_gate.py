"""The embedded bundle on labelled sentences of our own: a metric that falls below its floor has become worse.

The sentences are general knowledge, each once true and once false. Measured with the bundle of digest
4efc0b1cd084: ROC-AUC 0.961 (q2), 0.931 (nli), 0.961 (overlap_precision). The floors leave room for models that err
elsewhere, none for one that is broken.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.scores.scoring import ScoringSettings, score_sets
from groundwire.evaluate.statistics.analysis import analyse
from groundwire.runtime.bundles.bundle import embedded, open_bundles
from groundwire.runtime.bundles.calibration import join_calibrations

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle yet")

SET = Path(__file__).parents[3] / "examples" / "labelled.jsonl"
FLOORS = {"q2": 0.90, "nli": 0.85, "overlap_precision": 0.93}


@pytest.mark.slow
def test_no_metric_is_below_its_floor(tmp_path: Path) -> None:
    examples = read_dataset(SET)
    settings = ScoringSettings("compact", "cpu", threads=1, metrics=tuple(FLOORS))
    scored = score_sets({"general": examples}, tmp_path, settings)
    measured = analyse("general", examples, scored.sets["general"], repeats=20)
    for name, floor in FLOORS.items():
        figures = measured.metrics[name]
        assert figures.statuses == {"scored": len(examples)}
        assert figures.roc_auc is not None
        assert figures.roc_auc.value >= floor, name
    assert measured.questions is not None
    assert measured.questions.with_question.value >= 0.9


def test_a_plan_needs_no_models() -> None:
    plan = ScoringSettings(device="cpu").plan()
    manifests = [bundle.manifest for bundle in open_bundles("compact")]
    calibration = join_calibrations([manifest.calibration for manifest in manifests])
    assert calibration is not None
    assert sorted(plan.names) == sorted(calibration.metrics)
    assert all(manifest.digest() in plan.signature for manifest in manifests)
