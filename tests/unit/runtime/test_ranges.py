"""Numbers of manifests and calibrations that no model or verdict could mean are refused when they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groundwire.runtime.bundles.bundle import embedded, locate
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.bundles.decode import SCHEMA
from groundwire.runtime.bundles.manifest import ClassifierRole, Manifest, Template
from groundwire.runtime.errors import BundleError, InvalidRequest
from tests.support.evaluation import CALIBRATION

MODEL = {
    "kind": "classifier",
    "source": "a",
    "architecture": "A",
    "precision": "fp32",
    "tokenizer": "t",
    "max_tokens": 8,
    "pad_id": 0,
    "graph": "g",
    "labels": ["yes", "no"],
}
GENERATOR = {
    key: MODEL[key] for key in ("source", "architecture", "precision", "tokenizer", "max_tokens", "pad_id")
} | {
    "kind": "question_generator",
    "encoder": "e",
    "decoder": "d",
    "template": {"first": "{answer}", "second": "{context}"},
    "eos_ids": [1],
    "start_id": 0,
    "vocabulary": 10,
    "layers": 1,
    "heads": 1,
    "head_dim": 1,
}
INFERENCE = ["entailment", "neutral", "contradiction"]


def manifest(**role: Any) -> dict[str, Any]:
    plain = {"schema": 2, "name": "a", "version": "1", "license": "MIT", "created_with": "test", "files": {}}
    return plain | {"roles": {"a": role}}


def test_the_records_themselves_are_accepted() -> None:
    msgspec.convert(manifest(**MODEL), Manifest)
    msgspec.convert(manifest(**GENERATOR), Manifest)


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": 0},
        {"max_tokens": -1},
        {"pad_id": -1},
        {"stride": -1},
        {"labels": []},
        {"template": {"first": "{premise}"}},
        {"template": {"first": "{premise}", "second": "hypothesis"}},
        {"template": {"first": "a", "second": "{hypothesis}"}},
        {"template": {"first": "{premise} {name}", "second": "{hypothesis}"}},
        {"template": {"first": "{hypothesis}"}, "labels": INFERENCE},
        {"parity": {"texts": 1, "max_logit_error": 0.0, "logit_std": 1.0, "decision_agreement": 1.5}},
    ],
    ids=str,
)
def test_a_classifiers_numbers_are_bounded(change: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.roles"):
        msgspec.convert(manifest(**(MODEL | change)), Manifest)


@pytest.mark.parametrize(
    "change",
    [
        {"eos_ids": []},
        {"eos_ids": [-1]},
        {"start_id": -1},
        {"vocabulary": 0},
        {"heads": 0},
        {"shortlist": 0},
        {"template": {"first": "{answer}"}},
    ],
    ids=str,
)
def test_a_question_generators_numbers_are_bounded(change: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.roles"):
        msgspec.convert(manifest(**(GENERATOR | change)), Manifest)


@pytest.mark.parametrize("entry", [{"bytes": -1, "sha256": "0" * 64}, {"bytes": 1, "sha256": "0"}])
def test_a_files_entry_is_bounded(entry: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.files"):
        msgspec.convert(manifest(**MODEL) | {"files": {"g": entry}}, Manifest)


def test_a_detector_may_read_the_response_alone() -> None:
    role = msgspec.convert(MODEL | {"template": {"first": "{hypothesis}"}}, ClassifierRole)
    assert role.template == Template("{hypothesis}")


def test_a_template_given_in_python_is_an_invalid_request() -> None:
    with pytest.raises(
        InvalidRequest, match=r"fields \{sentence\}; it must have \{answer\}, \{context\}, and no other"
    ):
        Template("{sentence}").check(("answer", "context"))


FUSION = ("fusions", 0)
RECORD = {"count": 3, "values": [0.4, 0.5]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*FUSION, "features", 0, "deviation"), 0),
        ((*FUSION, "features", 0, "deviation"), -1.0),
        ((*FUSION, "features"), []),
        ((*FUSION, "profiles", "balanced", "threshold"), -0.1),
        ((*FUSION, "profiles", "balanced", "threshold"), 1.1),
        ((*FUSION, "profiles", "balanced", "false_positive_rate"), 2),
        ((*FUSION, "profiles", "balanced", "max_false_positive_rate"), 1.1),
        ((*FUSION, "profiles"), {}),
        ((*FUSION, "held_out"), {"consistent": RECORD, "inconsistent": RECORD | {"values": [0.5, 0.4]}}),
        ((*FUSION, "held_out"), {"consistent": RECORD, "inconsistent": RECORD | {"values": [0.5, 1.5]}}),
        ((*FUSION, "held_out"), {"consistent": RECORD, "inconsistent": RECORD | {"values": []}}),
        ((*FUSION, "held_out"), {"consistent": RECORD | {"count": 1}, "inconsistent": RECORD}),
        ((*FUSION, "distributions"), {"words": {"edges": [2.0, 1.0], "counts": [1, 2, 3]}}),
        ((*FUSION, "distributions"), {"words": {"edges": [1.0, 2.0], "counts": [1, 2]}}),
        ((*FUSION, "distributions"), {"words": {"edges": [], "counts": [1]}}),
        ((*FUSION, "distributions"), {"colour": {"edges": [1.0], "counts": [1, 2]}}),
        (("fusions",), []),
        (("verifiable",), 1.5),
        (("rows",), -1),
        ((*FUSION, "intercept"), float("nan")),
        ((*FUSION, "features", 0, "weight"), float("inf")),
    ],
    ids=str,
)
def test_a_calibrations_numbers_are_bounded(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    content = json.loads(msgspec.json.encode(CALIBRATION))
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (tmp_path / "calibration.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BundleError, match="is no calibration"):
        Calibration.load(tmp_path / "calibration.json")


@pytest.mark.parametrize("content", [[], "text", None, {"schema": SCHEMA}, {"schema": SCHEMA, "fusions": 3}, {}])
def test_what_is_no_calibration_is_refused(content: Any, tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BundleError, match="is no calibration"):
        Calibration.load(tmp_path / "calibration.json")


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_a_calibration_of_another_schema_is_refused(schema: int, tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text(json.dumps({"schema": schema, "new": 1}), encoding="utf-8")
    with pytest.raises(BundleError, match=f"has schema {schema}; this version of Groundwire reads {SCHEMA}"):
        Calibration.load(tmp_path / "calibration.json")


@pytest.mark.parametrize("name", embedded())
def test_the_embedded_bundles_are_within_the_ranges(name: str) -> None:
    msgspec.json.decode((locate(name) / "bundle.json").read_bytes(), type=Manifest)
