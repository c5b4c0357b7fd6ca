"""Bundles on the hub, from a cache as huggingface_hub writes it, without network."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from groundwire.runtime.bundles import hub
from groundwire.runtime.bundles.bundle import MANIFEST, RECORDED, Bundle
from groundwire.runtime.errors import BundleError
from groundwire.runtime.local import LocalRuntime

FIRST, SECOND = "1" * 40, "2" * 40
Publish = Callable[..., Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HF_HOME, offline."""
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


@pytest.fixture
def publish(home: Path) -> Publish:
    """Puts a directory into the cache, as a download of org/tiny at a commit with these names does."""

    def write(directory: Path, commit: str, *names: str) -> Path:
        repository = home / "hub" / "models--org--tiny"
        (repository / "blobs").mkdir(parents=True, exist_ok=True)
        snapshot = repository / "snapshots" / commit
        for path in (path for path in directory.rglob("*") if path.is_file()):
            blob = repository / "blobs" / hashlib.sha256(path.read_bytes()).hexdigest()
            shutil.copyfile(path, blob)
            link = snapshot / path.relative_to(directory)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(blob)
        for name in names:
            (repository / "refs").mkdir(exist_ok=True)
            (repository / "refs" / name).write_text(commit, encoding="utf-8")
        return snapshot

    return write


def edit(directory: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    change(manifest)
    (directory / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return directory


def test_a_bundle_of_the_hub_is_verified_and_runs(tiny_bundle: Path, publish: Publish, home: Path) -> None:
    published = shutil.copytree(tiny_bundle, home / "published")
    (published / ".gitattributes").touch()
    Bundle.open(published).record({}, b"answers")
    publish(published, FIRST, "main")
    opened = Bundle.open("hf://org/tiny")
    opened.verify()
    assert opened.manifest.digest() == Bundle.open(tiny_bundle).manifest.digest()
    assert opened.directory == home / "groundwire" / "org--tiny" / FIRST
    files = {path.relative_to(opened.directory).as_posix() for path in opened.directory.rglob("*") if path.is_file()}
    assert files == {MANIFEST, RECORDED, *opened.manifest.files}
    assert not any(path.is_symlink() for path in opened.directory.rglob("*"))
    assert LocalRuntime.load("hf://org/tiny", "cpu", threads=1).roles == {"qg", "qa", "nli", "spans"}


def test_a_revision_is_a_tag_or_a_commit(tiny_bundle: Path, publish: Publish, home: Path) -> None:
    publish(tiny_bundle, FIRST, "v1")
    other = edit(shutil.copytree(tiny_bundle, home / "other"), lambda manifest: manifest.update(version="7"))
    publish(other, SECOND, "main")
    assert Bundle.open("hf://org/tiny").manifest.version == "7"
    first = Bundle.open("hf://org/tiny@v1")
    assert first.manifest.version != "7"
    assert Bundle.open(f"hf://org/tiny@{FIRST}").directory == first.directory


def test_a_commit_that_is_here_needs_no_hub(
    tiny_bundle: Path, publish: Publish, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tiny_bundle, FIRST, "main")
    directory = Bundle.open("hf://org/tiny").directory
    shutil.rmtree(home / "hub")
    monkeypatch.setattr(hub, "ask_hub", lambda endpoint: pytest.fail("the hub was asked"))
    assert Bundle.open(f"hf://org/tiny@{FIRST}").directory == directory


def test_a_hub_that_does_not_answer_leaves_the_cache(
    tiny_bundle: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BundleError, match=r"hf://org/tiny cannot be fetched: the hub \(http://127.0.0.1:9\) does not"):
        Bundle.open("hf://org/tiny")
    publish(tiny_bundle, FIRST, "main")
    assert set(Bundle.open("hf://org/tiny").manifest.roles) == {"qg", "qa", "nli", "spans"}


def test_a_damaged_file_is_found(tiny_bundle: Path, publish: Publish, home: Path) -> None:
    publish(tiny_bundle, FIRST, "main")
    weights = home / "hub" / "models--org--tiny" / "snapshots" / FIRST / "weights.bin"
    data = bytearray(weights.read_bytes())
    data[100] ^= 255
    weights.resolve().write_bytes(data)
    with pytest.raises(BundleError, match=r"weights\.bin has SHA-256"):
        Bundle.open("hf://org/tiny").verify()


def test_an_incomplete_download_is_no_bundle(tiny_bundle: Path, publish: Publish, home: Path) -> None:
    snapshot = publish(tiny_bundle, FIRST, "main")
    (snapshot / "weights.bin").unlink()
    with pytest.raises(BundleError, match=r"hf://org/tiny is incomplete: it lacks weights\.bin"):
        Bundle.open("hf://org/tiny")
    assert not (home / "groundwire").exists()


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "a\\..\\b"])
def test_a_manifest_cannot_write_outside_its_bundle(tiny_bundle: Path, publish: Publish, home: Path, name: str) -> None:
    def add(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = {"sha256": "0" * 64, "bytes": 1}

    publish(edit(shutil.copytree(tiny_bundle, home / "hostile"), add), FIRST, "main")
    with pytest.raises(BundleError, match="which is outside the bundle"):
        Bundle.open("hf://org/tiny")


def test_what_the_cache_does_not_have_is_said(tiny_bundle: Path, publish: Publish) -> None:
    publish(tiny_bundle, FIRST, "main")
    for reference in ("hf://org/other", "hf://org/tiny@v9"):
        with pytest.raises(BundleError, match=rf"{reference} cannot be fetched: HF_HUB_OFFLINE is set, and the cache"):
            Bundle.open(reference)


@pytest.mark.parametrize("reference", ["hf://", "hf://tiny", "hf://org/tiny@", "hf://org/tiny/x", "hf://../tiny"])
def test_malformed_references(reference: str) -> None:
    with pytest.raises(BundleError, match="write hf://ORG/NAME or hf://ORG/NAME@REVISION"):
        Bundle.open(reference)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BundleError, match=r"pip install 'groundwire\[hub\]'"):
        Bundle.open("hf://org/tiny")
