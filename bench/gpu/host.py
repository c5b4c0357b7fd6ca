"""Runs a Python module of this checkout on a machine that has a GPU and PyTorch, and no package index.

    python3 -m bench.gpu.host PARTS                                   # keeps the parts that are there
    python3 -m bench.gpu.host PARTS groundwire doctor                 # unpacks them once, and runs the command line
    python3 -m bench.gpu.host PARTS --with small,ort bench.gpu_all --only export    # needs no other archive

``bench.gpu.pack`` made the parts; a folder has some or all of them, and always the index. Parts and their content are
in ``SITE`` (default: /tmp/groundwire-site), outside of the machine's own packages, which stay as they are. The checkout
may lack what ``travels.txt`` excludes: the bundles are among the parts. Needs nothing but Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from io import RawIOBase
from pathlib import Path
from typing import Any, NamedTuple

from deploy.tree import make_tree

ROOT = Path(__file__).resolve().parents[2]
INDEX = "index.json"
_NATIVE = "groundwire/runtime/_native.*"


class Index(NamedTuple):
    """What the parts are."""

    python: str
    """Version of Python that they are for."""
    sm: int | None
    """The architecture whose kernels they have; None: all of them."""
    archives: Mapping[str, Mapping[str, str]]
    """By archive, the SHA-256 of its parts, in their order."""
    calls: Sequence[Sequence[str]]
    """The parts that travel together, call by call."""
    wheels: Mapping[str, str]
    """The SHA-256 of the wheels that were unpacked, untouched."""


class Joined(RawIOBase):
    """Several files as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._chunks: Iterator[bytes] = (chunk for path in paths for chunk in _read(path))
        self._rest = b""

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` from its start: the bytes read, 0 at the end."""
        self._rest = self._rest or next(self._chunks, b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def keep(parts: Path, folder: Path, index: Index) -> None:
    """Copy the parts that are there to ``folder``. SystemExit for a damaged one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, digest in (part for archive in index.archives.values() for part in archive.items()):
        if (parts / name).is_file() and not (folder / name).is_file():
            shutil.copyfile(parts / name, folder / f"{name}.copy")
            if hashlib.sha256((folder / f"{name}.copy").read_bytes()).hexdigest() != digest:
                raise SystemExit(f"{parts / name} is damaged: copy it again")
            (folder / f"{name}.copy").rename(folder / name)


def unpack(parts: Sequence[Path], site: Path) -> None:
    """Add what is in the parts of an archive to ``site``; the checkout has the package, so its native module alone."""
    with tarfile.open(fileobj=Joined(parts), mode="r|xz") as archive:
        archive.extractall(site, filter="tar")
    natives = [path for path in site.glob(_NATIVE) if path.suffix != ".pyi"]
    for native in natives:
        native.rename(site / native.name)
    shutil.rmtree(site / "groundwire", ignore_errors=True)


def main(arguments: Sequence[str]) -> int:
    """Keep and unpack parts, then become the module that is named."""
    if not arguments:
        raise SystemExit(__doc__)
    folder, *command = arguments
    site = Path(os.environ.get("SITE") or "/tmp/groundwire-site")
    fields = json.loads((Path(folder) / INDEX).read_text(encoding="utf-8"))
    index = Index(**fields)
    version = "{}.{}".format(*sys.version_info)
    if index.python != version:
        raise SystemExit(f"The parts are for Python {index.python} and this is {version}: pack them with --python.")
    needed = list(index.archives)
    if command[:1] == ["--with"]:
        needed, command = command[1].split(","), command[2:]
    kept = site.with_name(f"{site.name}-parts")
    keep(Path(folder), kept, index)
    missing = []
    for name, digests in index.archives.items():
        lacking = [part for part in digests if not (kept / part).is_file()]
        done = site / f".{name}"
        if not lacking and not done.exists():
            unpack([kept / part for part in digests], site)
            done.touch()
        missing += lacking if name in needed else []
    if missing:
        print(f"{', '.join(missing)} not here yet")
        return 1 if command else 0
    if not command:
        print(f"{site}: unpacked")
        return 0
    for native in site.glob("_native.*"):
        shutil.copyfile(native, ROOT / "runtime" / native.name)
    # The packages are folders of the checkout: nothing is installed on such a machine.
    paths = [str(make_tree()), str(ROOT), str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.execv(sys.executable, [sys.executable, "-m", *command])


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
