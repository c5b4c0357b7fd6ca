"""Small answers: the fields of a score that a caller wants, and scores as answers of FastAPI's routes."""

import json
from typing import Annotated

import pytest
from fastapi import Body, FastAPI

from groundwire.engine import Engine, InvalidRequest, Score
from tests.support.service import connect
from tests.support.streams import METRICS, world


@pytest.fixture(scope="module")
def score() -> Score:
    with Engine(world()) as engine:
        return engine.score("Honey is blue.", "Honey is golden.", metrics=METRICS)


def test_all_fields_are_the_record(score: Score) -> None:
    assert score.select() == score.to_dict()
    assert json.loads(json.dumps(score.select())) == json.loads(score.to_json())


def test_fields_keep_the_records_order(score: Score) -> None:
    selected = score.select(["unsupported", "verdict"])
    assert list(selected) == ["verdict", "unsupported"]
    assert selected["verdict"] == score.to_dict()["verdict"]
    assert score.select([]) == {}


def test_without_explanations_the_results_stay(score: Score) -> None:
    lean = score.select(explanations=False)
    full = score.to_dict()
    assert {name: lean[name] for name in lean if name not in ("metrics", "verdict", "sentences")} == {
        name: full[name] for name in full if name not in ("metrics", "verdict", "sentences")
    }
    for name, result in full["metrics"].items():
        assert lean["metrics"][name] == result | {"explanation": None, "unsupported": ()}
    assert lean["verdict"] == full["verdict"] | {"contributions": None}
    assert score.to_dict() == full, "the score itself is as it was"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["verdit"], r"fields\[0\] is 'verdit' \(did you mean verdict\?\); allowed are status, value, verdict,"),
        (["value", "metrics.nli"], r"fields\[1\] is 'metrics.nli'"),
        ([5], r"fields\[0\] is 5"),
        ("verdict", "fields is one string"),
    ],
)
def test_a_wrong_name_is_answered_with_the_allowed_ones(score: Score, fields: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        score.select(fields)


@pytest.mark.anyio
async def test_a_route_of_fastapi_returns_a_score(score: Score) -> None:
    application = FastAPI()

    @application.get("/annotated")
    def annotated() -> Score:
        return score

    @application.get("/nested")
    def nested() -> dict[str, Score]:
        return {"score": score}

    @application.post("/read")
    def read(given: Annotated[Score, Body()]) -> str:
        return given.verdict.label

    @application.get("/plain")
    def plain():  # type: ignore[no-untyped-def]
        return score

    expected = json.loads(score.to_json())

    async with connect(application) as client:
        assert (await client.get("/annotated")).json() == expected
        assert (await client.get("/nested")).json() == {"score": expected}
        assert (await client.get("/plain")).json() == expected
        answer = await client.post("/read", content=score.to_json(), headers={"Content-Type": "application/json"})
        assert answer.json() == score.verdict.label
        assert (await client.post("/read", json={"status": "scored"})).status_code == 422
        assert (await client.get("/openapi.json")).status_code == 200
