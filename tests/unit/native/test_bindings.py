"""No two arguments of any kind end the interpreter."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

from groundwire.runtime import _native
from tests.support.abuse_bindings import CALLS

ROOT = Path(__file__).parents[3]


def test_odd_arguments_are_refused_or_computed(tmp_path: Path) -> None:
    last_call = tmp_path / "last_call"
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.abuse_bindings", str(last_call)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, f"{last_call.read_text()}{child.stderr}"
    result = re.fullmatch(r"(\d+) calls, (\d+) of them refused\n", child.stdout)
    assert result is not None
    assert int(result[1]) > int(result[2]) > 400_000


def test_every_function_is_called() -> None:
    functions = {name for name in vars(_native) if not name.startswith("_")}
    assert {name.partition(".")[0] for name in CALLS} == functions, inspect.getdoc(_native)
