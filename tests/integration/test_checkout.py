"""A checkout does not shadow the package, and needs no symbolic links."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def import_without_installation(module: str) -> str:
    """The last line that Python prints when it imports a module at the root, without any package of an environment."""
    command = [sys.executable, "-S", "-c", f"import {module}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_an_import_without_an_installation_names_the_package() -> None:
    assert import_without_installation("groundwire.engine") == "ModuleNotFoundError: No module named 'groundwire'"


@pytest.mark.parametrize("folder", ["engine", "runtime", "export", "evaluate"])
def test_a_folder_of_sources_is_no_second_package(folder: str) -> None:
    message = f"ImportError: This folder is the source of groundwire.{folder}: import that."
    assert import_without_installation(folder) == message


def test_no_file_is_a_symbolic_link() -> None:
    """An archive without links, or a file system that has none, loses nothing."""
    listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) > 1000
    assert [line for line in listed.splitlines() if line.startswith("120000")] == []
