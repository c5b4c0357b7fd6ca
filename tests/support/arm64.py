"""Arm without an Arm machine: Debian's Python for arm64 and the cross-built wheel, under QEMU's user mode.

    python -m tests.support.arm64 --prepare      # once: 45 MB of Debian's packages, 60 MB of wheels, the emulator

``build/arm64`` then has the system (``system``), the cross compiler (``compiler``) and what is installed (``site``).
``--prepare`` builds the wheel again each time, because it has the code.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import debian

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("GROUNDWIRE_ARM64_FOLDER") or ROOT / "build" / "arm64").resolve()
SYSTEM, COMPILER, SITE, TOOLS, EMULATOR = (
    FOLDER / name for name in ("system", "compiler", "site", "tools", "emulator")
)
PYTHON = SYSTEM / "usr" / "bin" / "python-arm64"
"""A script that runs Debian's Python in the emulator, by which that Python starts itself too."""
AGREEMENT = FOLDER / "agreement.json"
"""What ``make test-arm64`` found; the guide's table is made from the copy in ``bench/results``."""
QEMU, QEMU_PACKAGE = "qemu-aarch64-static", "qemu-user-static"
PACKAGES = ("python3", "libpython3-dev", "libstdc++6")
CROSS_COMPILER = "aarch64-linux-gnu-g++"
LOCK = ROOT / "requirements.lock"
TEST_PACKAGES = ("pytest", "pytest-cov", "pytest-timeout", "hypothesis")
BUILD_PACKAGES = ("scikit-build-core", "nanobind")


@dataclass(frozen=True)
class Processor:
    """A processor as QEMU emulates it.

    QEMU shows the ``/proc/cpuinfo`` of this machine, unless the folder in which it looks for files first has another.
    """

    name: str
    part: int
    features: str
    int8_kernel: str
    """Of its features the one whose int8 kernels ONNX Runtime takes."""

    def describe(self) -> str:
        """The text of ``/proc/cpuinfo``."""
        core = (
            f"BogoMIPS\t: 243.75\nFeatures\t: {self.features}\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
            f"CPU variant\t: 0x0\nCPU part\t: {self.part:#x}\nCPU revision\t: 0\n\n"
        )
        return "".join(f"processor\t: {index}\n{core}" for index in range(os.cpu_count() or 1))


_V8 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
_V8_2 = f"{_V8} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
PLAIN = Processor("cortex-a72", 0xD08, _V8, "asimd")
"""As in a Raspberry Pi 4."""
DOT_PRODUCT = Processor("neoverse-n1", 0xD0C, _V8_2, "asimddp")
"""As in Graviton2; a Jetson Orin and a Raspberry Pi 5 have the same int8 instructions."""
MATRIX = Processor("max", 0xD40, f"{_V8_2} sve i8mm bf16", "i8mm")
"""What QEMU knows, with the int8 instructions of Graviton3 and later and of Apple's M2 and later."""


def is_prepared() -> bool:
    """Whether programs for arm64 run here: the emulator is there, and the wheel was installed."""
    return PYTHON.is_file() and (SITE / "groundwire").is_dir() and _find_emulator() is not None


def run_on_arm64(
    arguments: Sequence[str], processor: Processor = DOT_PRODUCT, timeout: float | None = None, cwd: Path = ROOT
) -> str:
    """Run Python on an emulated Arm processor with what ``--prepare`` has installed, and return what it prints."""
    cpuinfo = SYSTEM / "proc" / "cpuinfo"
    cpuinfo.parent.mkdir(parents=True, exist_ok=True)
    cpuinfo.write_text(processor.describe(), encoding="utf-8")
    command = [str(PYTHON), *arguments]
    environment = _environment(SITE) | {"QEMU_CPU": processor.name}
    return subprocess.run(
        command, cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout
    ).stdout


def prepare() -> None:
    """Set everything up that is missing, and build and install the wheel of the checkout.

    Raises:
        SystemExit: This machine cannot: not Linux on x86-64, or without ``apt-get``, Debian's sources, or a network.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SystemExit(
            f"Arm is emulated on Linux on x86-64, and this is {platform.system()} on {platform.machine()}. "
            "On an Arm machine `make test` tests it without an emulator."
        )
    if _find_emulator() is None:
        debian.unpack([QEMU_PACKAGE], EMULATOR)
    if not (SYSTEM / "usr" / "bin" / "python3").exists():
        debian.unpack(PACKAGES, SYSTEM, architecture="arm64")
    if shutil.which(CROSS_COMPILER) is None and not (COMPILER / "usr" / "bin" / CROSS_COMPILER).exists():
        debian.unpack([f"g++-{CROSS_COMPILER.removesuffix('-g++')}"], COMPILER)
    _write_python()
    _install_dependencies()
    _install_wheel(_build_wheel())


def _find_emulator() -> Path | None:
    """The emulator that is installed, or that ``prepare`` has unpacked; None without one."""
    installed, unpacked = shutil.which(QEMU), EMULATOR / "usr" / "bin" / QEMU
    return Path(installed) if installed else unpacked if unpacked.is_file() else None


def _environment(*folders: Path) -> dict[str, str]:
    """That of a Python that imports from folders alone; ONNX Runtime sends no telemetry."""
    path = os.pathsep.join(map(str, folders))
    return os.environ | {"PYTHONPATH": path, "PYTHONNOUSERSITE": "1", "ORT_DISABLE_TELEMETRY": "1"}


def _write_python() -> None:
    # -0: Python finds its library, and the name that it is to be started by, from the name that it was started by.
    PYTHON.write_text(
        f'#!/bin/sh\nexec "{_find_emulator()}" -L "{SYSTEM}" -0 "$0" "{SYSTEM}/usr/bin/python3" "$@"\n',
        encoding="utf-8",
    )
    PYTHON.chmod(0o755)


def _read_version() -> str:
    """The version of Debian's Python, as pip takes it: 3.11."""
    return (SYSTEM / "usr" / "bin" / "python3").readlink().name.removeprefix("python")


def _install_dependencies() -> None:
    """Install wheels for arm64 in the versions of the locks, unless these are there."""
    locked = ROOT / "requirements-dev.lock"
    packages = " ".join((_read_version(), *TEST_PACKAGES, *BUILD_PACKAGES)).encode()
    digest = hashlib.sha256(LOCK.read_bytes() + locked.read_bytes() + packages).hexdigest()
    mark = FOLDER / "installed"
    if mark.is_file() and mark.read_text(encoding="utf-8") == digest:
        return
    for folder in (SITE, TOOLS):
        shutil.rmtree(folder, ignore_errors=True)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in range(17, 29)]
    target = ["--python-version", _read_version(), "--platform=manylinux2014_aarch64", *platforms]
    _run_pip(SITE, *target, "--no-deps", "--require-hashes", "-r", str(LOCK))
    _run_pip(SITE, *target, "--upgrade", "-c", str(locked), *TEST_PACKAGES)
    # Pure Python, with the cmake and ninja of this machine.
    _run_pip(TOOLS, *BUILD_PACKAGES)
    mark.write_text(digest, encoding="utf-8")


def _run_pip(folder: Path, *arguments: str) -> None:
    """Install wheels into a folder."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary", ":all:"]
    if subprocess.run([*pip, "--target", str(folder), *arguments], check=False).returncode:
        raise SystemExit("pip cannot install the wheels for arm64: it needs a package index that has them.")


def _build_wheel() -> Path:
    """Build the wheel: the emulated Python runs the build, and compilers of this machine compile."""
    folder = FOLDER / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    environment = _environment(TOOLS) | debian.search_path(COMPILER)
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    sysroot = f"--sysroot={COMPILER}" if shutil.which(CROSS_COMPILER) is None else ""
    # Debian's Python.h includes a header by a path from the system's folder of headers.
    headers = f"-idirafter {SYSTEM}/usr/include"
    environment |= {"CXX": CROSS_COMPILER, "CMAKE_GENERATOR": "Ninja", "CXXFLAGS": f"{sysroot} {headers}"}
    environment["LDFLAGS"] = sysroot
    build = f"from scikit_build_core.build import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([str(PYTHON), "-c", build], cwd=ROOT, env=environment, check=True)
    (wheel,) = folder.glob("groundwire-*_aarch64.whl")
    return wheel


def _install_wheel(wheel: Path) -> None:
    """Unpack the wheel, and link the bundles of the checkout where they would lie in one."""
    package = SITE / "groundwire"
    shutil.rmtree(package, ignore_errors=True)
    for old in SITE.glob("groundwire-*.dist-info"):
        shutil.rmtree(old)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(SITE)
    (package / "bundles").symlink_to(ROOT / "bundles")


if __name__ == "__main__":
    if "--prepare" in sys.argv[1:]:
        prepare()
