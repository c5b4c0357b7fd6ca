"""Runs another benchmark, or any module, on the AVX2 kernels of ONNX Runtime, on a processor that has AVX-512.

    python -m bench avx2 long_answers default
    python -m bench avx2 tests.support.gates reader      # any module, by its whole name

A copy of ONNX Runtime gets an invalid instruction in place of each ``cpuid``, and a preloaded library answers them
without AVX-512, VNNI and AMX, and reading ``/proc/cpuinfo`` too. So kernels compute as on a processor with AVX2 alone,
and as fast as the AVX2 units of this one are. Of the runtimes that ``peers`` times beside ours, OpenVINO is copied too,
and the others have settings for it. Needs GCC and objdump, on x86-64 Linux.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from groundwire.runtime.ort.processor import processor_features

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "avx2"
SOURCE = Path(__file__).parent / "support" / "mask_avx512.c"
CPUID, INVALID = b"\x0f\xa2", b"\x0f\x0b"
_CPUID_LINE = re.compile(r" *([0-9a-f]+):\s+cpuid")
LATER_FLAGS = re.compile(r"\b(avx512\w*|avx_\w+|amx_\w+)\b")
"""Flags of ``/proc/cpuinfo`` that a processor with AVX2 alone lacks."""
LIBRARIES = {
    "onnxruntime": ("capi/onnxruntime_pybind11_state*.so",),
    "openvino": ("libs/libopenvino.so.*", "libs/libopenvino_intel_cpu_plugin.so"),
}
"""What asks for the processor's instructions, by package."""
SETTINGS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "CT2_FORCE_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
"""Of PyTorch and CTranslate2, and of MKL and oneDNN, which both contain."""


def main(arguments: list[str]) -> int:
    """Run the benchmark or the module that the first argument names with the others."""
    if missing := find_missing():
        raise SystemExit(f"AVX-512 is hidden on Linux on x86-64 with AVX2, GCC and objdump; this lacks {missing}.")
    module = arguments if "." in "".join(arguments[:1]) else ["bench", *arguments]
    return subprocess.run([sys.executable, "-m", *module], cwd=ROOT, env=prepare(FOLDER)).returncode


def find_missing() -> str:
    """What this machine lacks to run as one with AVX2 alone; empty where it lacks nothing."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "Linux on x86-64"
    if "avx2" not in processor_features():
        return "AVX2"
    return " and ".join(name for name in ("gcc", "objdump") if shutil.which(name) is None)


def prepare(folder: Path) -> dict[str, str]:
    """Copy and change what is installed of ``LIBRARIES``; return the environment in which Python takes the copies."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"mask-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so"
    if not library.exists():
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    cpuinfo = folder / "cpuinfo"
    cpuinfo.write_text(LATER_FLAGS.sub("", Path("/proc/cpuinfo").read_text(encoding="utf-8")), encoding="utf-8")
    copies = [str(copy_package(folder, name)) for name in LIBRARIES if importlib.util.find_spec(name) is not None]
    paths = os.pathsep.join([*copies, *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | SETTINGS | {"LD_PRELOAD": str(library), "MASKED_CPUINFO": str(cpuinfo), "PYTHONPATH": paths}


def copy_package(folder: Path, name: str) -> Path:
    """Copy a package and change its libraries, once for each installed version; the path to import it from."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    installed = Path(str(spec.origin)).parent
    libraries = sorted(path for pattern in LIBRARIES[name] for path in installed.glob(pattern))
    versions = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in libraries]
    copied = folder / f"{name}-{hashlib.sha256(repr(versions).encode()).hexdigest()[:12]}"
    if not copied.exists():
        for old in folder.glob(f"{name}-*"):
            shutil.rmtree(old)
        shutil.copytree(installed, folder / f"{name}-part" / name)
        for path in libraries:
            replace_cpuid(folder / f"{name}-part" / name / path.relative_to(installed))
        (folder / f"{name}-part").rename(copied)
    return copied


def replace_cpuid(path: Path) -> None:
    """Write an invalid instruction over each ``cpuid`` of a library."""
    content = bytearray(path.read_bytes())
    segments = list(read_segments(content))
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        for match in filter(None, map(_CPUID_LINE.match, listing.stdout)):
            address = int(match[1], 16)
            offset = next(address - start + begin for start, begin, size in segments if start <= address < start + size)
            assert content[offset : offset + 2] == CPUID
            content[offset : offset + 2] = INVALID
    path.write_bytes(content)


def read_segments(content: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Yield address, offset in the file and size of each loaded segment of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", content, table + size * index)
        if kind == 1:
            yield address, offset, length


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
