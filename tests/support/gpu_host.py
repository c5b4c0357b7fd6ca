"""Rehearses the first visit to a machine with a GPU: the checkout and the parts arrive, and the double is its GPU.

    python -m tests.support.gpu_host                                              # make rehearse-gpu
    python -m tests.support.gpu_host --parts build/parts312 --python python3.12   # another Python, without PyTorch

The rehearsal packs the parts, unless they are there. It makes an environment of ``--python`` with nothing but the
packages that ``bench/gpu/host_packages.txt`` names, copies the checkout without ``bundles/``, and lets one call after
another bring its part and one command. The libraries of the double are where pip has CUDA's, in another folder of
packages than ONNX Runtime. PyTorch is that of this environment; for another Python the commands that need it are left
out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from bench.gpu.host import INDEX
from bench.gpu.pack import PACKAGES
from tests.support import cuda_double

ROOT = cuda_double.ROOT
PARTS = ROOT / "build" / "parts"


class Command(NamedTuple):
    """What a call runs, and how it ends on the double."""

    arguments: tuple[str, ...]
    code: int = 0
    needs_torch: bool = False


MEASURE = ("bench.gpu_all", "--tiny", "--minutes", "60", "--work", "models")
COMMANDS = (
    Command(("groundwire", "doctor")),
    # The double computes nothing, which the comparison notices.
    Command(("groundwire", "bundle", "certify", "compact", "--device", "cuda"), code=1),
    Command((*MEASURE, "--out", "gpu_all.json"), needs_torch=True),
    Command((*MEASURE, "--out", "again.json", "--only", "processes,role.qg"), needs_torch=True),
)


def copy_checkout(target: Path) -> None:
    """The files that git knows, or would add, without ``bundles/``."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    for name in names:
        if (ROOT / name).exists() and not name.startswith("bundles/"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name, follow_symlinks=False)


def link_packages(target: Path) -> None:
    """Link those of this environment's packages that the machine has."""
    there = set(PACKAGES.read_text(encoding="utf-8").splitlines())
    for distribution in distributions():
        if distribution.metadata["Name"].lower().replace("_", "-") in there:
            for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
                source = Path(str(distribution.locate_file(name)))
                if source.exists() and not (target / name).exists():
                    (target / name).symlink_to(source)


def install_packages(python: str, interpreter: Path) -> None:
    """Install what the machine has, without PyTorch, by the pip of ``python``, which is another version than this."""
    names = [name for name in PACKAGES.read_text(encoding="utf-8").splitlines() if not name.startswith(("#", "torch"))]
    command = [python, "-m", "pip", "--python", str(interpreter), "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*command, "--only-binary=:all:", *names], check=True)


def rehearse(parts: Path, python: str, folder: Path) -> None:
    """Run the visit; SystemExit when one of its calls ends in another way than it should."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "machine")], check=True)
    interpreter = folder / "machine" / "bin" / "python"
    packages = next((folder / "machine" / "lib").iterdir()) / "site-packages"
    with_torch = packages.parent.name == f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if with_torch:
        link_packages(packages)
    else:
        install_packages(python, interpreter)
    cuda_double.spread(packages, folder / "driver")
    checkout = folder / "checkout"
    copy_checkout(checkout)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    variables |= {"SITE": str(folder / "site"), "LD_LIBRARY_PATH": str(folder / "driver"), "COLUMNS": "200"}
    variables |= {"ORT_DISABLE_TELEMETRY": "1", "GROUNDWIRE_CUDA_DOUBLE": "1"}
    names = sorted(parts.glob("part*"))
    for index, part in enumerate(names):  # each call brings one part
        brought = checkout / ".parts"
        shutil.rmtree(brought, ignore_errors=True)
        brought.mkdir()
        for path in (part, parts / "index.json"):
            shutil.copy(path, brought)
        call = [str(interpreter), "-m", "bench.gpu.host", ".parts"]
        print(f"call {index + 1}: {part.name}", flush=True)
        subprocess.run(call, cwd=checkout, env=variables, check=True)
    for command in COMMANDS:
        name = " ".join(command.arguments)
        if command.needs_torch and not with_torch:
            print(f"{name}: left out, without PyTorch")
            continue
        started = time.monotonic()
        run = [str(interpreter), "-m", "bench.gpu.host", ".parts", *command.arguments]
        code = subprocess.run(run, cwd=checkout, env=variables, check=False).returncode
        if code != command.code:
            raise SystemExit(f"{name}: exit code {code} instead of {command.code}")
        print(f"{name}: exit code {code}, as it should be, after {time.monotonic() - started:.0f} s", flush=True)


def main(
    parts: Annotated[Path, typer.Option(help="Folder of bench.gpu.pack, which writes it if it is not there.")] = PARTS,
    python: Annotated[str, typer.Option(help="The machine's Python.")] = sys.executable,
) -> None:
    """Rehearse the first visit to a machine with a GPU."""
    cuda_double.prepare()
    if not (parts / INDEX).is_file():
        pack = [sys.executable, "-m", "bench.gpu.pack", "--out", str(parts), "--python", python, "--level", "0"]
        subprocess.run(pack, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="groundwire-host-") as folder:
        rehearse(parts.resolve(), python, Path(folder))


if __name__ == "__main__":
    typer.run(main)
