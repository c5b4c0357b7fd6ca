"""A metric added in one file: everything the engine knows about a metric comes from its record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from groundwire.engine import Engine, InvalidRequest, MetricResult, Options, Request, UnsupportedSpan
from groundwire.engine.metrics import METRICS, Details, Metric, available, find, register
from groundwire.engine.metrics.base import BoundResult, RoleInfos
from groundwire.engine.schema.explanations import REASONS
from groundwire.engine.schema.steps import Steps
from groundwire.engine.verdict.fusion import features
from groundwire.runtime.calls import Classified, Classify
from groundwire.runtime.fake import FakeRuntime
from tests.support import fakes


def score_shouting(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """1 for a response without words in capitals that the NLI model labels neutral, else 0."""
    answer: Classified
    (answer,) = yield [Classify("nli", request.knowledge, request.response)]
    spans = tuple(
        UnsupportedSpan(word, request.response.index(word), request.response.index(word) + len(word), "mismatch")
        for word in request.response.split()
        if word.isupper()
    )
    value = float(not spans and answer.label == "neutral")
    return MetricResult("shouting", "scored", value, unsupported=spans)


def show_words(result: MetricResult) -> Details:
    return Details(("word",), tuple((span.text,) for span in result.unsupported))


METRIC = Metric(
    name="shouting",
    title="Shouting",
    description="whether the response shouts",
    compute=score_shouting,
    roles=frozenset({"nli"}),
    groups=frozenset({"fast"}),
    details=show_words,
)


@pytest.fixture
def registered() -> Iterator[Metric]:
    yield register(METRIC)
    del METRICS[METRIC.name]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(FakeRuntime(fakes.ROLES)) as engine:
        yield engine


def test_the_metric_is_found_by_name_and_in_its_groups(registered: Metric, engine: Engine) -> None:
    assert find("shouting") is registered
    assert "shouting" in engine.plan("fast").names
    assert "shouting" in engine.plan("all").names
    assert "shouting" not in engine.plan("paper").names


def test_the_metric_scores_alone_and_with_others(registered: Metric, engine: Engine) -> None:
    alone = engine.score("honey is BLUE", "honey", metrics=["shouting"])
    assert (alone.status, alone.value) == ("scored", 0.0)
    assert [span.text for span in alone.unsupported] == ["BLUE"]
    together = engine.score("honey is BLUE", "honey", metrics=["overlap", "nli", "shouting"])
    assert together.metrics["shouting"] == alone.metrics["shouting"]
    assert "shouting" in engine.score("it is fine", "fine", metrics=["shouting"]).signature


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_a_weight(registered: Metric, reason: str) -> None:
    span = UnsupportedSpan("a", 0, 1, reason, "", "shouting")  # type: ignore[arg-type]
    assert 0 < registered.weight(span) < 1


def test_the_details_and_features_come_from_the_record_of_the_metric(registered: Metric) -> None:
    result = MetricResult("shouting", "scored", 0.5)
    assert registered.details(result) == Details(("word",), ())
    assert features([BoundResult(registered, result)]) == {"shouting": 0.5}


def test_registering_a_taken_name_is_refused() -> None:
    for name in ("q2", "all", "detector.mine"):
        with pytest.raises(InvalidRequest, match="taken"):
            register(Metric(name=name, title="", description="", compute=score_shouting))


def test_the_metric_is_not_available_without_its_roles(registered: Metric) -> None:
    assert "shouting" not in available({"qa"})
    with (
        Engine(FakeRuntime({"qa": fakes.answer})) as engine,
        pytest.raises(InvalidRequest, match="needs the roles nli"),
    ):
        engine.score("a", "b", metrics=["shouting"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", True])
def test_a_value_that_is_no_number_is_a_defect_of_the_metric(engine: Engine, value: object) -> None:
    def give(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
        yield []
        return MetricResult("giving", "scored", value)  # type: ignore[arg-type]

    register(dataclasses.replace(METRIC, name="giving", compute=give, details=None))
    try:
        result = engine.score("So it is.", "So it is.", metrics=["giving"]).metrics["giving"]
    finally:
        del METRICS["giving"]
    assert (result.status, result.value) == ("failed", None)
    assert "a defect of its code" in result.message


def test_every_metric_has_a_title_and_a_description() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title
        assert metric.description
        assert not metric.description.endswith(".")
        assert metric.bounds is None or metric.bounds[0] < metric.bounds[1]
