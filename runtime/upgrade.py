"""Reads what earlier versions wrote: manifests and calibrations of schemas 1 and 2 in the words of schema 3."""

from __future__ import annotations

from typing import Any

SCHEMA = 3
"""The schema that this version writes, of manifests and calibrations alike."""

_KINDS = {
    "reader": "extractive_qa",
    "tagger": "token_classifier",  # terms: literal
    "generator": "question_generator",
    "writer": "response_generator",
    "lm": "language_model",
}
_ROLES = {"tokens": "token_classifier"}
_OPERATING_POINT = {
    "false_alarms": "false_positive_rate",  # terms: literal
    "misses": "false_negative_rate",
}
_FUSION = ("metrics", "intercept", "features", "profiles")
"""Fields that schema 3 has in each fusion; a calibration of schema 2 is one fusion."""


def upgrade_manifest(manifest: Any) -> Any:
    """The JSON object of a manifest in schema 3; what is not of an earlier schema as it is.

    >>> upgrade_manifest({"schema": 1, "roles": {"qa": {"kind": "reader"}}})
    {'schema': 3, 'roles': {'qa': {'kind': 'extractive_qa'}}}
    """
    if not isinstance(manifest, dict) or manifest.get("schema") not in (1, 2):
        return manifest
    upgraded = manifest | {"schema": SCHEMA}
    roles = manifest.get("roles")
    if manifest["schema"] == 1 and isinstance(roles, dict):
        upgraded["roles"] = {_ROLES.get(name, name): _upgrade_role(role) for name, role in roles.items()}
    if "calibration" in manifest:
        upgraded["calibration"] = upgrade_calibration(manifest["calibration"])
    return upgraded


def upgrade_calibration(calibration: Any) -> Any:
    """The JSON object of a calibration in schema 3; what is not of an earlier schema as it is."""
    if not isinstance(calibration, dict) or calibration.get("schema") not in (1, 2):
        return calibration
    upgraded = _upgrade_names(calibration) if calibration["schema"] == 1 else calibration
    fusion = {"name": "full"} | {name: upgraded[name] for name in _FUSION if name in upgraded}
    rest = {name: value for name, value in upgraded.items() if name not in _FUSION}
    return rest | {"schema": SCHEMA, "fusions": [fusion]}


def _upgrade_names(calibration: dict[str, Any]) -> dict[str, Any]:
    """A calibration of schema 1 in the words of schema 2."""
    upgraded = dict(calibration)
    points = calibration.get("profiles")
    if isinstance(points, dict):
        upgraded["profiles"] = {name: _rename(point, _OPERATING_POINT) for name, point in points.items()}
    scales = calibration.get("scales")
    if isinstance(scales, dict):
        upgraded["scales"] = {name: _without(scale, "knots") for name, scale in scales.items()}
    if isinstance(calibration.get("metrics"), list):
        upgraded["metrics"] = [_ROLES.get(name, name) for name in calibration["metrics"]]
    return upgraded


def _upgrade_role(role: Any) -> Any:
    if not isinstance(role, dict) or role.get("kind") not in _KINDS:
        return role
    return role | {"kind": _KINDS[role["kind"]]}


def _rename(record: Any, names: dict[str, str]) -> Any:
    return {names.get(key, key): value for key, value in record.items()} if isinstance(record, dict) else record


def _without(record: Any, name: str) -> Any:
    return {key: value for key, value in record.items() if key != name} if isinstance(record, dict) else record
