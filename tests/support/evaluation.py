"""Examples and scores made by hand, and settings over the fake world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from groundwire.engine import Engine, MetricResult, Score, Verdict
from groundwire.engine.core.plan import Plan, make_plan
from groundwire.engine.schema.results import Timings
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.scores.scoring import ScoringSettings
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion
from tests.support.verdicts import make_profile

from .fakes import world


def make_example(
    name: str,
    label: int | None = None,
    *,
    knowledge: str = "Elvis came in 1935.",
    grade: float | None = None,
    verifiable: bool | None = None,
    context: str = "",
    system: str = "",
    source: str = "",
) -> Example:
    return Example(
        id=name,
        response=f"{name} came.",
        knowledge=(knowledge,),
        label=label,
        grade=grade,
        verifiable=verifiable,
        context=context,
        system=system,
        source=source,
    )


def score(values: Mapping[str, float | None], signature: str = "s") -> Score:
    """A score of these metrics; None is a metric that failed."""
    metrics = {
        name: MetricResult(name, "failed", message="no")
        if value is None
        else MetricResult(name, "scored", float(value))
        for name, value in values.items()
    }
    first = next(iter(metrics.values()))
    verdict = Verdict("unknown")
    return Score(first.status, first.value, verdict, metrics, (), None, Timings(0.0, {}), signature)


CALIBRATION = Calibration(
    fitted_on=("dev",),
    rows=100,
    fusions=(
        Fusion(
            name="full",
            metrics=("q2",),
            intercept=0.0,
            features=(Feature(name="q2", mean=0.5, deviation=0.25, weight=1.0, needed=True),),
            profiles={
                "balanced": make_profile(0.5, 0.1, 0.1),
                "strict": make_profile(0.8, 0.2, 0.05),
            },
        ),
    ),
    scales={},
)
"""The probability is above 0.5 where Q² is, and above 0.8 where it is above about 0.85."""


def plan_for_fakes(settings: ScoringSettings, calibration: Calibration | None = None) -> Plan:
    """What ``ScoringSettings.plan`` returns for the fake world."""
    runtime = world()
    return make_plan(
        runtime.roles, runtime.identity, calibration or runtime.calibration, settings.metrics, settings.options
    )


class Fake(ScoringSettings):
    """Settings whose bundle is the fake world."""

    def plan(self, calibration: Calibration | None = None) -> Plan:
        return plan_for_fakes(self, calibration)

    def load(self) -> Engine:
        return Engine(world())


class NoModels(Fake):
    """Settings that must do without an engine."""

    def load(self) -> NoReturn:
        raise AssertionError("the engine was loaded")
