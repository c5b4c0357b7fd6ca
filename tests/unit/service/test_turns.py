"""``/check_turn``: the findings, the limits, and what cannot be read."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groundwire.service.front import Front
from tests.support.service import run
from tests.support.streams import ROLES, world

TURN = {
    "text": "It's cancelled.",
    "calls": [{"name": "send_mail", "arguments": {"to": "kim@example.org"}}],
    "log": [{"name": "cancel", "arguments": {"id": "A-7"}, "status": "failed"}],
    "history": [{"role": "user", "content": "Cancel A-7."}],
}

MAIL = {"name": "send_mail", "arguments": {"body": "It is cancelled now."}}


def post(body: dict[str, Any], **settings: Any) -> httpx.Response:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        return await client.post("/check_turn", json=body)

    return run(test, **settings)


def test_a_turn_is_checked() -> None:
    answer = post(TURN)
    assert answer.status_code == 200
    assert answer.json()["label"] == "inconsistent"
    assert [finding["status"] for finding in answer.json()["findings"]] == ["absent", "failed"]
    assert answer.json()["score"]["status"] == "scored"
    assert post(TURN | {"sentences": False}).json()["score"] is None


@pytest.mark.parametrize(
    ("change", "settings", "status"),
    [
        ({"calls": [{"tool": "send"}]}, {}, 422),
        ({"history": [{"text": "a"}]}, {}, 422),
        ({"log": TURN["log"] * 3}, {"max_passages": 2}, 413),
        ({"text": "a" * 50}, {"max_response_chars": 40}, 413),
        ({"history": ["a"] * 3}, {"max_turns": 2}, 413),
    ],
)
def test_what_is_refused(change: dict[str, Any], settings: dict[str, Any], status: int) -> None:
    assert post(TURN | change, **settings).status_code == status


def test_definitions_of_tools_are_no_calls() -> None:
    tools = [{"name": "cancel", "description": "a" * 60}]
    assert post(TURN | {"tools": tools}, max_response_chars=80).status_code == 200
    answer = post(TURN | {"tools": tools, "log": []}, max_knowledge_chars=80)
    assert (answer.status_code, answer.json()["path"]) == (413, "$.tools")


@pytest.mark.parametrize("turn", [TURN, TURN | {"text": "", "calls": [MAIL]}])
def test_a_turn_that_models_could_not_read_is_refused(turn: dict[str, Any]) -> None:
    def fail(call: Any) -> Any:
        if "cancelled" in call.hypothesis:
            raise RuntimeError("no memory")
        return ROLES["nli"](call)

    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        return await client.post("/check_turn", json=turn)

    answer = run(test, world(nli=fail))
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")


@pytest.mark.parametrize("path", ["/score", "/check_turn"])
@pytest.mark.parametrize("depth", [980, 20_000])
def test_a_log_that_is_nested_too_deeply_is_refused(path: str, depth: int) -> None:
    nested = '{"a":' * depth + "{}" + "}" * depth
    call = f'{{"name": "find", "arguments": {{}}, "result": {nested}}}'
    body = f'{{"response": "It is.", "knowledge": [{call}]}}' if path == "/score" else f'{{"log": [{call}]}}'

    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        return await client.post(path, content=body.encode(), headers={"Content-Type": "application/json"})

    answer = run(test)
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("malformed", "invalid")
