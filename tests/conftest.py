"""Settings of every test run: one thread per process, a quiet garbage collector, and no deadlines."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

# Before the first import of NumPy, torch and ONNX Runtime. The models of the tests are so small that a pool of
# threads costs more than it computes, and the workers of a run already use every core.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# A busy machine is no failure. The same few examples are tried in each run, so that a change fails that causes the
# failure; others, and many, are tried by `make fuzz`, which prints what finds a failing one again.
settings.register_profile(
    "groundwire", deadline=None, database=None, print_blob=True, derandomize=True, max_examples=30
)
settings.register_profile("fuzz", settings.get_profile("groundwire"), derandomize=False, max_examples=1_000)
settings.load_profile("groundwire")

# Imports make hundreds of thousands of objects that live until the end: they are not searched for garbage.
gc.disable()

TESTS = Path(__file__).parent
MEASURED = tuple(TESTS / folder for folder in ("unit", "recipes", "integration/runtime", "integration/export"))
"""What counts as a test of the lines that it runs. Others run what these cover once more, in whole programs."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio alone, which is what the engine supports."""
    return "asyncio"


def pytest_sessionstart(session: pytest.Session) -> None:
    """End what pytest-cov begins in a worker before it knows that it is one: ``no_cover`` would not stop it."""
    plugin = session.config.pluginmanager.getplugin("_cov")
    if plugin is not None and hasattr(session.config, "workerinput"):
        plugin.cov_controller.cov.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process is left alone with one at the end.

    Measure the coverage of few tests: it doubles their time. The examples of a property repeat one another, and a test
    with the marker ``no_cover`` repeats what others run.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    if config.pluginmanager.hasplugin("_cov"):
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)) or not any(map(item.path.is_relative_to, MEASURED)):
                item.add_marker("no_cover")


def pytest_runtest_teardown() -> None:
    """Give torch its one thread back: a benchmark or a command that takes more must not slow what follows it."""
    if (torch := sys.modules.get("torch")) is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line that the tests in a browser were skipped, where there is none."""
    skipped = [report for report in terminalreporter.getreports("skipped") if "chromium" in report.nodeid]
    if skipped and not any(map(shutil.which, BROWSERS)):
        terminalreporter.write_line(
            f"{len(skipped)} tests in a browser did not run: none of {', '.join(BROWSERS)} is installed."
        )
