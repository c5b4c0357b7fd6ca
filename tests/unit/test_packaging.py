"""What the wheels say of themselves: the licences of the embedded bundles, their versions, and who needs whom."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
BUNDLES = ("compact", "nph")


def read_project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def read_manifest(bundle: str) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((ROOT / "bundles" / bundle / "bundle.json").read_text(encoding="utf-8"))
    return manifest


def read_version(bundle: str) -> str:
    """The version of a data package, read from the bundle's manifest as the build does."""
    provider = read_project(ROOT / "packaging" / bundle)["tool"]["scikit-build"]["metadata"]["version"]
    manifest = (ROOT / "packaging" / bundle / provider["input"]).read_text(encoding="utf-8")
    match = re.search(provider["regex"], manifest, re.MULTILINE)
    assert match is not None
    return str(provider["result"].format(**match.groupdict()))


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_data_package_has_the_licences_of_its_bundle_with_their_texts(bundle: str) -> None:
    folder = ROOT / "packaging" / bundle
    licence = read_project(folder)["project"]["license"]
    assert licence == read_manifest(bundle)["license"]
    texts = {path.stem for path in (folder / "LICENSES").iterdir()}
    assert set(licence.split(" AND ")) <= texts
    notice = (folder / "NOTICE").read_text(encoding="utf-8")
    assert licence in " ".join(notice.split())
    # Each licence heads the works under it.
    assert [line for line in notice.splitlines() if line in licence.split(" AND ")] == licence.split(" AND ")


@pytest.mark.parametrize("bundle", BUNDLES)
def test_the_version_is_that_of_the_manifest(bundle: str) -> None:
    manifest = read_manifest(bundle)
    assert read_version(bundle) == f"{manifest['schema']}.{manifest['version']}"


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_wheel_needs_the_data_packages_that_are_here(bundle: str) -> None:
    build = read_project(ROOT)["tool"]["scikit-build"]
    (override,) = build["overrides"]
    needed = {Requirement(text).name: Requirement(text) for text in override["metadata"]["dependencies"]["result"]}
    assert read_version(bundle) in needed[f"groundwire-{bundle}"].specifier
    assert override["if"]["state"] == "^(wheel|metadata_wheel)$", "an editable installation reads bundles/"
    assert all("bundles" not in source for source in build["wheel"]["packages"].values())


def test_groundwires_wheel_has_the_licences_of_what_is_compiled_into_it() -> None:
    project = read_project(ROOT)["project"]
    assert project["license"] == "Apache-2.0 AND BSD-3-Clause AND MIT"
    files = [path.name for pattern in project["license-files"] for path in ROOT.glob(pattern)]
    assert sorted(files) == ["LICENSE", "nanobind.txt", "robin_map.txt"]
