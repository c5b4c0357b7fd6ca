"""The rules of this folder: helpers are in ``tests/support``, and unit tests need no models."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
HEAVY = {"torch", "transformers", "optimum", "onnx", "onnx_ir", "bert_score", "sentencepiece"}
"""Libraries of the exporter and of training."""
EXPORTERS = ("groundwire.export", "groundwire.recipes")


def list_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py"))


@cache
def list_imports(path: Path) -> frozenset[str]:
    """The modules that a file imports anywhere, as absolute names; of ``from a import b`` both ``a`` and ``a.b``."""
    package = ("tests", *path.relative_to(TESTS).parts[:-1])

    def read() -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                module = ".".join([*base, *([node.module] if node.module else [])])
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)

    return frozenset(read())


@cache
def list_needs(path: Path) -> frozenset[str]:
    """What a file imports, and what the test helpers that it imports need."""
    needs = set(list_imports(path))
    for name in list_imports(path):
        helper = TESTS.joinpath(*name.split(".")[1:]).with_suffix(".py") if name.startswith("tests.") else path
        if helper != path and helper.is_file():
            needs |= list_needs(helper)
    return frozenset(needs)


@pytest.mark.parametrize("path", list_files(TESTS), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_file_imports_a_test_file(path: Path) -> None:
    tests = [
        name
        for name in list_imports(path)
        if any(part == "conftest" or part.startswith("test_") for part in name.split(".")) and name.startswith("tests")
    ]
    assert not tests, f"move what {path.relative_to(TESTS)} needs of {tests} to tests/support"


@pytest.mark.parametrize("path", list_files(TESTS / "unit"), ids=lambda path: str(path.relative_to(TESTS)))
def test_unit_tests_need_no_models(path: Path) -> None:
    heavy = [name for name in list_needs(path) if name.split(".")[0] in HEAVY or name.startswith(EXPORTERS)]
    assert not heavy, f"{path.relative_to(TESTS)} needs {sorted(heavy)}: move it to tests/integration"


def test_a_relative_import_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "unit" / "engine"
    folder.mkdir(parents=True)
    (folder / "test_b.py").write_text("from .test_a import x\nfrom ..evaluate import test_c\nimport torch.nn\n")
    monkeypatch.setitem(globals(), "TESTS", tmp_path)
    assert list_imports(folder / "test_b.py") >= {
        "tests.unit.engine.test_a",
        "tests.unit.evaluate.test_c",
        "torch.nn",
    }
