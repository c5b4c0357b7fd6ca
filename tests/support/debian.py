"""Debian's packages, unpacked into a folder: nothing is installed, and nothing needs to be root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

INSTALLED = Path("/var/lib/dpkg/status")
"""What dpkg knows to be installed on this machine."""


def check_tools() -> None:
    """Raise SystemExit where packages cannot be downloaded and unpacked."""
    missing = [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"This needs a machine with Debian's packages; it lacks {' and '.join(missing)}.")


def unpack(packages: Sequence[str], folder: Path, architecture: str = "") -> None:
    """Download packages, with all that they need, and unpack them.

    Args:
        packages: Their names.
        folder: Where their files come, as if it were the root of the file system.
        architecture: Of another machine, as Debian names it: then what is installed here does not count.

    Raises:
        SystemExit: apt cannot download them.
    """
    check_tools()
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as state:
        for name in ("lists/partial", "archives/partial"):
            (Path(state) / name).mkdir(parents=True)
        (Path(state) / "status").write_bytes(b"" if architecture else INSTALLED.read_bytes())
        options = {
            "Dir::State": state,
            "Dir::State::status": f"{state}/status",
            "Dir::Cache": state,
            "Debug::NoLocking": 1,
            "APT::Install-Recommends": 0,
            # Its own user cannot write into a folder of the caller.
            "APT::Sandbox::User": "root",
            **({"APT::Architecture": architecture, "APT::Architectures": architecture} if architecture else {}),
        }
        apt = ["apt-get", "--quiet", "--yes", *(f"--option={name}={value}" for name, value in options.items())]
        for command in ([*apt, "update"], [*apt, "install", "--download-only", *packages]):
            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
                raise SystemExit(
                    f"apt cannot download {', '.join(packages)}{architecture and f' for {architecture}'}: the sources "
                    "of this machine (/etc/apt) must be Debian's, and it needs a network."
                )
        for path in sorted(Path(state, "archives").glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(path), str(folder)], check=True)


def search_path(folder: Path) -> dict[str, str]:
    """The environment in which programs that were unpacked into ``folder`` find each other and their libraries."""
    libraries = folder / "usr" / "lib" / "x86_64-linux-gnu"
    return {
        "PATH": os.pathsep.join((str(folder / "usr" / "bin"), os.environ["PATH"])),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, (str(libraries), os.environ.get("LD_LIBRARY_PATH")))),
    }
