"""Runs another benchmark on the AVX2 kernels of ONNX Runtime, on a processor that has AVX-512.

    python -m bench avx2 long_answers default

A copy of ONNX Runtime gets an invalid instruction in place of each ``cpuid``, and a preloaded library answers them
without AVX-512, VNNI and AMX. So kernels run as fast as the AVX2 units of this processor are; an emulator would only
show what they compute. Needs GCC and objdump, on x86-64 Linux. ``Score.signature`` names the processor's own kernel.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "avx2"
SOURCE = Path(__file__).parent / "support" / "mask_avx512.c"
CPUID, INVALID = b"\x0f\xa2", b"\x0f\x0b"
_CPUID_LINE = re.compile(r" *([0-9a-f]+):\s+cpuid")


def main(arguments: list[str]) -> int:
    """Run ``python -m bench`` with these arguments."""
    library = prepare(FOLDER)
    paths = os.pathsep.join(filter(None, (str(FOLDER / "packages"), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": paths}
    return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, env=environment).returncode


def prepare(folder: Path) -> Path:
    """Copy and change ONNX Runtime, once for each installed version; the path of the library to preload."""
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None
    installed = Path(str(spec.origin)).parent
    library, copied = folder / "mask.so", folder / "packages" / "onnxruntime"
    (extension,) = (installed / "capi").glob("onnxruntime_pybind11_state*.so")
    mark = folder / f"{extension.stat().st_size}-{extension.stat().st_mtime_ns}"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(installed, copied)
        replace_cpuid(copied / "capi" / extension.name)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
        mark.touch()
    return library


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
