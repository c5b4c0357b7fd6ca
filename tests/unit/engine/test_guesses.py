"""What people guess of the Python interface works, or its error names the right word."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import groundwire
from groundwire import explanations
from groundwire.engine import Engine, InvalidRequest, MetricResult, Ranked, Score
from groundwire.engine.extend import make_request
from groundwire.engine.schema.explanations import Explanation
from groundwire.explanations import DetectorExplanation, Q2Explanation
from groundwire.runtime.fake import FakeRuntime
from groundwire.testing import make_engine
from tests.support.generation import language_model

WRONG = 'It <b>closes</b> & "opens" at ten.'


@pytest.fixture(scope="module")
def score() -> Iterator[Score]:
    with make_engine(lambda response, knowledge: 0.1 if "ten" in response else 0.9) as engine:
        yield engine.score(f"The shop is old. {WRONG}", "The shop is old. It opens at nine.")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Option", " (did you mean Options?)"),
        ("load", ": Engine has it, from groundwire.engine import Engine"),
        ("rank", ": Engine has it, from groundwire.engine import Engine"),
        ("correct", ": Corrector has it, from groundwire.repair import Corrector"),
        ("Verdict", ": from groundwire.engine import Verdict"),
        ("TurnCheck", ": from groundwire.turns import TurnCheck"),
        ("Q2Explanation", ": from groundwire.explanations import Q2Explanation"),
        ("_private", ""),
    ],
)
def test_a_name_of_the_top_level_that_is_elsewhere(name: str, advice: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(groundwire, name)
    assert str(error.value) == f"module 'groundwire' has no attribute '{name}'{advice}"


def test_a_name_that_is_imported_from_the_top_level_but_is_elsewhere() -> None:
    with pytest.raises(ImportError, match=r"^cannot import name 'Verdict' from 'groundwire': from groundwire\.engine"):
        from groundwire import Verdict  # type: ignore[attr-defined]  # noqa: F401
    from groundwire import files

    assert files.__name__ == "groundwire.files"


class Frame:
    """What is used of a data frame of pandas."""

    columns = ("response", "knowledge", "history")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self, orient: str) -> list[dict[str, object]]:
        assert orient == "records"
        return [{"response": WRONG, "knowledge": "It opens at nine.", "history": float("nan")}]


def test_the_rows_of_a_data_frame_and_lists_of_two_are_scored() -> None:
    with make_engine(lambda response, knowledge: 0.1) as engine:
        tables: list[Any] = [Frame(), [[WRONG, "It opens at nine."]]]
        for table in tables:
            assert [score.verdict.label for score in engine.score_many(table)] == ["inconsistent"]


def test_messages_of_a_chat_are_a_history() -> None:
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": [{"type": "text", "text": "At nine."}]},
    ]
    request = make_request("Why?", "It opens at nine.", [*messages, "Why?"])
    assert request.history == ("When?", "At nine.", "Why?")


def test_packages_are_attributes_and_evaluate_is_called_as_its_function() -> None:
    assert groundwire.repair.Corrector is groundwire.Corrector
    with pytest.raises(InvalidRequest, match="None of the 1 rows has a label"):
        groundwire.evaluate([{"response": "It is red.", "knowledge": "It is red."}], None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("label", "verdict.label"),
        ("probability", "verdict.probability"),
        ("consistent", "verdict.label"),
        ("asdict", "to_dict()"),
        ("json", "to_json()"),
        ("score", "verdict.probability"),
        ("claims", "sentences"),
        ("unsuported", "unsupported"),
        ("detector.test", "metrics['detector.test']"),
    ],
)
def test_an_attribute_that_a_score_lacks(score: Score, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=r"Score has no attribute") as error:
        getattr(score, name)
    assert f"did you mean {meant}" in str(error.value)


def test_an_attribute_that_a_candidate_lacks() -> None:
    with pytest.raises(AttributeError, match=r"did you mean result\.value"):
        _ = Ranked("a", 0, MetricResult("pmi", "scored", 0.5)).score  # type: ignore[attr-defined]


def test_special_names_are_not_looked_for(score: Score) -> None:
    with pytest.raises(AttributeError, match=r"Score has no attribute '_repr_png_'\.$"):
        getattr(score, "_repr_png_")  # noqa: B009


def test_an_engine_has_metrics_of_its_own() -> None:
    with Engine(FakeRuntime({"lm": language_model}), metrics="pmi") as engine:
        assert list(engine.score("bees make honey", "bees make honey").metrics) == ["pmi"]
        assert engine.plan() is engine.plan("pmi")
        assert engine.plan(["overlap"]).names == ("overlap",)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("predict_proba", "groundwire.adapters.sklearn"),
        ("stats", "statistics"),
        ("check", "score"),
        ("metrics", "plan"),
    ],
)
def test_an_attribute_that_an_engine_lacks(name: str, meant: str) -> None:
    with Engine(FakeRuntime({"lm": language_model})) as engine:
        assert not hasattr(engine, name)
        with pytest.raises(AttributeError, match=f"Engine has no attribute '{name}' .did you mean {meant}"):
            getattr(engine, name)


def test_wrong_metrics_are_refused_when_an_engine_is_loaded() -> None:
    with pytest.raises(InvalidRequest, match="pmi"):
        Engine.load(metrics=["pmii"])


def test_an_explanation_is_read_by_its_type(score: Score) -> None:
    explanation = score.explain(DetectorExplanation)
    assert explanation is score.metrics["detector.test"].explanation
    assert score.explain(DetectorExplanation, "detector.test") is explanation
    assert score.explain(DetectorExplanation, "detector.other") is None
    assert score.explain(Q2Explanation) is None
    with pytest.raises(InvalidRequest, match=r"kind is 'Q2'; pass a record of groundwire\.explanations"):
        score.explain("Q2")  # type: ignore[type-var]


def test_every_explanation_has_a_public_name() -> None:
    assert set(explanations.__all__) == {kind.__name__ for kind in Explanation.__args__}


def test_a_score_is_shown_on_one_short_line(score: Score) -> None:
    text = repr(score)
    assert text.startswith("Score(inconsistent, 0.10")
    assert "unsupported" in text
    assert "\n" not in text
    assert len(text) <= 200


def test_a_score_is_shown_as_a_card(score: Score) -> None:
    html = score._repr_html_()
    assert "&lt;b&gt;closes&lt;/b&gt; &amp; &quot;opens&quot; at ten." in html
    assert "<b>" not in html
    assert html.count(">consistent<") == 1
    assert html.count(">inconsistent<") == 2


def test_a_card_needs_no_other_package(score: Score) -> None:
    before = set(sys.modules)
    score._repr_html_()
    assert {name.split(".")[0] for name in set(sys.modules) - before} <= {"groundwire", "html"}
