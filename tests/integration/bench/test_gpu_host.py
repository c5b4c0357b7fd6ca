"""What travels to a machine with a GPU: kernels of one architecture, in parts that are joined and unpacked there."""

from __future__ import annotations

import ctypes
import json
import lzma
import random
import re
import shutil
import struct
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from bench.gpu import host
from bench.gpu.host import INDEX, Index
from bench.gpu.pack import (
    CALL_MB,
    PACKAGES,
    PART_MB,
    compress,
    cut,
    list_missing,
    list_other_kernels,
    list_travelling,
    measure_checkout,
    plan_calls,
    split,
    strip_libraries,
)

MACHINE_CODE, PTX = 2, 1


def fat_binary(*entries: tuple[int, int, bytes]) -> bytes:
    """A header and entries: kind, architecture and code."""
    content = b""
    for kind, architecture, code in entries:
        header = struct.pack("<HHIQ", kind, 257, 64, len(code)).ljust(28, b"\0") + struct.pack("<I", architecture)
        content += header.ljust(64, b"\0") + code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def test_kernels_of_other_architectures_are_listed() -> None:
    first = fat_binary((MACHINE_CODE, 80, b"old" * 8), (MACHINE_CODE, 90, b"new" * 8), (PTX, 90, b"ptx" * 8))
    second = fat_binary((MACHINE_CODE, 120, b"next" * 4))
    library = b"ELF....." + struct.pack("<I", 0xBA55ED50) + b"no binary!!!" + first + b"between" + second + b"end"
    assert [library[span] for span in list_other_kernels(library, 90)] == [b"old" * 8, b"ptx" * 8, b"next" * 4]


def test_another_format_is_refused() -> None:
    binary = bytearray(fat_binary((MACHINE_CODE, 80, b"code" * 4)))
    binary[8] -= 4  # a size that ends within the entry
    with pytest.raises(ValueError, match="another format"):
        list(list_other_kernels(bytes(binary) + bytes(64), 90))


def test_what_the_machine_has_is_not_packed() -> None:
    names = {requirement.partition("==")[0] for requirement in list_missing()}
    there = {name for name in PACKAGES.read_text(encoding="utf-8").splitlines() if not name.startswith("#")}
    assert {"spacy", "msgspec", "onnxruntime-gpu"} <= names
    assert not names & there
    assert "onnxruntime" not in names


def test_what_the_machines_packages_need_is_there_or_packed() -> None:
    def find_name(requirement: str) -> str:
        return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")

    there = {name for name in PACKAGES.read_text(encoding="utf-8").splitlines() if not name.startswith("#")}
    brought = there | {find_name(requirement) for requirement in list_missing()}
    for distribution in distributions():
        if (name := find_name(distribution.metadata["Name"])) in there:
            needed = [line for line in distribution.requires or () if ";" not in line]
            assert {find_name(requirement) for requirement in needed} <= brought, name


def test_a_part_and_the_checkout_fit_one_call() -> None:
    size = measure_checkout()
    assert size + (PART_MB << 20) < CALL_MB << 20, f"the checkout has {size / (1 << 20):.1f} MiB"


def test_the_checkout_leaves_at_home_what_is_not_run() -> None:
    top = {name.split("/")[0] for name in list_travelling()}
    assert {"bench", "deploy", "engine", "examples", "pyproject.toml", "recipes", "runtime"} <= top
    assert not top & {"bundles", "docs", "tests"}


def test_a_part_goes_with_the_first_call_that_has_room() -> None:
    sizes = {"small.0": 38, "ort.0": 52, "ort.1": 5, "compact.0": 52, "compact.1": 8, "reader.0": 52, "reader.1": 19}
    assert plan_calls(sizes, 55) == [
        ["small.0", "ort.1", "compact.1"], ["ort.0"], ["compact.0"], ["reader.0"], ["reader.1"],
    ]  # fmt: skip


def test_an_archive_has_what_its_pattern_names(tmp_path: Path) -> None:
    names = [
        "onnxruntime/capi/a.so",
        "onnxruntime_gpu.dist-info/METADATA",
        "groundwire_reader/reader/weights.bin",
        "groundwire_reader/reader/reader.onnx",
    ]
    for name in names:
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).touch()
    folders = split(tmp_path / "site", tmp_path)
    there = {
        name: [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
        for name, folder in folders.items()
    }
    assert there == {"small": [names[3], names[1]], "ort": [names[0]], "compact": [], "reader": [names[2]]}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with debug symbols, among other files whose names look like one."""
    if shutil.which("cc") is None or shutil.which("strip") is None:
        pytest.skip("needs a C compiler and strip")
    source, out = tmp_path / "answer.c", tmp_path / "package" / "libanswer.so.1"
    source.write_text("int answer(void) { return 42; }\n", encoding="utf-8")
    out.parent.mkdir()
    subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", str(out), str(source)], check=True)
    (out.parent / "notes.so.txt").write_text("not a library", encoding="utf-8")
    (out.parent / "libanswer.so").symlink_to(out.name)
    return out


def test_debug_symbols_of_libraries_are_dropped(library: Path) -> None:
    assert b".debug_info" in library.read_bytes()
    strip_libraries(library.parent)
    assert b".debug_info" not in library.read_bytes()
    assert ctypes.CDLL(str(library)).answer() == 42
    assert (library.parent / "notes.so.txt").read_text(encoding="utf-8") == "not a library"
    assert (library.parent / "libanswer.so").is_symlink()
    assert len(list(library.parent.iterdir())) == 3


def test_without_strip_libraries_stay_as_they_are(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = library.read_bytes()
    monkeypatch.setenv("PATH", str(library.parent))
    strip_libraries(library.parent)
    assert library.read_bytes() == before


def test_calls_of_one_function_are_compressed(tmp_path: Path) -> None:
    """A call has the distance to its function, which differs from place to place."""
    rng, code = random.Random(0), bytearray()
    for _ in range(5000):
        code += rng.randbytes(4) + b"\xe8" + struct.pack("<i", 1_000_000 - len(code))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "library.so").write_bytes(code)
    compress(tmp_path / "site", tmp_path / "site.tar.xz", 6)
    assert (tmp_path / "site.tar.xz").stat().st_size < 0.85 * len(lzma.compress(code))


def test_what_two_libraries_have_in_common_is_compressed(tmp_path: Path) -> None:
    content = random.Random(0).randbytes(1 << 20)
    (tmp_path / "site").mkdir()
    for name in ("first.so", "second.so"):
        (tmp_path / "site" / name).write_bytes(content)
    compress(tmp_path / "site", tmp_path / "site.tar.xz", 0)
    assert (tmp_path / "site.tar.xz").stat().st_size < 1.1 * len(content)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Two archives, the first in three parts: a package with a native module, and weights."""
    folder, archives = tmp_path / "parts", {}
    folder.mkdir()
    contents = {
        "small": ("package/__init__.py", "groundwire/runtime/_native.so", "groundwire/runtime/_native.pyi"),
        "reader": ("package/weights.bin",),
    }
    for archive, names in contents.items():
        source, packed = tmp_path / archive, tmp_path / f"{archive}.tar.xz"
        for name in names:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(name.encode() * 100)
        compress(source, packed, 6)
        archives[archive] = cut(packed, folder, packed.stat().st_size // (3 if archive == "small" else 1) + 1)
    index = Index("{}.{}".format(*sys.version_info), 90, archives, [], {})
    (folder / INDEX).write_text(json.dumps(index._asdict()), encoding="utf-8")
    return folder


def test_parts_come_one_by_one_and_are_unpacked(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, checkout, call = tmp_path / "site", tmp_path / "checkout", tmp_path / "call"
    (checkout / "runtime").mkdir(parents=True)
    monkeypatch.setenv("SITE", str(site))
    monkeypatch.setattr(host, "ROOT", checkout)
    monkeypatch.setattr(host, "make_tree", lambda: tmp_path / "tree")
    started: list[list[str]] = []
    monkeypatch.setattr(host.os, "execv", lambda path, arguments: started.append(arguments[1:]))

    def bring(name: str, *arguments: str) -> int | None:
        call.mkdir()
        for file in (name, INDEX):
            shutil.copy(parts / file, call)
        try:
            return host.main([str(call), *arguments])
        finally:
            shutil.rmtree(call)

    assert bring("small.2") == 0
    assert bring("small.0", "groundwire", "doctor") == 1
    assert not started
    bring("small.1", "--with", "small", "groundwire", "doctor")
    assert started == [["-m", "groundwire", "doctor"]]
    assert capsys.readouterr().out.splitlines() == [
        "small.0, small.1, reader.0 not here yet", "small.1, reader.0 not here yet",
    ]  # fmt: skip
    assert (site / "package" / "__init__.py").read_bytes() == b"package/__init__.py" * 100
    assert (checkout / "runtime" / "_native.so").exists()
    assert not (site / "groundwire").exists(), "the checkout's own code is run"
    assert bring("reader.0") == 0
    assert capsys.readouterr().out.splitlines() == [f"{site}: unpacked"]
    assert (site / "package" / "weights.bin").exists()


def test_a_damaged_part_and_another_python_are_refused(
    parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE", str(tmp_path / "site"))
    (parts / "small.1").write_bytes(b"damaged")
    with pytest.raises(SystemExit, match=r"small\.1 is damaged"):
        host.main([str(parts)])
    index = json.loads((parts / INDEX).read_text(encoding="utf-8"))
    (parts / INDEX).write_text(json.dumps({**index, "python": "3.9"}), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"for Python 3\.9 and this is"):
        host.main([str(parts)])
