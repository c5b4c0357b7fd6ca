"""Packs what a machine with a GPU lacks: this package's native module, the embedded bundles and wheels, in parts.

    python -m bench.gpu.pack --out build/parts --python python3.12

``bench.gpu.host`` joins the parts there. What may travel at once is limited, so a part has at most ``PART_MB``, and the
checkout leaves at home what ``travels.txt`` excludes. There is an archive for each purpose, so that each is of use when
it is complete: ``small`` has all wheels but ONNX Runtime's, and the graphs and tokenizers of the bundles; ``ort`` has
ONNX Runtime, with which models are exported; ``compact`` and ``reader`` have the weights of the bundles.

ONNX Runtime's GPU build is 244 MiB, most of it kernels for other GPUs: kernels of other architectures than ``SM`` are
replaced by zeros, which compress to nothing. ``--whole`` packs the kernels of all. Debug symbols of all libraries are
left out where ``strip`` (binutils) is installed.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from .host import INDEX, Index

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(__file__).with_name("host_packages.txt")
"""What the machine has."""
PYTHON = "3.12"
PLATFORMS = ("_2_28", "_2_27", "2014", "_2_17", "1")
SM = 90
"""Architecture of the GPUs whose kernels are packed: H100 and H200."""
TRAVELS = Path(__file__).with_name("travels.txt")
"""Patterns of ``git sparse-checkout``: the parts of the checkout that the machine needs."""
CALL_MB = 64
"""MiB that one call can bring: parts, and the checkout without what ``TRAVELS`` excludes, which is 9."""
PART_MB = 52
"""MiB of a part."""
SMALL = "small"
ARCHIVES = {
    SMALL: re.compile(""),
    "ort": re.compile("onnxruntime/"),
    "compact": re.compile(r"groundwire_compact/compact/weights\.bin$"),
    "reader": re.compile(r"groundwire_reader/reader/weights\.bin$"),
}
"""The archives, in the order in which they are sent: a file is in the last one whose pattern its path begins with."""
BUNDLES = ("compact", "reader")
"""The embedded bundles that are packed: those of the default."""
DICTIONARY_MB = 64
"""MiB in which the compression finds what it has seen: libraries of one kind have much in common. Unpacking takes as
much memory."""
ONNXRUNTIME = ROOT / "tests" / "device" / "requirements.txt"
"""The GPU build whose CUDA path is tested."""
KERNELS = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
UNUSED = re.compile(
    r"onnxruntime/(transformers|tools|quantization)/|onnxruntime/capi/libonnxruntime(\.so|_providers_tensorrt)"
)
"""Files of the GPU build that nothing here opens: the module has ONNX Runtime linked in."""
_FAT_BINARY = struct.pack("<I", 0xBA55ED50)
_MACHINE_CODE = 2


def list_missing() -> list[str]:
    """The requirements of ``requirements.lock`` that the machine lacks, with the GPU build of ONNX Runtime."""
    there = {name for name in PACKAGES.read_text(encoding="utf-8").splitlines() if not name.startswith("#")}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^[\w.-]+==[^ ]+", lock, re.MULTILINE)
    lacking = [pin for pin in pins if pin.partition("==")[0] not in {*there, "onnxruntime"}]
    return [*lacking, ONNXRUNTIME.read_text(encoding="utf-8").strip()]


def download(requirements: Sequence[str], version: str, folder: Path) -> None:
    """Download wheels for a Python of ``version``."""
    platforms = [part for tag in PLATFORMS for part in ("--platform", f"manylinux{tag}_x86_64")]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", version, *platforms, "--dest", str(folder)]
    subprocess.run([*command, *requirements], check=True)


def build(python: str, folder: Path) -> None:
    """Build the wheels of this package, for its native module, and of the embedded bundles."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True)
    for name in BUNDLES:
        subprocess.run([*command, str(ROOT / "bundles" / "packaging" / name)], check=True)


def list_other_kernels(library: bytes, sm: int) -> Iterator[slice]:
    """Where the machine code of other architectures than ``sm`` is in a library that nvcc has built.

    A fat binary is a header of 16 bytes with its size, then entries: a header with the kind, the header's own size,
    the size of the code, and at byte 28 the architecture; then the code.
    """
    start = library.find(_FAT_BINARY)
    while start >= 0:
        _, version, header, size = struct.unpack_from("<IHHQ", library, start)
        if (version, header) != (1, 16):  # the same four bytes in something else
            start = library.find(_FAT_BINARY, start + 4)
            continue
        entry, end = start + header, start + header + size
        while entry < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", library, entry)
            (architecture,) = struct.unpack_from("<I", library, entry + 28)
            if kind != _MACHINE_CODE or architecture != sm:
                yield slice(entry + header, entry + header + size)
            entry += header + size
        if entry != end:
            raise ValueError(f"the fat binary at {start} ends at {entry} and not at {end}: another format")
        start = library.find(_FAT_BINARY, end)


def prune(site: Path, sm: int) -> None:
    """Drop what nothing opens of an unpacked GPU build, and the kernels of other architectures."""
    for path in sorted(site.glob("onnxruntime/**/*"), reverse=True):
        if path.is_file() and UNUSED.match(path.relative_to(site).as_posix()):
            path.unlink()
    library = bytearray((site / KERNELS).read_bytes())
    others = list(list_other_kernels(bytes(library), sm))
    for span in others:
        library[span] = bytes(span.stop - span.start)
    (site / KERNELS).write_bytes(library)


def strip_libraries(site: Path) -> None:
    """Drop the debug symbols of an unpacked site's libraries; without ``strip``, or where it fails, they stay."""
    tool = shutil.which("strip")
    if tool is None:
        return
    for path in sorted(site.rglob("*.so*")):
        if path.is_file() and not path.is_symlink():
            # When it fails, it leaves the file as it was.
            subprocess.run([tool, "--strip-debug", str(path)], check=False, capture_output=True)


def split(site: Path, out: Path) -> dict[str, Path]:
    """Move the files of an unpacked site to a folder in ``out`` for each archive: the folders by archive."""
    folders = {name: out / name for name in ARCHIVES}
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if not path.is_dir() or path.is_symlink():
            archive = next(archive for archive, pattern in reversed(ARCHIVES.items()) if pattern.match(name))
            (folders[archive] / name).parent.mkdir(parents=True, exist_ok=True)
            path.rename(folders[archive] / name)
    return folders


def list_travelling(root: Path = ROOT) -> list[str]:
    """The files of the checkout that travel: ``list_files``, but what ``TRAVELS`` excludes."""
    excluded = tuple(
        line.removeprefix("!/") for line in TRAVELS.read_text(encoding="utf-8").splitlines() if line.startswith("!/")
    )
    return [name for name in list_files(root) if not name.startswith(excluded)]


def list_files(root: Path = ROOT) -> list[str]:
    """The files of the checkout that git knows, or would add."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if (root / name).exists()]


def measure_checkout() -> int:
    """Bytes of the checkout that travel, as an archive has them: a header of 512 bytes each, and blocks of 512."""
    return sum(512 + -(-(ROOT / name).lstat().st_size // 512) * 512 for name in list_travelling())


def plan_calls(sizes: Mapping[str, int], room: int) -> list[list[str]]:
    """The parts of each call, of at most ``room`` bytes: a part goes with the first call that has room for it."""
    calls: list[list[str]] = []
    for name, size in sizes.items():
        call = next((call for call in calls if sum(sizes[part] for part in call) + size <= room), None)
        if call is None:
            calls.append([name])
        else:
            call.append(name)
    return calls


def compress(site: Path, archive: Path, level: int) -> None:
    """Write an archive of a folder, in the format of xz. Addresses of calls in machine code are made absolute before:
    the calls of one function are equal then."""
    dictionary = DICTIONARY_MB << 20
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": level, "dict_size": dictionary}]
    with lzma.open(archive, "wb", filters=filters) as file, tarfile.open(fileobj=file, mode="w") as packed:
        packed.add(site, ".")


def cut(archive: Path, out: Path, size: int) -> dict[str, str]:
    """Cut an archive to parts of at most ``size`` bytes: their names, which begin with the archive's, and SHA-256."""
    digests: dict[str, str] = {}
    with archive.open("rb") as file:
        while content := file.read(size):
            name = f"{archive.name.partition('.')[0]}.{len(digests)}"
            (out / name).write_bytes(content)
            digests[name] = hashlib.sha256(content).hexdigest()
    return digests


def main(
    out: Annotated[Path, typer.Option(help="Folder of the parts.")],
    python: Annotated[str, typer.Option(help="A Python of the machine's version, with pip.")] = f"python{PYTHON}",
    sm: Annotated[int, typer.Option(help="Architecture of the GPU: 90 for 9.0.")] = SM,
    whole: Annotated[bool, typer.Option(help="Pack the kernels of all architectures.")] = False,
    level: Annotated[
        int, typer.Option(min=0, max=9, help="Of the compression: 0 is quick and makes more parts, for a rehearsal.")
    ] = 6,
) -> None:
    """Pack what a machine with a GPU lacks."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    version = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="groundwire-pack-") as folder:
        wheels, site = (Path(folder) / name for name in ("wheels", "site"))
        download(list_missing(), version, wheels)
        build(python, wheels)
        digests = {}
        for wheel in sorted(wheels.glob("*.whl")):
            digests[wheel.name] = hashlib.sha256(wheel.read_bytes()).hexdigest()
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(site)
        if not whole:
            prune(site, sm)
        strip_libraries(site)
        archives = {}
        for name, content in split(site, Path(folder)).items():
            archive = Path(folder) / f"{name}.tar.xz"
            compress(content, archive, level)
            archives[name] = cut(archive, out, PART_MB << 20)
            archive.unlink()
    sizes = {part: (out / part).stat().st_size for parts in archives.values() for part in parts}
    calls = plan_calls(sizes, (CALL_MB << 20) - measure_checkout() - (1 << 20))  # a MiB for the index, and in reserve
    index = Index(version, None if whole else sm, archives, calls, digests)
    (out / INDEX).write_text(json.dumps(index._asdict(), indent=1) + "\n", encoding="utf-8")
    print(f"{out}: {sum(sizes.values()) / (1 << 20):.1f} MiB in {len(calls)} calls, for Python {version}")
    for number, parts in enumerate(calls, 1):
        print(f"call {number}: {' '.join(parts)}, {sum(sizes[part] for part in parts) / (1 << 20):.1f} MiB")


if __name__ == "__main__":
    typer.run(main)
