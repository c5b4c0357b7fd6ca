"""A double of CUDA: ONNX Runtime's real CUDA provider on libraries that count instead of computing.

``tests/device/double/`` has the libraries. With them a session loads, places its nodes, binds its inputs and launches
its kernels on a "device" in host memory. Counts of launches, copies, synchronisations and allocations are those of a
real GPU; results are not: kernels compute nothing, so a copy from the device reads zeros (a single number excepted,
which reads as it was copied there).

    python -m tests.support.cuda_double --prepare       # downloads the GPU wheel (256 MB) and CUDA's headers, once
    python -m tests.support.cuda_double pytest tests/device

The second command builds the double, which takes seconds, and runs a Python module in a process that uses it.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "device" / "double"
FOLDER = Path(os.environ.get("GROUNDWIRE_DEVICE_FOLDER") or ROOT / "build" / "device")
WHEEL, HEADERS = FOLDER / "python", FOLDER / "headers"
"""Where ``--prepare`` installs the GPU build of ONNX Runtime, apart from the environment's CPU build, and headers."""
PROVIDER = Path("onnxruntime", "capi", "libonnxruntime_providers_cuda.so")

LIBRARIES = {
    "cudart": "libcudart.so.13",
    "cublaslt": "libcublasLt.so.13",
    "cublas": "libcublas.so.13",
    "cudnn": "libcudnn.so.9",
    "cuda": "libcuda.so.1",
    "curand": "libcurand.so.10",
}
"""In the order in which they link; the first is made of all ``cudart_*.cpp``."""
MEMORY = 141 << 30
"""Bytes of the device's memory."""
VERSIONED = ("cudart", "cublaslt", "cublas")
"""Those whose symbols carry the name of the library as their version."""


@dataclass(frozen=True)
class Tally:
    """How often something happened, and the bytes it moved."""

    times: int = 0
    bytes: int = 0


@dataclass
class Counts:
    """What the double counted while ``count`` was open."""

    events: dict[str, Tally] = field(default_factory=dict)
    """By name: ``launch:KERNEL``, ``copy:HtoD/pageable/blocking``, ``sync:stream``, ``malloc:device``, ``replay``, …"""

    def total(self, prefix: str, *parts: str) -> Tally:
        """The sum over the events whose name begins with ``prefix`` and has all of ``parts``."""
        chosen = [
            tally
            for name, tally in self.events.items()
            if (name == prefix or name.startswith(f"{prefix}:")) and all(part in name for part in parts)
        ]
        return Tally(sum(tally.times for tally in chosen), sum(tally.bytes for tally in chosen))

    @property
    def launches(self) -> int:
        """Kernels launched one by one."""
        return self.total("launch").times

    @property
    def uploads(self) -> Tally:
        """Copies to the device during which the thread waits."""
        return self.total("copy", "HtoD", "blocking")

    @property
    def downloads(self) -> Tally:
        """Copies from the device during which the thread waits."""
        return self.total("copy", "DtoH", "blocking")

    @property
    def syncs(self) -> int:
        """Times a thread waited for a stream, an event or the device."""
        return self.total("sync").times

    @property
    def refused(self) -> int:
        """Calls that CUDA refuses, because a thread captures: each ends the capture."""
        return self.total("refused").times

    @property
    def replays(self) -> int:
        """Captured graphs launched as a whole."""
        return self.total("replay").times


@cache
def _ledger() -> ctypes.CDLL:
    library = ctypes.CDLL(LIBRARIES["cudart"])
    for name in ("ledger_read", "ledger_live_bytes", "ledger_peak_bytes"):
        getattr(library, name).restype = ctypes.c_size_t
    return library


def is_active() -> bool:
    """Whether this process runs on the double."""
    return os.environ.get("GROUNDWIRE_CUDA_DOUBLE") == "1"


@contextmanager
def count() -> Iterator[Counts]:
    """Count what happens inside the block; the record is filled when the block ends."""
    _ledger().ledger_reset()
    counts = Counts()
    yield counts
    size = 1 << 20
    buffer = ctypes.create_string_buffer(size)
    assert _ledger().ledger_read(buffer, ctypes.c_size_t(size)) <= size
    for line in buffer.value.decode().splitlines():
        times, moved, name = line.split("\t", 2)
        counts.events[name] = Tally(int(times), int(moved))


def live_bytes() -> int:
    """Bytes of device memory that are allocated."""
    return int(_ledger().ledger_live_bytes())


@contextmanager
def memory_content(byte: int) -> Iterator[None]:
    """Inside the block every byte that kernels would have written reads as ``byte``, which is 0 otherwise."""
    _ledger().double_set_content(byte)
    try:
        yield
    finally:
        _ledger().double_set_content(0)


def spoil_captures(count: int) -> None:
    """Let something outside end the next ``count`` captures."""
    _ledger().double_spoil_captures(count)


@contextmanager
def limit_memory(free: int) -> Iterator[None]:
    """Inside the block, the device has ``free`` bytes left."""
    _ledger().double_set_memory(ctypes.c_size_t(live_bytes() + free))
    try:
        yield
    finally:
        _ledger().double_set_memory(ctypes.c_size_t(MEMORY))


@contextmanager
def lost_device() -> Iterator[None]:
    """Inside the block every launch, copy and synchronisation fails, as after an illegal memory access."""
    _ledger().double_lose_device(ctypes.c_bool(True))
    try:
        yield
    finally:
        _ledger().double_lose_device(ctypes.c_bool(False))


def find_wheel() -> Path | None:
    """The directory that has the GPU build of ONNX Runtime: that of ``--prepare``, or the one it is installed in."""
    if (WHEEL / PROVIDER).is_file():
        return WHEEL
    spec = find_spec("onnxruntime")
    installed = Path(spec.origin).parents[1] if spec is not None and spec.origin is not None else None
    return installed if installed is not None and (installed / PROVIDER).is_file() else None


def prepare() -> None:
    """Install the GPU build of ONNX Runtime and CUDA's headers into ``FOLDER``, unless they are there."""
    for folder, requirements in ((WHEEL, SOURCES.parent), (HEADERS, SOURCES)):
        if not folder.exists():
            file = requirements / "requirements.txt"
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
            partial = folder.with_suffix(f".{os.getpid()}")
            subprocess.run([*pip, "--only-binary=:all:", "--target", str(partial), "-r", str(file)], check=True)
            partial.rename(folder)


def build() -> Path:
    """The directory of the built libraries; builds them if their sources have changed."""
    content = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    out = FOLDER / f"lib-{hashlib.sha256(content).hexdigest()[:12]}"
    if out.exists():
        return out
    partial = out.with_suffix(f".{os.getpid()}")
    partial.mkdir(parents=True)
    headers = {path.parent for path in HEADERS.rglob("driver_types.h")}
    headers |= {path.parents[1] for path in HEADERS.rglob("crt/host_defines.h")}
    for name, library in LIBRARIES.items():
        command = ["g++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-Wl,-soname,{library}"]
        command += [f"-I{path}" for path in sorted(headers)]
        if name in VERSIONED:
            script = partial / f"{name}.map"
            script.write_text(f"{library} {{ *; }};\n")
            command.append(f"-Wl,--version-script={script}")
        command += map(str, sorted(SOURCES.glob("cudart_*.cpp") if name == "cudart" else [SOURCES / f"{name}.cpp"]))
        if name != "cudart":
            command += [f"-L{partial}", f"-l:{LIBRARIES['cudart']}", "-Wl,-rpath,$ORIGIN"]
        command += ["-o", str(partial / library)]
        subprocess.run(command, check=True)
    (partial / "libcudnn.so").symlink_to(LIBRARIES["cudnn"])
    partial.rename(out)
    return out


def spread(packages: Path, driver: Path) -> None:
    """Link the built libraries as a machine has them: pip's packages of CUDA in ``packages``, the driver apart."""
    for library in build().iterdir():
        package = "cudnn" if "cudnn" in library.name else "cu13"
        folder = driver if library.name == LIBRARIES["cuda"] else packages / "nvidia" / package / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        if library.suffix != ".map":
            (folder / library.name).symlink_to(library)


def environment() -> dict[str, str]:
    """The variables of a process that uses the double; FileNotFoundError without the wheel or the headers."""
    wheel = find_wheel()
    if wheel is None or not HEADERS.exists():
        raise FileNotFoundError(f"there is no onnxruntime-gpu in {WHEEL}: run `make test-device`, which downloads it")
    variables = dict(os.environ)
    variables["GROUNDWIRE_CUDA_DOUBLE"] = "1"
    for name, path in (("PYTHONPATH", f"{wheel}:{ROOT}"), ("LD_LIBRARY_PATH", str(build()))):
        variables[name] = f"{path}:{variables[name]}" if variables.get(name) else path
    return variables


def main(arguments: Sequence[str]) -> int:
    """Run a Python module with arguments on the double; 0 with a message where the wheel is missing."""
    if arguments and arguments[0] == "--prepare":
        prepare()
        arguments = arguments[1:]
    if not arguments:
        return 0
    try:
        variables = environment()
    except FileNotFoundError as missing:
        print(f"Skipped: {missing}.")
        return 0
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, env=variables, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
