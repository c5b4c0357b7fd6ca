"""A metric added in one file: everything the engine knows about a metric comes from its record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

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


def mark(start: Any, end: Any, reason: Any = "contradiction") -> MetricResult:
    return MetricResult("giving", "scored", 0.5, unsupported=(UnsupportedSpan("it", start, end, reason),))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.5, "gave float; return a MetricResult"),
        (MetricResult("giving", "scored", float("nan")), "gave nan as its value; give a finite number"),
        (MetricResult("giving", "scored", float("inf")), "gave inf as its value"),
        (MetricResult("giving", "scored", "1"), "gave '1' as its value"),  # type: ignore[arg-type]
        (MetricResult("giving", "scored", True), "gave True as its value"),
        (MetricResult("giving", "scored", 3.2), "gave the value 3.2; its Metric.bounds are 0 to 1"),
        (MetricResult("giving", "scored", -0.1), "gave the value -0.1; its Metric.bounds are 0 to 1"),
        (MetricResult("giving", "done"), "gave the status 'done'; allowed are scored, "),  # type: ignore[arg-type]
        (MetricResult("taking", "scored", 0.5), "gave a result with the name 'taking'; name it 'giving'"),
        (mark(3, 10), "gave the characters 3 to 10 as unsupported; the response as it reads it has 9"),
        (mark(-1, 2), "gave the characters -1 to 2"),
        (mark(2, 2), "gave the characters 2 to 2"),
        (mark(0.0, 2.0), "gave the characters 0.0 to 2.0"),
        (mark(0, 2, "wrong"), "gave the reason 'wrong'; allowed are no_answer, "),
        (MetricResult("giving", "scored", 0.5, unsupported=((0, 2),)), "gave tuple as unsupported"),  # type: ignore[arg-type]
    ],
)
def test_what_a_metric_may_not_give_is_named_with_what_is_allowed(engine: Engine, given: Any, message: str) -> None:
    """The metric failed, and the other metrics and the score are as without it."""

    def give(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
        yield []
        return given  # type: ignore[no-any-return]

    register(dataclasses.replace(METRIC, name="giving", compute=give))
    try:
        score = engine.score("Honey is.", "Honey is.", metrics=["overlap", "giving"])
        (ranked,) = engine.rank(["Honey is."], "Honey is.", metric="giving")
    finally:
        del METRICS["giving"]
    result = score.metrics["giving"]
    assert ranked.result == result
    assert (result.name, result.status, result.value, result.unsupported) == ("giving", "failed", None, ())
    assert result.message.startswith(f"The metric giving {message}")
    assert result.message.endswith(" This is a defect of its code.")
    assert (score.status, score.value) == ("scored", 1.0)


@pytest.mark.parametrize("value", [0, 1, 1 + 1e-7])
def test_a_value_may_be_beyond_a_bound_by_rounding(engine: Engine, value: float) -> None:
    def give(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
        yield []
        return MetricResult("giving", "scored", value)

    register(dataclasses.replace(METRIC, name="giving", compute=give))
    try:
        assert engine.score("So it is.", "So it is.", metrics=["giving"]).value == value
    finally:
        del METRICS["giving"]


def test_every_metric_has_a_title_and_a_description() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title
        assert metric.description
        assert not metric.description.endswith(".")
        assert metric.bounds is None or metric.bounds[0] < metric.bounds[1]
