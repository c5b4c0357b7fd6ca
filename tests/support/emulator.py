"""QEMU's user mode: runs programs as on a processor with other instructions.

    python -m tests.support.emulator --prepare      # downloads Debian's package (60 MB), once

QEMU shows the ``/proc/cpuinfo`` of this machine, unless the folder that it looks for files in first has another.
"""

from __future__ import annotations

import os
import platform
import re
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
AVX2 = "Haswell-v4"
"""A processor with AVX2, and without AVX-512 and VNNI."""
LATER_FLAGS = re.compile(r"\b(avx512\w*|avx_\w+|amx_\w+)\b")
"""Flags of ``/proc/cpuinfo`` that it lacks."""


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


def write_cpuinfo(system: Path, text: str) -> None:
    """Let programs that QEMU runs with ``-L system`` read ``text`` as ``/proc/cpuinfo``."""
    path = system / "proc" / "cpuinfo"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_on_avx2(arguments: Sequence[str], timeout: float | None = None) -> str:
    """Run Python as on a processor with AVX2 alone, and return what it prints."""
    system = FOLDER / "avx2"
    write_cpuinfo(system, LATER_FLAGS.sub("", Path("/proc/cpuinfo").read_text(encoding="utf-8")))
    command = [str(find_emulator()), "-cpu", AVX2, "-L", str(system), sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout).stdout


if __name__ == "__main__":
    if "--prepare" in sys.argv[1:]:
        prepare()
