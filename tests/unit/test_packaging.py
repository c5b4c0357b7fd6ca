"""What the wheels say of themselves: the licences of the embedded bundles, their versions, and who needs whom."""

from __future__ import annotations

import json

import pytest

from groundwire.runtime.bundle import SHIPPED
from tests.support.packaging import (
    BUNDLES,
    IN_CHECKOUT,
    ROOT,
    read_manifest,
    read_project,
    read_requirement,
    read_version,
)


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_data_package_has_the_texts_of_its_licences(bundle: str) -> None:
    folder = ROOT / "bundles" / "packaging" / bundle
    licence = read_project(bundle)["project"]["license"]
    texts = {path.stem for path in (folder / "LICENSES").iterdir()}
    assert set(licence.split(" AND ")) <= texts
    notice = (folder / "NOTICE").read_text(encoding="utf-8")
    assert licence in " ".join(notice.split())
    # Each licence heads the works under it.
    assert [line for line in notice.splitlines() if line in licence.split(" AND ")] == licence.split(" AND ")


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_data_package_brings_its_bundle(bundle: str) -> None:
    project = read_project(bundle)
    assert project["project"]["name"] == f"groundwire-{bundle}"
    assert project["project"]["entry-points"]["groundwire.bundles"] == {bundle: f"groundwire_{bundle}.{bundle}"}
    packages = project["tool"]["scikit-build"]["wheel"]["packages"]
    assert packages[f"groundwire_{bundle}/{bundle}"] == f"../../{bundle}"
    assert bundle in SHIPPED


@pytest.mark.parametrize("bundle", IN_CHECKOUT)
def test_licence_and_version_are_those_of_the_manifest(bundle: str) -> None:
    text = read_manifest(ROOT / "bundles" / bundle)
    manifest = json.loads(text)
    assert read_project(bundle)["project"]["license"] == manifest["license"]
    assert read_version(bundle, text) == f"{manifest['schema']}.{manifest['version']}"


@pytest.mark.parametrize("bundle", IN_CHECKOUT)
def test_a_wheel_needs_the_data_packages_that_are_here(bundle: str) -> None:
    version = read_version(bundle, read_manifest(ROOT / "bundles" / bundle))
    assert version in read_requirement(bundle).specifier
    build = read_project()["tool"]["scikit-build"]
    (override,) = build["overrides"]
    assert override["if"]["state"] == "^(wheel|metadata_wheel)$", "an editable installation reads bundles/"
    assert all("bundles" not in source for source in build["wheel"]["packages"].values())


def test_groundwires_wheel_has_the_licences_of_what_is_compiled_into_it() -> None:
    project = read_project()["project"]
    assert project["license"] == "Apache-2.0 AND BSD-3-Clause AND MIT"
    files = [path.name for pattern in project["license-files"] for path in ROOT.glob(pattern)]
    assert sorted(files) == ["LICENSE", "nanobind.txt", "robin_map.txt"]
