"""Paths that code names in docstrings and comments exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runtime", "engine", "apps", "interfaces", "export", "evaluate", "recipes", "cpp_ext")
PATH = re.compile(
    r"(?<![\w/.])((?:docs|tests|bench|recipes|engine|runtime|export|evaluate|apps|interfaces)/[\w./-]+\.(?:md|py|sh|json))"
)


def list_named_paths(text: str) -> set[str]:
    """The paths from the root of the checkout that a text names."""
    return set(PATH.findall(text))


@pytest.mark.parametrize("package", PACKAGES)
def test_paths_in_docstrings_exist(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".cpp", ".hpp")]
    assert files
    named = {(path.relative_to(ROOT), name) for path in files for name in list_named_paths(path.read_text("utf-8"))}
    assert not [f"{path}: {name}" for path, name in sorted(named) if not (ROOT / name).exists()]


def test_a_path_is_found() -> None:
    assert list_named_paths("(docs/architecture.md), see tests/reference/pmi.py.") == {
        "docs/architecture.md",
        "tests/reference/pmi.py",
    }
