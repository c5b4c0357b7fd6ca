"""Manifests and calibrations of schemas 1 and 2, read in the words of schema 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.bundles.manifest import Manifest
from groundwire.runtime.errors import BundleError
from groundwire.runtime.upgrade import SCHEMA, upgrade_calibration, upgrade_manifest

POINT = {"threshold": 0.5, "false_alarms": 0.2, "misses": 0.1}  # terms: literal
CALIBRATION: dict[str, Any] = {
    "schema": 1,
    "fitted_on": ["dev"],
    "rows": 10,
    "metrics": ["q2", "tokens"],
    "intercept": 0.0,
    "features": [{"name": "q2", "mean": 0.5, "deviation": 0.25, "weight": 1.0, "needed": True}],
    "profiles": {"balanced": POINT},
    "scales": {"q2": {"low": 0.0, "high": 1.0, "threshold": 0.5, "knots": [[0.0, 0.1], [1.0, 0.9]]}},
}
MODEL = {
    "source": "x",
    "revision": None,
    "architecture": "A",
    "precision": "int8",
    "tokenizer": "tokenizer.json",
    "max_tokens": 256,
    "pad_id": 0,
    "parity": None,
    "graph": "g.onnx",
}
MANIFEST: dict[str, Any] = {
    "schema": 1,
    "name": "old",
    "version": "1",
    "license": "MIT",
    "created_with": "groundwire 0.0",
    "roles": {
        "qa": MODEL | {"kind": "reader"},
        "lm": MODEL | {"kind": "lm"},
        "tokens": MODEL | {"kind": "tagger", "labels": ["ok", "bad"], "supported": "ok"},  # terms: literal
        "nli": MODEL | {"kind": "classifier", "labels": ["entailment", "neutral", "contradiction"]},
    },
    "calibration": CALIBRATION,
    "files": {},
}


def test_a_manifest_of_schema_1_is_read() -> None:
    manifest = msgspec.convert(upgrade_manifest(MANIFEST), type=Manifest)
    kinds = {name: type(role).__name__ for name, role in manifest.roles.items()}
    assert kinds == {
        "qa": "ExtractiveQARole",
        "lm": "LanguageModelRole",
        "token_classifier": "TokenClassifierRole",
        "nli": "ClassifierRole",
    }
    assert manifest.schema == SCHEMA
    assert manifest.calibration is not None
    assert manifest.calibration.metrics == ("q2", "token_classifier")
    point = manifest.calibration.fusions[0].profile("balanced")
    assert (point.false_positive_rate, point.false_negative_rate) == (0.2, 0.1)


def test_a_calibration_file_of_schema_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_bytes(msgspec.json.encode(CALIBRATION))
    loaded = Calibration.load(path)
    assert loaded.scales["q2"].threshold == 0.5
    loaded.save(path)
    assert Calibration.load(path) == loaded


SCHEMA_2 = CALIBRATION | {
    "schema": 2,
    "profiles": {"balanced": {"threshold": 0.5, "false_positive_rate": 0.2, "false_negative_rate": 0.1}},
    "scales": {},
}


def test_a_calibration_of_schema_2_is_one_fusion_that_promises_nothing() -> None:
    for decoded in (SCHEMA_2, msgspec.json.decode(msgspec.json.encode(SCHEMA_2))):
        calibration = msgspec.convert(upgrade_calibration(decoded), type=Calibration)
        (fusion,) = calibration.fusions
        assert (calibration.schema, fusion.name, fusion.metrics) == (SCHEMA, "full", ("q2", "tokens"))
        point = fusion.profile("balanced")
        assert (point.threshold, point.false_positive_rate, point.max_false_positive_rate) == (0.5, 0.2, None)
        assert (fusion.held_out, fusion.distributions) == (None, {})


def test_a_manifest_of_schema_2_keeps_its_roles() -> None:
    roles = {"qa": MODEL | {"kind": "extractive_qa"}}
    given = MANIFEST | {"schema": 2, "roles": roles, "calibration": SCHEMA_2}
    manifest = msgspec.convert(upgrade_manifest(given), type=Manifest)
    assert manifest.schema == SCHEMA
    assert manifest.calibration == msgspec.convert(upgrade_calibration(SCHEMA_2), type=Calibration)
    assert upgrade_manifest(MANIFEST | {"schema": 2, "roles": roles, "calibration": None})["calibration"] is None


def test_the_schema_of_today_is_left_as_it_is() -> None:
    for upgrade, given in ((upgrade_manifest, MANIFEST), (upgrade_calibration, CALIBRATION)):
        upgraded = upgrade(given)
        assert upgrade(upgraded) is upgraded


@pytest.mark.parametrize(
    "damaged",
    [[], "text", None, {"schema": 1, "profiles": [], "scales": {"q2": 1}}, {"schema": 1, "profiles": {"balanced": 3}}],
)
def test_what_is_no_calibration_is_refused(damaged: Any, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_bytes(msgspec.json.encode(damaged))
    with pytest.raises(BundleError, match="calibration"):
        Calibration.load(path)


@pytest.mark.parametrize("damaged", [[], None, {"schema": 1, "roles": []}, {"schema": 1, "roles": {"qa": 7}}])
def test_what_is_no_manifest_stays_none(damaged: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(upgrade_manifest(damaged), type=Manifest)
