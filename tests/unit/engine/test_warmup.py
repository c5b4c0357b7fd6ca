"""Which models a warm-up runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from groundwire.engine import Engine, Options
from groundwire.runtime.calls import Answer, Call, Classify, role_of
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.fake import FakeRuntime
from tests.support.fakes import ROLES, label


class WarmRuntime(FakeRuntime):
    """The fake with a warm-up call for two of its roles, and for the claim filter."""

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        calls: dict[str, Call] = {
            "qa": Answer("when?", ("Warm.",)),
            "nli": Classify("nli", (), "Warm."),
            "detector.verifiability": Classify("detector.verifiability", (), "Warm."),
        }
        return [call for role, call in calls.items() if roles is None or role in roles]


@pytest.mark.parametrize(
    ("metrics", "warm"),
    [
        (None, {"qa", "nli", "detector.verifiability"}),
        (["nli"], {"nli"}),
        ("q2", {"qa", "nli"}),
        (["overlap"], set()),
    ],
)
def test_a_warm_up_runs_the_models_of_the_metrics(metrics: list[str] | str | None, warm: set[str]) -> None:
    runtime = WarmRuntime({**ROLES, "detector.verifiability": label})
    with Engine(runtime) as engine:
        engine.warmup(metrics)
    assert {role_of(call) for _, calls in runtime.batches for call in calls} == warm


def test_a_plan_needs_the_model_of_its_claim_filter() -> None:
    with Engine(WarmRuntime({**ROLES, "detector.verifiability": label})) as engine:
        assert engine.plan(["nli"]).roles == {"nli"}
        assert engine.plan(["nli"], Options(claim_filter="verifiable")).roles == {"nli", "detector.verifiability"}


def test_a_metric_that_the_bundle_lacks_is_refused() -> None:
    with Engine(WarmRuntime(ROLES)) as engine, pytest.raises(InvalidRequest, match="pmi"):
        engine.warmup(["pmi"])
