"""Runs a Python module of this checkout on a machine that has a GPU and PyTorch, and no package index.

    python3 -m bench.gpu.host PARTS                                   # keeps the parts that are there
    python3 -m bench.gpu.host PARTS groundwire doctor                 # unpacks them once, and runs the command line
    python3 -m bench.gpu.host PARTS bench.gpu_all --out gpu_all.json

``bench.gpu.pack`` made the parts; a folder has some or all of them, and always the index. Parts and their content are
in ``SITE`` (default: /tmp/groundwire-site), outside of the machine's own packages, which stay as they are. The checkout
may lack the folder ``bundles/``: the bundle ``compact`` is among the parts. Needs nothing but Python.
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
    parts: Mapping[str, str]
    """The parts' SHA-256, in their order."""
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


def keep(parts: Path, folder: Path, index: Index) -> list[Path]:
    """Copy the parts that are there to ``folder``: the paths of all, in their order. SystemExit for a damaged one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, digest in index.parts.items():
        if (parts / name).is_file() and not (folder / name).is_file():
            shutil.copyfile(parts / name, folder / f"{name}.copy")
            if hashlib.sha256((folder / f"{name}.copy").read_bytes()).hexdigest() != digest:
                raise SystemExit(f"{parts / name} is damaged: copy it again")
            (folder / f"{name}.copy").rename(folder / name)
    return [folder / name for name in index.parts]


def unpack(parts: Sequence[Path], site: Path) -> None:
    """Unpack the parts to ``site``, and the native module into the checkout."""
    partial = site.with_name(f"{site.name}.{os.getpid()}")
    with tarfile.open(fileobj=Joined(parts), mode="r|xz") as archive:
        archive.extractall(partial, filter="tar")
    (native,) = (path for path in partial.glob(_NATIVE) if path.suffix != ".pyi")
    shutil.copyfile(native, ROOT / "runtime" / native.name)
    shutil.rmtree(partial / "groundwire")  # the checkout has it
    partial.rename(site)


def main(arguments: Sequence[str]) -> int:
    """Keep and unpack parts, then become the module that is named."""
    if not arguments:
        raise SystemExit(__doc__)
    folder, *command = arguments
    site = Path(os.environ.get("SITE") or "/tmp/groundwire-site")
    index = Index(**json.loads((Path(folder) / INDEX).read_text(encoding="utf-8")))
    version = "{}.{}".format(*sys.version_info)
    if index.python != version:
        raise SystemExit(f"The parts are for Python {index.python} and this is {version}: pack them with --python.")
    if not site.exists():
        parts = keep(Path(folder), site.with_name(f"{site.name}-parts"), index)
        missing = [path.name for path in parts if not path.is_file()]
        if missing:
            print(f"{', '.join(missing)} of {len(parts)} parts not here yet")
            return 1 if command else 0
        unpack(parts, site)
    if not command:
        print(f"{site}: unpacked")
        return 0
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
