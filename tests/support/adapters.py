"""Engines for the adapters' tests, and the packages that the adapters are for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from groundwire.engine import Engine
from groundwire.runtime.errors import ModelError
from groundwire.runtime.protocol import Outcome
from tests.support.streams import KNOWLEDGE as KNOWLEDGE
from tests.support.streams import world

CONSISTENT = "Honey is sweet."
INCONSISTENT = "Honey is blue."
GREETING = "Thanks!"
PROBABILITY = {CONSISTENT: pytest.approx(0.8808, abs=1e-4), INCONSISTENT: pytest.approx(0.1192, abs=1e-4)}
"""1 / (1 + e⁻²) and 1 / (1 + e²): the calibration of ``world`` reads an entailment of 1 or 0 as ±2 deviations."""
FAILURE = "out of memory"


def load(package: str) -> Any:
    """Import a package, whatever it warns of; the test file is skipped where it is not installed."""
    reason = "its adapter is tested where it is installed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(package, reason=reason, exc_type=ImportError)
    if module.__file__ is None and "." not in package:  # a folder of that name: Ray writes into /tmp/ray
        pytest.skip(reason, allow_module_level=True)
    if package == "guardrails":  # it would send a span for every check, and every guard reads its settings anew
        rc = module.classes.rc.RC
        module.settings.rc = rc(enable_metrics=False)
        rc.load = lambda *_: module.settings.rc
    return module


def fail(call: Any) -> Outcome:
    """A model without memory."""
    return ModelError(FAILURE)


def open_engine(**roles: Callable[[Any], Outcome]) -> Engine:
    """An engine over fake models, which doubt blue honey and pass over greetings."""
    return Engine(world(**roles))
