"""What a metric is: a generator of model calls that returns a MetricResult.

A metric yields a wave, a list of calls, and is resumed with the list of their results. When a call fails, its error is
raised at the ``yield``; a metric that does not catch it ends with status ``failed``. A part that several metrics share
is a generator too, used by ``yield from``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request


class Metric(NamedTuple):
    """A metric as the engine knows it."""

    name: str
    title: str
    roles: frozenset[str]
    """Bundle roles it needs."""
    steps: Callable[[Request, Options], Steps[MetricResult]]
    package: str = ""
    """A module that must be installed for it; empty when the base installation is enough."""


def at_once(result: Callable[[], MetricResult]) -> Steps[MetricResult]:
    """The steps of a metric that asks no model: one, which gives its result."""
    yield from ()  # what makes this a generator
    return result()
