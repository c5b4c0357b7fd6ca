"""Where a bundle's name leads: to the checkout, or to an installed package that brings the bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groundwire.runtime.bundles import bundle
from groundwire.runtime.bundles.bundle import SHIPPED, embedded, locate
from groundwire.runtime.errors import BundleError

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package that brings a bundle, as pip would: its folder, and its metadata with the entry point."""

    def write(name: str, module: str) -> Path:
        directory = tmp_path / f"brings_{name}" / name
        directory.mkdir(parents=True)
        (directory.parent / "__init__.py").touch()
        (directory / bundle.MANIFEST).write_text("{}", encoding="utf-8")
        info = tmp_path / f"brings_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: brings-{name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[{bundle.ENTRY_POINTS}]\n{name} = {module}\n", encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        return directory

    return write


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without bundles."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.setattr(bundle, "CHECKOUT", folder)
    return folder


def test_an_installed_package_brings_its_bundle(install: Install, checkout: Path) -> None:
    directory = install("small", "brings_small.small")
    assert "small" in embedded()
    assert locate("small") == directory


def test_the_checkout_comes_before_an_installed_package(install: Install, checkout: Path) -> None:
    install("small", "brings_small.small")
    (checkout / "small").mkdir()
    (checkout / "small" / bundle.MANIFEST).write_text("{}", encoding="utf-8")
    assert embedded().count("small") == 1
    assert locate("small") == checkout / "small"


def test_an_empty_folder_of_the_checkout_is_passed_over(install: Install, checkout: Path) -> None:
    directory = install("plain", "brings_plain.plain")
    (checkout / "plain").mkdir()
    assert locate("plain") == directory


def test_a_damaged_package_is_named(install: Install, checkout: Path) -> None:
    install("small", "brings_small.other")
    with pytest.raises(BundleError, match=r"brings-small, which brings the bundle 'small', is damaged: .*reinstall"):
        locate("small")


def test_a_damaged_file_of_a_package_is_repaired_by_installing_it_again(
    install: Install, checkout: Path, tmp_path: Path
) -> None:
    (install("small", "brings_small.small") / bundle.MANIFEST).write_text("{", encoding="utf-8")
    with pytest.raises(BundleError, match=r"pip install --force-reinstall brings-small$"):
        bundle.Bundle.open("small")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / bundle.MANIFEST).write_text("{", encoding="utf-8")
    with pytest.raises(BundleError, match="Restore the file, or export the bundle again"):
        bundle.Bundle.open(tmp_path / "mine")


def test_without_any_bundle_the_packages_are_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "ENTRY_POINTS", "groundwire.bundles.none")
    with pytest.raises(
        BundleError, match="pip install groundwire-compact groundwire-reader groundwire-nph groundwire-generator"
    ):
        locate("mine")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_package_of_a_bundle_that_is_not_installed_is_named(
    name: str, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "ENTRY_POINTS", "groundwire.bundles.none")
    monkeypatch.chdir(checkout)
    with pytest.raises(BundleError, match=f"'{name}' is not installed: pip install groundwire-{name}$"):
        locate(name)


def test_the_checkout_of_this_test_has_its_own_bundles() -> None:
    root = Path(bundle.__file__).resolve().parents[2]
    assert locate("compact") == root / "bundles" / "compact"
