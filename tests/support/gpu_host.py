"""Rehearses the first visit to a machine with a GPU: the checkout and the parts arrive, and the double is its GPU.

    python -m tests.support.gpu_host                                              # make rehearse-gpu
    python -m tests.support.gpu_host --parts build/parts312 --python python3.12   # another Python, without PyTorch
    python -m tests.support.gpu_host --folder build/rehearsal                     # goes on where an earlier one stopped

The rehearsal packs the parts, unless they are there. It makes an environment of ``--python`` with nothing but the
packages that ``bench/gpu/host_packages.txt`` names, copies what travels of the checkout, lets one call after another
bring its parts, trains a tiny reader for ten seconds, and runs the commands. The libraries of the double are where pip
has CUDA's, in another folder of packages than ONNX Runtime. PyTorch is that of this environment; for another Python the
commands that need it are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from bench.gpu.host import INDEX, Index
from bench.gpu.pack import BUNDLES, PACKAGES, list_travelling
from tests.support import cuda_double

ROOT = cuda_double.ROOT
PARTS = ROOT / "build" / "parts"


class Command(NamedTuple):
    """What a call runs, and how it ends on the double."""

    arguments: tuple[str, ...]
    code: int = 0
    needs_torch: bool = False


RESULTS = "gpu_all.json"
MEASURE = ("bench.gpu_all", "--tiny", "--minutes", "240", "--work", "models", "--resume", "--out", RESULTS)
COMMANDS = (
    Command(("groundwire", "doctor")),
    # The double computes nothing, which the comparison notices.
    *(Command(("groundwire", "bundle", "certify", name, "--device", "cuda"), code=1) for name in BUNDLES),
    Command(("--with", "small,ort", *MEASURE, "--only", "export"), needs_torch=True),
    Command(MEASURE, needs_torch=True),
    Command((*MEASURE, "--only", "compile"), needs_torch=True),
)
DOUBLE = ("tests/__init__.py", "tests/support/__init__.py", "tests/support/cuda_double.py")
"""Files that count launches on the double, where a GPU has PyTorch's profiler."""
STEPS = 20
"""Of the training, at least."""
DONE = "done.json"
"""The names of the steps that were done in a folder."""


def copy_checkout(target: Path) -> None:
    """The files that travel, and the module that counts on the double."""
    for name in (*list_travelling(), *DOUBLE):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).unlink(missing_ok=True)  # of an earlier rehearsal
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
    command.append("--no-compile")  # most modules are not imported
    subprocess.run([*command, "--only-binary=:all:", *names], check=True)


def make_machine(python: str, folder: Path) -> None:
    """Make the environment of the machine in ``folder``, with its packages and the double's libraries."""
    for name in ("machine", "driver", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "machine")], check=True)
    packages = find_packages(folder)
    if has_torch(packages):
        link_packages(packages)
    else:
        install_packages(python, folder / "machine" / "bin" / "python")
    cuda_double.spread(packages, folder / "driver")


def find_packages(folder: Path) -> Path:
    """The folder of the machine's packages."""
    return next((folder / "machine" / "lib").iterdir()) / "site-packages"


def has_torch(packages: Path) -> bool:
    """Whether the machine's Python is of this version, whose PyTorch it gets."""
    return packages.parent.name == f"python{sys.version_info[0]}.{sys.version_info[1]}"


def list_unfinished(results: Path) -> list[str]:
    """The stages of a measurement that were not done, though there is something to measure on the double."""
    stages = json.loads(results.read_text(encoding="utf-8"))["results"]["stages"]
    return [f"{stage['name']} {stage['status']}" for stage in stages if stage["status"] not in ("done", "skipped")]


def train(interpreter: Path, folder: Path, variables: Mapping[str, str]) -> None:
    """Train a tiny reader from a pack, by the code of the pack alone, and make a bundle of what comes back."""
    from groundwire.recipes.reader import bundle, pack, shards
    from tests.support.readers import make_group, make_tiny

    packed, code, trained = (folder / name for name in ("training", "code", "trained"))
    for path in (packed, code, trained):
        shutil.rmtree(path, ignore_errors=True)
    shards.write_rows(make_group, shards.name_rows(packed, 0), range(8))
    pack.pack_models(make_tiny(), None, packed)
    shutil.unpack_archive(pack.pack_code(packed), code)
    command = [str(interpreter), str(code / "train_packed.py"), str(packed), str(trained)]
    subprocess.run([*command, "--seconds", "10", "--batch", "4"], cwd=folder, env=dict(variables), check=True)
    pack.unpack_models(trained, packed, folder / "run")
    steps = json.loads((trained / pack.LOGS[pack.READER]).read_text(encoding="utf-8").splitlines()[-1])["step"]
    if steps < STEPS:
        raise SystemExit(f"train: {steps} steps")
    bundle.export_reader_bundle(folder / "run", folder / "bundle", lambda role, stage: None, precision="fp32")


def rehearse(parts: Path, python: str, folder: Path) -> None:
    """Run the visit, without the steps that were done in ``folder``.

    Raises:
        SystemExit: A call ends in another way than it should, or leaves a stage unfinished.
    """
    log = folder / DONE
    done: list[str] = json.loads(log.read_text(encoding="utf-8")) if log.exists() else []

    def run_once(name: str, step: Callable[[], object]) -> None:
        if name in done:
            return
        started = time.monotonic()
        step()
        done.append(name)
        log.write_text(json.dumps(done), encoding="utf-8")
        print(f"{name}: as it should be, after {time.monotonic() - started:.0f} s", flush=True)

    run_once("machine", lambda: make_machine(python, folder))
    interpreter, checkout = folder / "machine" / "bin" / "python", folder / "checkout"
    copy_checkout(checkout)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    variables |= {"SITE": str(folder / "site"), "LD_LIBRARY_PATH": str(folder / "driver"), "COLUMNS": "200"}
    variables |= {"ORT_DISABLE_TELEMETRY": "1", "GROUNDWIRE_CUDA_DOUBLE": "1"}

    def call(*arguments: str, code: int = 0) -> None:
        command = [str(interpreter), "-m", "bench.gpu.host", ".parts", *arguments]
        ended = subprocess.run(command, cwd=checkout, env=variables, check=False).returncode
        if ended != code:
            raise SystemExit(f"{' '.join(arguments)}: exit code {ended} instead of {code}")
        if MEASURE[0] in arguments and (unfinished := list_unfinished(checkout / RESULTS)):
            raise SystemExit(f"not finished, to be run again: {', '.join(unfinished)}")

    def bring(names: Sequence[str]) -> None:
        brought = checkout / ".parts"
        shutil.rmtree(brought, ignore_errors=True)
        brought.mkdir()
        for name in (*names, INDEX):
            shutil.copy(parts / name, brought)
        call()

    for names in Index(**json.loads((parts / INDEX).read_text(encoding="utf-8"))).calls:
        run_once(" ".join(names), partial(bring, names))
    if has_torch(find_packages(folder)):
        run_once("train", lambda: train(interpreter, folder, variables))
    for command in COMMANDS:
        name = " ".join(command.arguments)
        if command.needs_torch and not has_torch(find_packages(folder)):
            print(f"{name}: left out, without PyTorch")
            continue
        run_once(name, partial(call, *command.arguments, code=command.code))


def main(
    parts: Annotated[Path, typer.Option(help="Folder of bench.gpu.pack, which writes it if it is not there.")] = PARTS,
    python: Annotated[str, typer.Option(help="The machine's Python.")] = sys.executable,
    folder: Annotated[
        Path | None, typer.Option(help="Where the machine is kept, to go on there later; default: it is not kept.")
    ] = None,
) -> None:
    """Rehearse the first visit to a machine with a GPU."""
    cuda_double.prepare()
    if not (parts / INDEX).is_file():
        pack = [sys.executable, "-m", "bench.gpu.pack", "--out", str(parts), "--python", python, "--level", "0"]
        subprocess.run(pack, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix="groundwire-host-") as temporary:
        chosen = (folder or Path(temporary)).resolve()
        chosen.mkdir(parents=True, exist_ok=True)
        rehearse(parts.resolve(), python, chosen)


if __name__ == "__main__":
    typer.run(main)
