"""Paths that docstrings name exist, and docstrings of public callables have the sections that they need."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groundwire.runtime import errors

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


ADAPTERS = sorted(
    path.stem for path in (ROOT / "interfaces/adapters").glob("[!_]*.py") if path.stem not in ("extras", "pytest")
)
MODULES = (
    *("engine", "metrics", "repair", "guard", "generation", "evidence", "monitor", "evaluate", "export", "service"),
    *("runtime.bundles.calibration", "runtime.fake", "runtime.protocol"),
    *(f"adapters.{name}" for name in ADAPTERS),
)
"""The modules whose public names the documentation describes."""
AS_ANOTHER = re.compile(r"[,;] (?:otherwise )?(?:as|like) ``[\w.]+``[.,;]")
"""The end of a first sentence that refers to the callable with the sections."""
ERRORS = {name for name, value in vars(errors).items() if inspect.isclass(value)}
RAISED = re.compile(r"^\s+raise (\w+)", re.MULTILINE)


def list_callables(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of a module, and the public methods and constructors of its classes."""
    try:
        imported = importlib.import_module(f"groundwire.{module}")
    except ImportError as error:  # an adapter of a tool that is not installed
        pytest.skip(str(error))
    own = [name for name, value in vars(imported).items() if getattr(value, "__module__", "") == imported.__name__]
    for name in getattr(imported, "__all__", [name for name in own if not name.startswith("_")]):
        value = getattr(imported, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for method, function in vars(value).items():
                function = function.__func__ if isinstance(function, classmethod | staticmethod) else function
                is_public = method == "__init__" or not method.startswith("_")
                # Dataclasses and protocols make a constructor without a text of its own.
                if is_public and inspect.isfunction(function) and function.__doc__ is not None:
                    yield f"{name}.{method}", function


@pytest.mark.parametrize("module", MODULES)
def test_public_callables_have_sections(module: str) -> None:
    lacking, count = [], 0
    for name, function in list_callables(module):
        docstring = inspect.getdoc(function) or ""
        count += 1
        if AS_ANOTHER.search(docstring.partition("\n\n")[0]):
            continue
        if set(inspect.signature(function).parameters) - {"self", "cls"} and "Args:\n" not in docstring:
            lacking.append(f"{name}: Args")
        if ERRORS & set(RAISED.findall(inspect.getsource(function))) and "Raises:\n" not in docstring:
            lacking.append(f"{name}: Raises")
    assert count
    assert not lacking
