"""What a user finds by ``dir`` and completion: the names of ``__all__``, few of them, and no modules."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import groundwire
import groundwire.engine
import groundwire.metrics
from groundwire.engine import Engine

DOORS = (groundwire, groundwire.engine, groundwire.metrics)
ROOT = Path(__file__).resolve().parents[3]
MAX_ENGINE_NAMES = 30
MAX_ENGINE_MEMBERS = 14


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_dir_shows_the_public_names_and_no_modules(door: ModuleType) -> None:
    assert dir(door) == sorted(door.__all__)
    assert len(set(door.__all__)) == len(door.__all__)
    assert [name for name in door.__all__ if isinstance(getattr(door, name), ModuleType)] == []


@pytest.mark.parametrize("door", [groundwire.engine, groundwire.metrics], ids=lambda door: door.__name__)
def test_everything_that_is_imported_is_exported(door: ModuleType) -> None:
    imported = {
        name
        for name, value in vars(door).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("groundwire")
    }
    assert imported <= set(door.__all__)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_names_are_listed_in_order(door: ModuleType) -> None:
    assert door.__all__ == sorted(door.__all__, key=lambda name: (name.islower(), not name.isupper(), name))


@pytest.mark.parametrize("door", ["extend", "values", "verdict", "metrics.critic"])
def test_packages_above_use_every_name_of_the_doors_for_builders(door: str) -> None:
    name = f"groundwire.engine.{door}"
    used = {
        alias.name
        for folder in ("apps", "interfaces", "evaluate")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == name
        for alias in node.names
    }
    assert used == set(import_module(name).__all__)


def test_names_of_the_top_level_are_those_of_the_doors() -> None:
    doors = [import_module(f"groundwire.{door}") for door in groundwire._DOORS]
    for name in set(groundwire.__all__) - {"__version__"}:
        door = next(door for door in doors if name in door.__all__)
        assert getattr(groundwire, name) is getattr(door, name)


def test_the_engine_exports_few_names() -> None:
    assert len(groundwire.engine.__all__) <= MAX_ENGINE_NAMES


def test_an_engine_has_few_members() -> None:
    members = [name for name, _ in inspect.getmembers(Engine) if not name.startswith("_")]
    assert len(members) <= MAX_ENGINE_MEMBERS, members


def test_the_signature_of_score_is_that_of_the_engines_method() -> None:
    method = list(inspect.signature(Engine.score).parameters.values())[1:]
    assert list(inspect.signature(groundwire.score).parameters.values()) == method
    assert list(inspect.signature(Engine.ascore).parameters.values())[1:] == method
