"""Random schedules of the scheduler in virtual time, and proof that they find defects.

`make test` runs 10,000 of them, apart from these tests (`tests/checks/check.py simulation`).
"""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.simulation.defects import DEFECTS, Defect, plant
from tests.simulation.names import NameSimulation
from tests.simulation.simulate import Violation, simulate

SEEDS = 1000
"""Enough to reach every line and branch of the scheduler, and to find every defect."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The faults of the simulations are logged as errors, thousands of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_no_schedule_breaks_an_invariant() -> None:
    for seed in range(SEEDS):
        simulate(seed)


def test_a_tenant_that_returns_is_served_after_those_that_waited_whatever_names_the_others_have() -> None:
    for seed in range(SEEDS // 40):
        assert NameSimulation(seed).run() == [], f"seed {seed}"


def test_any_number_of_seeds_runs_by_hand() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seeds", "20", "--processes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("20 done, 0 failed")


# A generator that a defect leaves open is stubborn when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_found(defect: Defect) -> None:
    def search() -> None:
        for seed in range(SEEDS):
            simulate(seed, scheduler)

    with plant(defect) as scheduler, pytest.raises(Violation, match=r"seed \d+: "):
        search()
    gc.collect()
