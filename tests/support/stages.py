"""Stages that go wrong in every way, for the runner of stages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from bench.gpu.stages import Save, Skipped


def raise_error(setup: str, save: Save) -> None:
    save({"before": 1})
    raise ValueError("no such graph")


def crash(setup: str, save: Save) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(setup: str, save: Save) -> None:
    os._exit(7)


def have_nothing(setup: str, save: Save) -> None:
    raise Skipped("no GPU")


def save_twice(setup: str, save: Save) -> None:
    save({"setup": setup, "rows": [1]})
    save({"setup": setup, "rows": [1, 2]})


def save_and_hang(setup: str, save: Save) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    save({"child": child.pid})
    time.sleep(600)


def exit_with_one() -> None:
    """As the probe where CUDA was started."""
    os._exit(1)
