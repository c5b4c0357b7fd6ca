"""QEMU's user mode: runs programs as on a processor with other instructions.

    python -m tests.support.emulator --prepare      # downloads Debian's package (60 MB), once

``/proc/cpuinfo`` stays that of this machine, so what reads it names the wrong processor.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support import debian

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("GROUNDWIRE_EMULATORS") or ROOT / "build" / "emulators")
PACKAGE = "qemu-user-static"
X86_64, AARCH64 = "qemu-x86_64-static", "qemu-aarch64-static"
AVX2 = ("-cpu", "Haswell-v4")
"""A processor with AVX2, and without AVX-512 and VNNI."""


def find_emulator(name: str = X86_64) -> Path | None:
    """An emulator that is installed, or that ``prepare`` has unpacked; None without one."""
    installed = shutil.which(name)
    unpacked = FOLDER / "usr" / "bin" / name
    return Path(installed) if installed else unpacked if unpacked.is_file() else None


def prepare() -> None:
    """Download and unpack the emulators, unless they are there."""
    if find_emulator() is None:
        debian.unpack([PACKAGE], FOLDER)


def can_emulate_avx2() -> bool:
    """Whether programs of this machine run as on a processor with AVX2 alone."""
    return platform.machine() == "x86_64" and find_emulator() is not None


def run_on_avx2(arguments: Sequence[str], timeout: float | None = None) -> str:
    """Run Python as on a processor with AVX2 alone, and return what it prints."""
    command = [str(find_emulator()), *AVX2, sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout).stdout


if __name__ == "__main__":
    if "--prepare" in sys.argv[1:]:
        prepare()
