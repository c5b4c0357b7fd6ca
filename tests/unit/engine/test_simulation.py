"""10,000 random schedules of the scheduler in virtual time, and proof that they find defects."""

from __future__ import annotations

import logging
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


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_found(defect: Defect) -> None:
    def search() -> None:
        for seed in range(SEEDS):
            simulate(seed, scheduler)

    with plant(defect) as scheduler, pytest.raises(Violation, match=r"seed \d+: "):
        search()
