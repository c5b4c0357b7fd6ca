"""Builds the wheels of groundwire and of its data packages into ``dist/`` and tests them.

    python deploy/wheels.py            what `make wheels` runs
    python deploy/wheels.py test       only the tests, of the wheels that are in dist/

The tests look at the licences in each wheel, install the wheels into a new virtual environment, and score one example
and generate one response there, outside the checkout. pip finds the other dependencies as it is configured to
(``PIP_NO_INDEX=1`` with ``PIP_FIND_LINKS`` for a machine without network).
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PROJECTS = (*(ROOT / "bundles" / "packaging" / bundle for bundle in ("compact", "nph", "generator")), ROOT)
TEXTS = {"Apache-2.0": "LICENSE", "BSD-3-Clause": "nanobind.txt", "MIT": "robin_map.txt"}
"""The files of groundwire's own wheel; those of the other wheels have the name of the licence."""

EXAMPLE = {
    "response": "Rembrandt painted it in 1642.",
    "knowledge": "Rembrandt painted The Night Watch in 1642.",
    "history": ["Who painted The Night Watch?"],
}
PROBE = """
import sys
from pathlib import Path
import groundwire
from groundwire.runtime.bundle import SHIPPED, Bundle, embedded
assert Path(groundwire.__file__).is_relative_to(sys.prefix), groundwire.__file__
for name in SHIPPED:
    assert name in embedded(), embedded()
    bundle = Bundle.open(name)
    bundle.verify()
    assert bundle.directory.is_relative_to(sys.prefix), bundle.directory
"""


def build() -> None:
    """Build every wheel into an empty ``dist/``, with the build tools of this environment."""
    DIST.mkdir(exist_ok=True)
    for wheel in DIST.glob("*.whl"):
        wheel.unlink()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(DIST)]
    subprocess.run([*pip, *options, *map(str, PROJECTS)], check=True)


def check_licences(wheel: Path) -> list[str]:
    """Return what is wrong with the licences of a wheel: a text that its metadata names or its expression needs."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = HeaderParser().parsestr(archive.read(metadata).decode())
        folder = metadata.replace("METADATA", "licenses/")
        files = {name.removeprefix(folder) for name in archive.namelist() if name.startswith(folder)}
    problems = [f"{wheel.name}: no {name}" for name in headers.get_all("License-File", []) if name not in files]
    names = {Path(name).name for name in files}
    for licence in re.findall(r"[\w.-]+", headers.get("License-Expression", "")):
        if licence != "AND" and not {TEXTS.get(licence), f"{licence}.txt"} & names:
            problems.append(f"{wheel.name}: no text of {licence}")
    if not files:
        problems.append(f"{wheel.name}: no licences")
    return problems


def test(wheels: list[Path]) -> int:
    """Test the wheels; return 1 if anything is wrong with them."""
    problems = [problem for wheel in wheels for problem in check_licences(wheel)]
    print("\n".join(problems or [f"{wheel.name}: licences complete" for wheel in wheels]))
    if importlib.util.find_spec("twine"):
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, wheels)], check=True)
    with tempfile.TemporaryDirectory(prefix="groundwire-wheels-") as folder:
        environment = Path(folder, "venv")
        venv.create(environment, with_pip=True)
        binaries = environment / ("Scripts" if sys.platform == "win32" else "bin")
        python = str(binaries / "python")
        installing = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *map(str, wheels)]
        subprocess.run(installing, check=True, cwd=folder)
        subprocess.run([python, "-I", "-c", PROBE], check=True, cwd=folder)
        Path(folder, "example.jsonl").write_text(json.dumps(EXAMPLE) + "\n", encoding="utf-8")
        scoring = [str(binaries / "groundwire"), "score", "example.jsonl"]
        scored = subprocess.run(scoring, check=True, cwd=folder, stdout=subprocess.PIPE).stdout
        generating = [str(binaries / "groundwire"), "generate", "example.jsonl"]
        generated = subprocess.run(generating, check=True, cwd=folder, stdout=subprocess.PIPE).stdout
    statuses = (
        json.loads(scored.splitlines()[0])["score"]["status"],
        json.loads(generated.splitlines()[0])["generation"]["status"],
    )
    print(f"The example is {' and '.join(statuses)} in a new environment.")
    return int(bool(problems) or statuses != ("scored", "generated"))


def main(arguments: list[str]) -> int:
    """Build the wheels unless the argument is ``test``, and test them."""
    if arguments != ["test"]:
        build()
    return test(sorted(DIST.glob("*.whl")))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
