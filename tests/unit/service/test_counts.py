"""What every request is counted by: its refusals, and the plans that it makes."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import httpx
import pytest

from groundwire.engine.core.core import Core
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Runtime
from groundwire.service.application import OPERATIONS
from groundwire.service.front import Front
from groundwire.service.openapi import Operation
from groundwire.service.problems import Code
from tests.support import correcting
from tests.support.generation import generator, language_model
from tests.support.graph_world import FILMS
from tests.support.graph_world import world as graph_world
from tests.support.service import HONEY, JSON, NDJSON, run, serve
from tests.support.streams import world

TENSORS = [{"name": name, "shape": [1], "datatype": "BYTES", "data": [text]} for name, text in HONEY.items()]
BODIES: dict[str, Any] = {
    "/score": HONEY,
    "/score_many": HONEY,
    "/check_turn": {"text": "Honey is golden.", "log": [{"name": "look_up", "result": "Honey is golden."}]},
    "/evidence": HONEY,
    "/rank": {"candidates": ["honey is blue"], "knowledge": "bees make honey", "history": ["hi"]},
    "/correct": HONEY,
    "/refine": {
        "response": "It was directed by James Cameron.",
        "history": ["Do you know Alien?"],
        "triples": [[triple.subject, triple.predicate, triple.object] for triple in FILMS],
    },
    "/generate": {"knowledge": "Honey is golden.", "history": ["What is honey?"]},
    "/stream": {"knowledge": "Honey is golden."},
    "/classify": {"inputs": "Honey is blue.", "parameters": {"context": "Honey is golden."}},
    "/beta/litellm_basic_guardrail_api": {
        "input_type": "response",
        "texts": ["Honey is golden."],
        "additional_provider_specific_params": {"knowledge": "Honey is golden."},
    },
    "/v1/systemone": {"state": HONEY, "questions": {"q": {"type": "noul", "instructions": "supported"}}},
    "/v1/decisions": {
        "input": json.dumps(HONEY),
        "questions": [{"type": "predicate", "instructions": "supported"}],
    },
    "/v2/models/{name}/infer": {"inputs": TENSORS},
}
"""A body that each path accepts."""


def make_runtime(path: str) -> Runtime:
    match path:
        case "/rank":
            return FakeRuntime({"lm": language_model})
        case "/refine":
            return graph_world()
        case "/correct":
            return FakeRuntime(correcting.ROLES, calibration=correcting.CALIBRATION)
        case "/generate":
            return FakeRuntime({"generator": generator})
    return world()


async def send(client: httpx.AsyncClient, operation: Operation, headers: dict[str, str], content: bytes | None) -> int:
    path = operation.path.replace("{name}", "groundwire")
    kind = NDJSON if operation.body_type == NDJSON["Content-Type"] else JSON
    if content is None and operation.path in BODIES:
        content = json.dumps(BODIES[operation.path]).encode() + b"\n"
    answer = await client.request(operation.method, path, content=content, headers=kind | headers)
    return answer.status_code


def provoke(operation: Operation, code: Code) -> tuple[dict[str, str], bytes | None]:
    """The headers and the body for which an operation is refused with a code."""
    match code:
        case "malformed":
            return {}, b"{\n"
        case "too_large":
            return {}, json.dumps({"knowledge": "a" * 3_000_000}).encode()
        case "unsupported_media_type":
            return {"Content-Type": "text/plain"}, None
        case "invalid":
            return {"Groundwire-Deadline-Ms": "soon"}, None
        case "deadline":
            return {"Groundwire-Deadline-Ms": "0.000001"}, None
    return {}, None


CASES = [
    (operation, code)
    for operation in OPERATIONS
    for code in operation.problems
    if code in ("unauthorized", "overloaded", "closed", "unsupported_media_type", "invalid", "deadline", "malformed")
]


@pytest.mark.anyio
@pytest.mark.parametrize(("operation", "code"), CASES, ids=lambda value: getattr(value, "path", value))
async def test_a_refusal_of_every_route_is_counted_by_its_code(operation: Operation, code: Code) -> None:
    async with serve(make_runtime(operation.path), tokens=("secret",)) as (client, front):
        front.service.readiness.is_draining = code == "closed"
        engine = front.service.engine
        if code == "closed":
            engine.close()
        if code == "overloaded":
            engine.core.scheduler._backlog.add(10**6, 0.0)
        token = {} if code == "unauthorized" else {"Authorization": "Bearer secret"}
        headers, content = provoke(operation, code)
        status = await send(client, operation, token | headers, content)
        text = front.service.monitoring.render().decode()
        assert f'groundwire_refusals_total{{code="{code}",route="{operation.path}"}} 1.0' in text, status
        assert text.count("groundwire_refusals_total{") == 1
        if code == "overloaded":
            engine.core.scheduler._backlog.remove(10**6, 1.0)


def test_lines_and_events_with_a_problem_are_counted_too() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        lines = [HONEY, {"response": " "}, {}, HONEY | {"knowledge": "a" * 60_000}]
        content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        assert (await client.post("/score_many", content=content, headers=NDJSON)).status_code == 200
        first = json.dumps({"knowledge": "Honey is golden."}).encode()
        assert (await client.post("/stream", content=first + b"\n5\n", headers=NDJSON)).status_code == 200
        return front.service.monitoring.render().decode()

    text = run(test)
    assert 'groundwire_refusals_total{code="invalid",route="/score_many"} 2.0' in text
    assert 'groundwire_refusals_total{code="too_large",route="/score_many"} 1.0' in text
    assert 'groundwire_refusals_total{code="invalid",route="/stream"} 1.0' in text


@pytest.mark.parametrize("path", [path for path in BODIES if path != "/generate"])
def test_a_request_makes_one_plan(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counter[str]()
    plan = Core.plan

    def count(self: Core, *arguments: Any) -> Any:
        counts["plans"] += 1
        return plan(self, *arguments)

    async def test(client: httpx.AsyncClient, front: Front) -> None:
        (operation,) = [operation for operation in OPERATIONS if operation.path == path]
        with monkeypatch.context() as patch:
            patch.setattr(Core, "plan", count)
            assert await send(client, operation, {}, None) == 200

    run(test, make_runtime(path))
    assert counts["plans"] <= 1, "of names and options"


@pytest.mark.anyio
async def test_equal_requests_share_a_plan() -> None:
    async with serve() as (client, front):
        plans = front.service.engine.core._plans
        sizes = []
        for deadline in ("5000", "6000", "7000"):
            await client.post("/score", json=HONEY, headers={"Groundwire-Deadline-Ms": deadline})
            sizes.append(len(plans))
        assert sizes == sizes[:1] * 3


@pytest.mark.anyio
async def test_a_lean_answer_is_small() -> None:
    async with serve() as (client, _):
        full = await client.post("/score", json=HONEY)
        asked = HONEY | {"fields": ["verdict", "unsupported"], "explanations": False}
        lean = await client.post("/score", json=asked)
        assert list(lean.json()) == ["verdict", "unsupported"]
        assert lean.json()["verdict"] == full.json()["verdict"] | {"contributions": None}
        assert len(lean.content) < 1000 < len(full.content)
        short = await client.post("/score", json=HONEY | {"explanations": False})
        assert set(short.json()) == set(full.json())
        assert {result["explanation"] for result in short.json()["metrics"].values()} == {None}
        wrong = await client.post("/score", json=HONEY | {"fields": ["verdict", "verdit"]})
        assert (wrong.status_code, wrong.json()["path"]) == (422, "$.fields[1]")
        assert "did you mean verdict?); allowed are status, value, verdict," in wrong.json()["detail"]
        lines = [asked | {"id": 1}, asked | {"fields": ["verdit"]}]
        content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        first, second = (await client.post("/score_many", content=content, headers=NDJSON)).text.splitlines()
        assert json.loads(first) == {"line": 1, "id": 1, "score": lean.json()}
        assert json.loads(second)["error"]["path"] == "$.fields[0]"


@pytest.mark.anyio
async def test_a_probe_is_not_refused_by_a_full_engine() -> None:
    async with serve() as (client, front):
        backlog = front.service.engine.core.scheduler._backlog
        now = time.monotonic()
        backlog.add(10**6, now)
        front.service.readiness._probed_at = None
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.post("/score", json=HONEY)).status_code == 429
        backlog.remove(10**6, now + 1)


@pytest.mark.anyio
async def test_lines_wait_while_the_engine_is_full() -> None:
    async with serve() as (client, front):
        backlog = front.service.engine.core.scheduler._backlog
        backlog.add(10**6, 0.0)
        content = json.dumps(HONEY).encode()
        asking = asyncio.create_task(client.post("/score_many", content=content, headers=NDJSON))
        await asyncio.sleep(0.1)
        assert not asking.done()
        backlog.remove(10**6, 1.0)
        assert json.loads((await asking).text)["score"]["status"] == "scored"
