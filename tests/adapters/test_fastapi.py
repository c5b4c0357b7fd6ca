"""The dependency in an application."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

load("fastapi")
load("httpx")
load("fastapi.testclient")
from fastapi import Depends, FastAPI  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402

from groundwire.adapters.fastapi import ResponseGuard  # noqa: E402


def get(engine: Engine, draft: str) -> Any:
    app = FastAPI()
    make = ResponseGuard(engine)

    async def answer(draft: str, guard: Any) -> str:
        await guard.require(draft, KNOWLEDGE, ["What is honey like?"])
        return draft

    answer.__annotations__["guard"] = Annotated[ResponseGuard, Depends(make)]
    app.get("/answer")(answer)
    with TestClient(app) as client:
        return client.get("/answer", params={"draft": draft})


@pytest.mark.parametrize("draft", [CONSISTENT, GREETING])
def test_an_answer_that_passes_is_sent(engine: Engine, draft: str) -> None:
    answer = get(engine, draft)
    assert (answer.status_code, answer.json()) == (200, draft)


def test_an_inconsistent_answer_is_422(engine: Engine) -> None:
    answer = get(engine, INCONSISTENT)
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert (detail["label"], detail["probability"]) == ("inconsistent", PROBABILITY[INCONSISTENT])


def test_without_a_score_it_is_503(failing_engine: Engine) -> None:
    answer = get(failing_engine, CONSISTENT)
    assert answer.status_code == 503
    assert FAILURE in answer.json()["detail"]["reason"]
