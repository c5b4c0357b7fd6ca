"""The embedded bundles, and what their data packages in ``bundles/packaging/`` say of themselves."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from deploy import wheels

ROOT = Path(__file__).resolve().parents[2]
BUNDLES = tuple(folder.name for folder in wheels.MODELS)
IN_CHECKOUT = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not (ROOT / "bundles" / name / "bundle.json").is_file(), reason=f"this checkout holds no bundle {name!r}"
        ),
    )
    for name in BUNDLES
]
"""The same as parameters of a test, skipped without their weights."""


def read_project(bundle: str | None = None) -> dict[str, Any]:
    """The ``pyproject.toml`` of a bundle's package, or of Groundwire."""
    folder = ROOT if bundle is None else ROOT / "bundles" / "packaging" / bundle
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def read_requirement(bundle: str) -> Requirement:
    """What a wheel of Groundwire asks of a bundle's package."""
    provider, _ = read_project()["tool"]["dynamic-metadata"]
    needed = map(Requirement, provider["models"])
    (requirement,) = (requirement for requirement in needed if requirement.name == f"groundwire-{bundle}")
    return requirement


def read_manifest(directory: Path) -> str:
    """The text of a bundle's manifest."""
    return (directory / "bundle.json").read_text(encoding="utf-8")


def read_version(bundle: str, manifest: str) -> str:
    """The version of a bundle's package, read from the text of the manifest as the build does."""
    (provider,) = read_project(bundle)["tool"]["dynamic-metadata"]
    match = re.search(provider["regex"], manifest, re.MULTILINE)
    assert match is not None
    return str(provider["result"].format(**match.groupdict()))
