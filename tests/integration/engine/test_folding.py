"""The fold from results to a score: its work grows linearly with the response, whatever the response repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.folding import KNOWLEDGE, SHAPES, make_runtime
from groundwire.engine import Engine, Options, Score
from groundwire.engine.core import core
from groundwire.engine.schema.explanations import ReaderExplanation, TokenClassifierExplanation, ValuesExplanation
from tests.support.work import count_steps


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(make_runtime()) as engine:
        yield engine


def score(engine: Engine, shape: str, length: int) -> Score:
    return engine.score((shape * length)[:length], KNOWLEDGE, options=Options(deadline_ms=None))


@pytest.mark.parametrize("name", SHAPES)
def test_the_work_of_a_fold_grows_linearly(name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    build = core.build_score

    def count(*arguments: Any) -> Score:
        built: list[Score] = []
        steps.append(count_steps(lambda: built.append(build(*arguments))))
        return built[0]

    monkeypatch.setattr(core, "build_score", count)
    for length in (750, 1_500):
        assert score(engine, SHAPES[name], length).verdict.label == "inconsistent"
    assert steps[1] < 2.5 * steps[0]


@pytest.mark.parametrize("name", SHAPES)
def test_explanations_are_in_the_order_of_the_response(name: str, engine: Engine) -> None:
    results = score(engine, SHAPES[name], 1_500).metrics
    for explanation in (result.explanation for result in results.values()):
        lists: list[Any] = [getattr(explanation, field, ()) for field in ("sentences", "words", "tokens", "values")]
        for items in lists:
            assert [item.start for item in items] == sorted(item.start for item in items)
    kinds = {type(result.explanation) for result in results.values()}
    assert kinds >= {ReaderExplanation, TokenClassifierExplanation}
    assert ValuesExplanation in kinds or name in ("no", "letters", "words")
