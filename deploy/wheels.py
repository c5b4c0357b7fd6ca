"""Builds the wheels of groundwire, of its models and of its recipes into ``dist/`` and tests them.

    python deploy/wheels.py            what `make wheels` runs
    python deploy/wheels.py test       only the tests, of the wheels that are in dist/

The commands that build and install are read from ``deploy/Dockerfile``, with ``dist/`` in the place of ``/wheels``, so
``dist/`` holds the wheels of the dependencies too, and beside them what the extra ``all`` needs, in the versions of
``requirements-dev.lock``. The tests look at the licences and files of each wheel, install the
wheels into a new virtual environment, and there, outside the checkout, score an example, generate a response, and
start the service. pip finds build tools and dependencies as it is configured to (``PIP_NO_INDEX=1`` with
``PIP_FIND_LINKS`` for a machine without network). ``tests/integration/test_wheels.py`` runs the same.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
RECIPES = ROOT / "bundles" / "packaging" / "recipes"
MODELS = tuple(ROOT / line for line in (ROOT / "bundles" / "packaging" / "models.txt").read_text("utf-8").split())
TEXTS = {"Apache-2.0": "LICENSE", "BSD-3-Clause": "nanobind.txt", "MIT": "robin_map.txt"}
"""The files of groundwire's own wheel; the files of other wheels have the name of the licence."""

EXTRAS = "groundwire[all]"
"""What ``dist/`` can install without a package index."""
EXAMPLE = {
    "response": "Rembrandt painted it in 1642.",
    "knowledge": "Rembrandt painted The Night Watch in 1642.",
    "history": ["Who painted The Night Watch?"],
}
PROBE = """
import sys
from pathlib import Path
import groundwire
from groundwire.runtime.bundles.bundle import SHIPPED, Bundle, embedded
assert Path(groundwire.__file__).is_relative_to(sys.prefix), groundwire.__file__
for name in SHIPPED:
    assert name in embedded(), embedded()
    bundle = Bundle.open(name)
    bundle.verify()
    assert bundle.directory.is_relative_to(sys.prefix), bundle.directory
"""
READY_TIMEOUT_S = 120
LARGEST_BYTES = 100_000_000
"""What package indexes take of a wheel."""


def read_pip_commands(verb: str) -> list[list[str]]:
    """Return the arguments of each ``pip VERB`` in the Dockerfile."""
    lines = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    shell = "&&".join(line.removeprefix("RUN ") for line in lines if line.startswith("RUN "))
    commands = [[word for word in shlex.split(part) if not word.startswith("--mount=")] for part in shell.split("&&")]
    return [command[1:] for command in commands if command[:2] == ["pip", verb]]


def read_start_command() -> list[str]:
    """Return what a container runs."""
    words = dict(re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", DOCKERFILE.read_text(encoding="utf-8"), re.M))
    return [*json.loads(words["ENTRYPOINT"]), *json.loads(words["CMD"])]


def run_pip(python: str, arguments: list[str], wheels: Path, source: Path = ROOT) -> None:
    """Run a pip command of the image in ``source`` with ``wheels`` for its folder, and with pip's cache."""
    words = [str(wheels) if word == "/wheels" else word for word in arguments if word != "--no-cache-dir"]
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, *words], check=True, cwd=source)


def build(wheels: Path, source: Path = ROOT) -> None:
    """Build every wheel in isolation, each with its own build tools, and fetch the wheels of the dependencies.

    Args:
        wheels: Where they are written; wheels that are there are removed.
        source: The checkout, or a copy of it.
    """
    wheels.mkdir(exist_ok=True, parents=True)
    for wheel in wheels.glob("*.whl"):
        wheel.unlink()
    for command in read_pip_commands("wheel"):
        run_pip(sys.executable, command, wheels, source)
    recipes = str(source / RECIPES.relative_to(ROOT))
    run_pip(sys.executable, ["wheel", "--no-deps", "--wheel-dir", "/wheels", recipes], wheels, source)
    extras = ["--find-links", "/wheels", "--constraint", "requirements-dev.lock", EXTRAS]
    run_pip(sys.executable, ["wheel", "--wheel-dir", "/wheels", *extras], wheels)


def find_own(wheels: Path) -> list[Path]:
    """Return the wheels of this project: groundwire, its models and its recipes."""
    return sorted(wheels.glob("groundwire*.whl"))


def read_metadata(wheel: Path) -> Message:
    """Return the headers of a wheel's ``METADATA``."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(metadata).decode())


def check_licences(wheel: Path) -> list[str]:
    """Return what is wrong with the licences of a wheel: a text that its metadata names or its expression needs."""
    headers = read_metadata(wheel)
    with zipfile.ZipFile(wheel) as archive:
        files = {name.partition(".dist-info/licenses/")[2] for name in archive.namelist()} - {""}
    problems = [f"{wheel.name}: no {name}" for name in headers.get_all("License-File", []) if name not in files]
    names = {Path(name).name for name in files}
    for licence in re.findall(r"[\w.-]+", headers.get("License-Expression", "")):
        if licence != "AND" and not {TEXTS.get(licence), f"{licence}.txt"} & names:
            problems.append(f"{wheel.name}: no text of {licence}")
    if not files:
        problems.append(f"{wheel.name}: no licences")
    return problems


def list_sources(project: Path) -> dict[str, Path]:
    """Return the files that a project's wheel must have, by their path in it: code, and all data that code reads."""
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]["wheel"]
    sources: dict[str, Path] = {}
    for target, source in settings["packages"].items():
        path = project / source
        if path.is_file():
            sources[target] = path
        for file in path.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix not in (".so", ".pyd"):
                sources[f"{target}/{file.relative_to(path).as_posix()}"] = file
    left_out = tuple(pattern.removesuffix("**") for pattern in settings.get("exclude", []))
    return {name: file for name, file in sources.items() if not name.startswith(left_out)}


def check_files(wheel: Path) -> list[str]:
    """Return the files that a wheel of this project lacks, and the files that it should not have."""
    name = read_metadata(wheel)["Name"]
    projects = {f"groundwire-{folder.name}": folder for folder in (*MODELS, RECIPES)}
    expected = list_sources(projects.get(name, ROOT)).keys()
    with zipfile.ZipFile(wheel) as archive:
        present = {entry for entry in archive.namelist() if ".dist-info/" not in entry and not entry.endswith("/")}
    present = {entry for entry in present if not entry.startswith("groundwire/runtime/_native.") or entry in expected}
    missing = [f"{wheel.name}: lacks {entry}" for entry in sorted(expected - present)]
    return missing + [f"{wheel.name}: has {entry}" for entry in sorted(present - expected)]


def check_wheel(wheel: Path) -> list[str]:
    """Return all that is wrong with a wheel."""
    return [*check_licences(wheel), *check_files(wheel), *check_size(wheel)]


def check_size(wheel: Path) -> list[str]:
    """Return what is wrong with the size of a wheel."""
    size = wheel.stat().st_size
    return [] if size < LARGEST_BYTES else [f"{wheel.name}: has {size:,} bytes; fewer than {LARGEST_BYTES:,} are taken"]


class Installation:
    """A new virtual environment with what the image installs; its commands run in ``folder``, outside the checkout."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder = folder
        self.wheels = wheels
        venv.create(folder / "venv", with_pip=True)
        self._binaries = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        for command in read_pip_commands("install"):
            run_pip(self._find("python"), command, wheels)
        (folder / "example.jsonl").write_text(json.dumps(EXAMPLE) + "\n", encoding="utf-8")

    def _find(self, program: str) -> str:
        return str(self._binaries / program)

    def add_recipes(self) -> None:
        """Install the recipes beside; what they need besides has gigabytes, and their commands start without it."""
        install = ["install", "--no-deps", "--no-index", "--find-links", "/wheels", "groundwire-recipes"]
        run_pip(self._find("python"), install, self.wheels)

    def check_extras(self) -> None:
        """Raise CalledProcessError if the wheels alone do not have all that the extras need; installs nothing."""
        install = ["install", "--isolated", "--dry-run", "--no-index", "--find-links", "/wheels", EXTRAS]
        run_pip(self._find("python"), install, self.wheels)

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Return what a program of the environment prints, started in ``folder``; it must end well."""
        words = [self._find(command[0]), *command[1:]]
        done = subprocess.run(words, check=True, cwd=folder or self.folder, stdout=subprocess.PIPE, env=_environment())
        return done.stdout.decode()

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Run what the container runs; the value is the address of the service. It must end well at SIGTERM."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program, *arguments = read_start_command()
        words = [self._find(program), *arguments, "--port", str(port)]
        process = subprocess.Popen(words, cwd=self.folder, env=_environment())
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=60)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, words)


def _environment() -> dict[str, str]:
    """A user's environment: nothing of it leads back to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GROUNDWIRE_", "COV"))}


def ask(url: str, body: object = None) -> tuple[int, bytes]:
    """Return the status and the body of an answer; an object is posted as JSON."""
    request = urllib.request.Request(url, headers={"content-type": "application/json"})
    if body is not None:
        request.data = json.dumps(body).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def wait_until_ready(address: str) -> int:
    """Return the last status of ``/readyz``: 200 once the models are warm."""
    status = 0
    end = time.monotonic() + READY_TIMEOUT_S
    while status != 200 and time.monotonic() < end:
        try:
            status, _ = ask(f"{address}/readyz")
        except OSError:
            status = 0
        time.sleep(0.2)
    return status


def test(wheels: Path) -> int:
    """Test the wheels; return 1 if anything is wrong with them."""
    built = find_own(wheels)
    problems = [problem for wheel in built for problem in check_wheel(wheel)]
    print("\n".join(problems or [f"{wheel.name}: licences and files complete, small enough" for wheel in built]))
    if importlib.util.find_spec("twine"):
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)], check=True)
    with tempfile.TemporaryDirectory(prefix="groundwire-wheels-") as folder:
        installation = Installation(Path(folder), wheels)
        installation.check_extras()
        installation.run("python", "-I", "-c", PROBE)
        scored = installation.run("groundwire", "score", "example.jsonl")
        generated = installation.run("groundwire", "generate", "example.jsonl")
        with installation.serve() as address:
            ready = wait_until_ready(address)
    statuses = (
        json.loads(scored.splitlines()[0])["score"]["status"],
        json.loads(generated.splitlines()[0])["generation"]["status"],
        ready,
    )
    print(f"In a new environment the example is {statuses[0]} and {statuses[1]}; /readyz answers {ready}.")
    return int(bool(problems) or statuses != ("scored", "generated", 200))


def main(arguments: list[str]) -> int:
    """Build the wheels unless the argument is ``test``, and test them."""
    if arguments != ["test"]:
        build(DIST)
    return test(DIST)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
