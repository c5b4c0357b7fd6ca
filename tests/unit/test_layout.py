"""Rules of this folder that ruff's banned imports (pyproject.toml) do not say."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
LINT = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
BANNED = set(LINT["flake8-tidy-imports"]["banned-api"])
"""What unit tests may not import: libraries of the exporter and of training, and helpers that need them."""
TEST_FILE = re.compile(
    r"^\s*from (?:tests|\.)[\w.]*(?:(?<=\.)| import (?:\w+, )*)(?:conftest|test_\w+)\b", re.MULTILINE
)


def list_imports(path: Path) -> set[str]:
    """The modules that a file imports anywhere, and their packages; helpers import each other by absolute names."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = f"tests.support.{node.module or ''}".rstrip(".") if node.level else node.module or ""
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names | {".".join(parts[:end]) for parts in (name.split(".") for name in names) for end in (1, 2)}


def test_no_file_imports_a_test_file() -> None:
    importing = [
        str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if TEST_FILE.search(path.read_text("utf-8"))
    ]
    assert importing == [], "move what they need to tests/support"


@pytest.mark.parametrize(
    ("line", "is_test_file"),
    [
        ("from tests.unit.test_a import x", True),
        ("from .test_a import x", True),
        ("    from . import helpers, conftest", True),
        ("from tests.support.texts import TEXTS", False),
        ("from deepeval.test_case import LLMTestCase", False),
    ],
)
def test_a_test_file_is_recognised(line: str, is_test_file: bool) -> None:
    assert bool(TEST_FILE.search(line)) == is_test_file


def test_helpers_that_need_banned_libraries_are_banned() -> None:
    helpers = {f"tests.support.{path.stem}": list_imports(path) for path in (TESTS / "support").glob("[!_]*.py")}
    heavy = {name for name in BANNED if not name.startswith("tests.")}
    while more := {name for name, imports in helpers.items() if imports & heavy} - heavy:
        heavy |= more
    assert heavy == BANNED
