"""Directories that are expensive to make: the workers of a test run make each of them once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def shared_root(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary directory of the test run, which all its workers share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def make_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return ``folder`` after ``make`` has filled it; a second caller, in any process, waits and gets the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A caller whose directory exists takes no lock.
    if folder.exists():
        return folder
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            partial = folder.parent / "partial" / folder.name
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
            partial.parent.mkdir(exist_ok=True)
            make(partial)
            partial.rename(folder)
    return folder
