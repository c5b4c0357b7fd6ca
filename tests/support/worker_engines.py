"""Engines that worker processes load in tests: without models, and with the faults that a test asks for."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NoReturn

from groundwire.engine import Engine
from groundwire.engine.core import core
from groundwire.engine.processes.messages import Start
from groundwire.engine.processes.runtime import ProcessRuntime
from groundwire.runtime.calls import Call, Classified, Classify, Read
from groundwire.runtime.errors import BundleError, ModelError
from groundwire.runtime.fake import FakeRuntime
from tests.support.broken_folds import build

POISON, FAILING, FROZEN = "poison", "failing", "frozen"
"""Words of responses that end the process that reads them, that fail, and that fail with the number of objects that no
garbage collection looks at."""
ALLOWED = "GROUNDWIRE_TEST_ALLOWED"
SLOW = "slow"
"""A word of responses that take ``SLOW_SECONDS``."""
SLOW_SECONDS = 60.0
SECONDS = 0.005
"""Of a call."""


def classify(call: Classify) -> Classified:
    """A label that depends on the texts; ``POISON`` ends the process, ``FAILING`` and ``FROZEN`` raise an error."""
    time.sleep(SLOW_SECONDS if SLOW in call.hypothesis else SECONDS)
    if POISON in call.hypothesis:
        os._exit(9)
    if FAILING in call.hypothesis:
        raise ModelError("the model failed")
    if FROZEN in call.hypothesis:
        raise ModelError(str(gc.get_freeze_count()))
    label = "entailment" if call.hypothesis[0] in "AEIOU" else "contradiction"
    length = len(call.hypothesis)
    probabilities = {name: float(name == label) for name in ("contradiction", "neutral", "entailment")}
    return Classified(label, probabilities, 0, Read(length, length, length))


def load() -> Engine:
    """An engine whose only model answers ``nli`` by ``classify``."""
    return Engine(FakeRuntime({"nli": classify}, batch=2, concurrent_requests=3))


class FailingWarmUp(FakeRuntime):
    """A runtime whose only model fails when it is warmed up."""

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        return [ask(FAILING)] if roles is None or "nli" in roles else []


def load_failing_warm_up() -> Engine:
    """As ``load``, with a model that fails when it is warmed up."""
    return Engine(FailingWarmUp({"nli": classify}))


def load_broken() -> Engine:
    """As ``load``, in a process where the folds of responses that are ``BROKEN`` raise."""
    setattr(core, "build_score", build)  # noqa: B010 - for the life of the process
    return load()


def load_if_allowed() -> Engine:
    """As ``load`` while the file ``ALLOWED`` names is there."""
    if not Path(os.environ[ALLOWED]).exists():
        raise BundleError("the models are gone")
    return load()


def refuse() -> NoReturn:
    """As a bundle that is not there."""
    raise BundleError("there is no bundle")


def leave() -> NoReturn:
    """As a process without memory."""
    os._exit(3)


def open_processes(count: int, factory: str = "load") -> Engine:
    """An engine with worker processes that make their engines by a function of this module."""
    return Engine(ProcessRuntime(count, Start(f"{__name__}:{factory}", {})))


def ask(text: str) -> Call:
    """A call of the only model."""
    return Classify("nli", ("knowledge",), text)
