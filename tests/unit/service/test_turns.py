"""``/check_turn``: the findings, the limits, and what cannot be read."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groundwire.service.front import Front
from tests.support.service import run

TURN = {
    "text": "It's cancelled.",
    "calls": [{"name": "send_mail", "arguments": {"to": "kim@example.org"}}],
    "log": [{"name": "cancel", "arguments": {"id": "A-7"}, "status": "failed"}],
    "history": [{"role": "user", "content": "Cancel A-7."}],
}


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
