"""10,000 random schedules of the scheduler in virtual time, and proof that they find defects."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.simulation.defects import DEFECTS, Defect, plant
from tests.simulation.simulate import Violation, simulate

SEEDS = 10_000
PARTS = 10


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The faults of the simulations are logged as errors, thousands of them."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_breaks_an_invariant(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        simulate(seed)


def test_any_number_of_seeds_runs_by_hand() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seeds", "1100", "--processes", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("1100 done, 0 failed")


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_found(defect: Defect) -> None:
    def search() -> None:
        for seed in range(SEEDS):
            simulate(seed, scheduler)

    with plant(defect) as scheduler, pytest.raises(Violation, match=r"seed \d+: "):
        search()
