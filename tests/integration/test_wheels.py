"""The wheels as the image builds and installs them: what they require and hold, and that they work on their own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bench.gpu.pack import list_files
from deploy import wheels
from tests.support.packaging import BUNDLES, ROOT

HERE = all((ROOT / "bundles" / bundle / "bundle.json").is_file() for bundle in BUNDLES)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not HERE, reason="this checkout does not hold every bundle"),
    pytest.mark.skipif(sys.platform == "win32", reason="the service is stopped by SIGTERM"),
]


@pytest.fixture(scope="module", autouse=True)
def compile_what_is_imported() -> Iterator[None]:
    """Let pip compile no bytecode, here and for what it builds with: Python compiles the few modules that run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_COMPILE", "0")
        yield


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an archive of the tree has: no link, and nothing that git ignores."""
    folder = tmp_path_factory.mktemp("copy")
    for name in list_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def built(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all wheels, those of the dependencies included."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels.build(folder, copy)
    return folder


@pytest.fixture(scope="module")
def installation(built: Path, tmp_path_factory: pytest.TempPathFactory) -> wheels.Installation:
    """A new environment with what the image installs."""
    return wheels.Installation(tmp_path_factory.mktemp("installation"), built)


def test_there_is_a_wheel_of_each_distribution(built: Path) -> None:
    names = [wheels.read_metadata(wheel)["Name"] for wheel in wheels.find_own(built)]
    assert sorted(names) == ["groundwire", *sorted(f"groundwire-{name}" for name in (*BUNDLES, "recipes"))]
    code = [*built.glob("groundwire-0*.whl"), *built.glob("groundwire_recipes-*.whl")]
    assert len({wheels.read_metadata(wheel)["Version"] for wheel in code}) == 1


def test_a_wheel_requires_its_models(built: Path) -> None:
    headers = {wheels.read_metadata(wheel)["Name"]: wheels.read_metadata(wheel) for wheel in wheels.find_own(built)}
    required = [Requirement(line) for line in headers["groundwire"].get_all("Requires-Dist", [])]
    models = {model.name: model for model in required if model.name.startswith("groundwire-")}
    assert models.keys() == {f"groundwire-{bundle}" for bundle in BUNDLES}
    for name, requirement in models.items():
        assert headers[name]["Version"] in requirement.specifier
        assert requirement.marker is None


def test_files_and_licences_are_complete_and_small_enough(built: Path) -> None:
    for wheel in wheels.find_own(built):
        assert wheels.check_wheel(wheel) == []


def test_a_wheel_that_is_too_large_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "large.whl"
    with wheel.open("wb") as file:
        file.truncate(wheels.LARGEST_BYTES)
    assert wheels.check_size(wheel) == ["large.whl: has 100,000,000 bytes; fewer than 100,000,000 are taken"]


def test_the_installed_models_are_the_embedded_ones(installation: wheels.Installation) -> None:
    installation.run("python", "-I", "-c", wheels.PROBE)


def test_the_package_is_imported_from_the_installation_in_a_checkout(installation: wheels.Installation) -> None:
    code = "import groundwire.engine as e, groundwire.runtime._native as n; print(e.__file__, n.__file__)"
    paths = installation.run("python", "-c", code, folder=ROOT).split()
    assert len(paths) == 2
    assert not any(Path(path).is_relative_to(ROOT) for path in paths)


def test_a_copy_has_no_links(copy: Path) -> None:
    assert [path for path in copy.rglob("*") if path.is_symlink()] == []


def test_a_copy_is_installed_as_a_checkout_and_scores(copy: Path, built: Path, tmp_path: Path) -> None:
    """In an environment that has the dependencies and the tools to build with from this one; the wheel has compiled the
    module, which takes half a minute."""
    (wheel,) = built.glob("groundwire-0*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (module,) = (name for name in archive.namelist() if Path(name).suffix in (".so", ".pyd"))
        (copy / "runtime" / Path(module).name).write_bytes(archive.read(module))
    venv.create(tmp_path)
    (packages,) = tmp_path.glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    python = str(tmp_path / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet"]
    options = ["--no-build-isolation", "--no-deps"]
    options += ["--config-settings=wheel.cmake=false", "--config-settings=wheel.py-api=py3"]
    subprocess.run([*pip, "install", *options, "--editable", str(copy)], check=True)
    command = [python, "-m", "groundwire", "score", "examples/dialogues.jsonl"]
    lines = subprocess.run(command, check=True, cwd=copy, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert len(lines) == len((ROOT / "examples" / "dialogues.jsonl").read_text(encoding="utf-8").splitlines())
    assert {json.loads(line)["score"]["status"] for line in lines} == {"scored"}
    code = "import groundwire.engine, groundwire.runtime._native as n; print(groundwire.engine.__file__, n.__file__)"
    paths = subprocess.run([python, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.PIPE, text=True).stdout
    assert all(Path(path).is_relative_to(copy) for path in paths.split())


def test_the_service_of_the_image_gets_ready_and_scores(installation: wheels.Installation) -> None:
    with installation.serve() as address:
        assert wheels.wait_until_ready(address) == 200
        status, body = wheels.ask(f"{address}/score", wheels.EXAMPLE)
    assert (status, json.loads(body)["status"]) == (200, "scored"), body


def test_the_command_scores_a_line(installation: wheels.Installation) -> None:
    (line,) = installation.run("groundwire", "score", "example.jsonl").splitlines()
    assert json.loads(line)["score"]["status"] == "scored"


def test_the_extras_that_the_quickstart_names_need_no_index(installation: wheels.Installation) -> None:
    installation.check_extras()


def test_recipes_add_their_commands(installation: wheels.Installation) -> None:
    def list_commands() -> set[str]:
        return {*re.findall(r"^\W+([a-z]+) {2,}\S", installation.run("groundwire", "--help"), re.M)}  # rows of a table

    added = {"tables", "convert", "corpus"}
    assert not added & list_commands()
    installation.add_recipes()
    assert {"score", *added} <= list_commands()


SDIST = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
METADATA = "import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare; "
METADATA += "print(prepare(sys.argv[1]))"


def test_a_source_distribution_has_what_its_wheel_is_built_from(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SDIST, str(tmp_path)], check=True, cwd=ROOT)
    (archive,) = tmp_path.glob("groundwire-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {file.relative_to(ROOT).as_posix() for file in wheels.list_sources(ROOT).values()} <= names
    assert {"cpp_ext/CMakeLists.txt", "README.md", "LICENSE", "deploy/requires_models.py", "deploy/links.py"} <= names
    assert not [name for name in names if name.startswith(("bundles/", "recipes/", "bench/results/"))]
    command = [sys.executable, "-c", METADATA, str(tmp_path)]
    subprocess.run(command, check=True, cwd=unpacked)
    metadata = (tmp_path / f"{unpacked.name}.dist-info" / "METADATA").read_text(encoding="utf-8")
    for text in (metadata, (unpacked / "PKG-INFO").read_text(encoding="utf-8")):
        assert all(f"\nRequires-Dist: groundwire-{bundle}~=" in text for bundle in BUNDLES)
