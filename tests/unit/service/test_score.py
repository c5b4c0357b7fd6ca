"""``/score``: what is answered, and every way in which a request ends without a result."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import Any

import httpx
import pytest

from groundwire.engine import Engine, Request, Score
from groundwire.evidence import Auditor, EvidencePacket
from groundwire.runtime.calls import Classify
from groundwire.runtime.errors import ModelError, TooLong
from groundwire.runtime.protocol import Outcome
from groundwire.service.front import Front
from tests.support.broken_folds import MESSAGE, break_folds
from tests.support.service import HONEY, JSON, Connection, connect, count_requests, count_tokens, run, serve, wait_until
from tests.support.streams import METRICS, classify, world


class Held:
    """A model that answers when it is released."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()
        self.holds = False

    def __call__(self, call: Classify) -> Outcome:
        if self.holds and "number" not in call.hypothesis:
            self.entered.set()
            self.released.wait(30)
        return classify(call)


def post(body: Any, headers: dict[str, str] | None = None, path: str = "/score", **settings: Any) -> httpx.Response:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post(path, content=content, headers=JSON | (headers or {}))

    return run(test, **settings)


def test_a_score_is_the_engines() -> None:
    answer = post(HONEY)
    assert answer.status_code == 200
    score = Score.from_json(answer.content)
    with Engine(world()) as engine:
        expected = engine.score(**HONEY)
    assert (score.value, score.verdict, score.unsupported) == (expected.value, expected.verdict, expected.unsupported)
    assert score.signature == expected.signature, "deadlines and limits are not decisive"


def test_a_defect_of_the_verdict_is_answered_with_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    break_folds(monkeypatch)
    answer = post(HONEY | {"response": "Honey is broken."})
    assert answer.status_code == 500
    problem = answer.json()
    assert (problem["code"], problem["detail"]) == ("failed", MESSAGE)
    assert problem["result"]["metrics"]["nli"]["status"] == "scored"


@pytest.mark.parametrize("texts", [False, True])
def test_evidence_is_verified_by_another_engine(texts: bool) -> None:
    answer = post(HONEY | {"texts": texts, "options": {"deadline_ms": 5000}}, path="/evidence")
    assert answer.status_code == 200, answer.text
    packet = EvidencePacket.from_json(answer.content)
    assert (packet.texts is not None, "golden" in answer.text) == (texts, texts)
    with Engine(world()) as engine:
        verification = Auditor(engine).verify(packet, Request(HONEY["response"], (HONEY["knowledge"],)))
    assert (verification.status, verification.settings) == ("verified", ())


def test_metrics_and_options_are_the_requests() -> None:
    body = HONEY | {"metrics": ["token_classifier"], "options": {"token_classifier": {"threshold": 0.9}}}
    score = Score.from_json(post(body).content)
    assert list(score.metrics) == ["token_classifier"]
    assert "token_classifier.threshold=0.9" in score.signature
    assert list(Score.from_json(post(HONEY, metrics=("nli",)).content).metrics) == ["nli"], "those of the server"
    assert "nli" in Score.from_json(post(HONEY | {"metrics": "fast"}).content).metrics, "a group"


@pytest.mark.parametrize("knowledge", [{"honey": {"taste": "sweet"}}, [{"honey": {"taste": "sweet"}}, "It is golden."]])
def test_a_json_object_is_knowledge(knowledge: Any) -> None:
    score = Score.from_json(post(HONEY | {"knowledge": knowledge}).content)
    with Engine(world()) as engine:
        expected = engine.score(HONEY["response"], knowledge)
    assert (score.value, score.verdict, score.metrics) == (expected.value, expected.verdict, expected.metrics)


@pytest.mark.parametrize(
    ("body", "status", "code", "path"),
    [
        (b"{", 400, "malformed", ""),
        (b"", 400, "malformed", ""),
        (b"\xff\xfe", 400, "malformed", ""),
        (b"[" * 100_000, 422, "invalid", "$"),
        (b'{"response": "\xff"}', 400, "malformed", ""),
        (b'{"response": "a", "knowledge": "b", "options": {"q2": ' + b"[" * 100_000, 422, "invalid", "$.options.q2"),
        ({"knowledge": "b"}, 422, "invalid", "$.response"),
        ({"response": 1, "knowledge": "b"}, 422, "invalid", "$.response"),
        (HONEY | {"knowledge": ["a", 2]}, 422, "invalid", "$.knowledge[1]"),
        (HONEY | {"history": 3}, 422, "invalid", "$.history"),
        (HONEY | {"speaker": "a"}, 422, "invalid", "$.speaker"),
        (HONEY | {"options": {"deadline_ms": -1}}, 422, "invalid", "$.options.deadline_ms"),
        (HONEY | {"options": {"deadlin": 1}}, 422, "invalid", "$.options.deadlin"),
        (HONEY | {"options": {"priority": 1}}, 422, "invalid", "$.options.priority"),
        (HONEY | {"metrics": ["nil"]}, 422, "invalid", ""),
        (HONEY | {"metrics": []}, 422, "invalid", "$.metrics"),
        (HONEY | {"response": "  "}, 422, "invalid", "$.response"),
        (HONEY | {"knowledge": ["a\0b"]}, 422, "invalid", "$.knowledge[0]"),
        (HONEY | {"triples": [["a", "", "b"]]}, 422, "invalid", "$.triples[0]"),
        (HONEY | {"triples": [["a", "b"]]}, 422, "invalid", "$.triples[0]"),
        (HONEY | {"response": "a" * 30}, 413, "too_large", "$.response"),
        (HONEY | {"knowledge": ["a" * 60, "b" * 60]}, 413, "too_large", "$.knowledge"),
        (HONEY | {"knowledge": {"a": "b" * 120}}, 413, "too_large", "$.knowledge"),
        (HONEY | {"knowledge": ["a"] * 4}, 413, "too_large", "$.knowledge"),
        (HONEY | {"history": ["a" * 51]}, 413, "too_large", "$.history"),
        (HONEY | {"history": ["a"] * 4}, 413, "too_large", "$.history"),
        (HONEY | {"triples": [["a", "b", "c"]] * 4}, 413, "too_large", "$.triples"),
        (HONEY | {"triples": [{"subject": "a" * 99, "predicate": "b", "object": "c"}]}, 413, "too_large", "$.triples"),
        (HONEY | {"knowledge": "a" * 600_000}, 413, "too_large", ""),
    ],
)
def test_a_wrong_body_is_refused_with_the_path_of_its_field(body: Any, status: int, code: str, path: str) -> None:
    answer = post(
        body,
        max_response_chars=29,
        max_knowledge_chars=100,
        max_passages=3,
        max_history_chars=50,
        max_turns=3,
        max_triples=3,
        max_body_bytes=500_000,
    )
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"], problem.get("path", "")) == (
        status, status, code, path,
    )  # fmt: skip
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["detail"].endswith(".")


@pytest.mark.anyio
async def test_a_body_without_a_length_is_bounded_too() -> None:
    async with serve(max_body_bytes=1000) as (_, front):
        connection = Connection(front, "/score", JSON)
        connection.write(b"x" * 600)
        connection.write(b"x" * 600)
        assert await connection.read_status() == 413
        assert (await connection.read_line())["code"] == "too_large"
        await connection.task


def test_only_json_is_read() -> None:
    assert post(HONEY, {"Content-Type": "application/x-www-form-urlencoded"}).status_code == 415
    assert post(HONEY, {"Content-Encoding": "gzip"}).status_code == 415
    assert post(HONEY, {"Content-Encoding": "identity"}).status_code == 200
    assert post(HONEY, {"Content-Type": "application/json; charset=utf-8"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/score", 405), ("GET", "/nothing", 404), ("POST", "/score/", 404)]
)
def test_other_paths_and_methods_are_problems(method: str, path: str, status: int) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        return await client.request(method, path)

    answer = run(test)
    assert (answer.status_code, answer.json()["status"]) == (status, status)


@pytest.mark.parametrize(
    ("error", "status", "code"), [(ModelError("broken"), 500, "failed"), (TooLong("long"), 422, "unreadable")]
)
def test_a_result_that_was_stopped_is_no_success(error: Exception, status: int, code: str) -> None:
    broken = False

    def fail(call: Classify) -> Outcome:
        if broken:
            raise error
        return classify(call)

    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        nonlocal broken
        broken = True
        return await client.post("/score", json=HONEY)

    answer = run(test, world(nli=fail))
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code)
    assert str(error) in problem["detail"]
    assert problem["result"]["verdict"]["label"] == "unknown"
    assert problem["result"]["metrics"]["nli"]["value"] is None


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({"Groundwire-Deadline-Ms": "500"}, {}),
        ({"grpc-timeout": "500m"}, {}),
        ({"grpc-timeout": "500000u", "Groundwire-Deadline-Ms": "20000"}, {}),
        ({}, {"deadline_ms": 500}),
        ({"Groundwire-Deadline-Ms": "20000"}, {"deadline_ms": 500}),
    ],
)
def test_a_deadline_ends_a_request(headers: dict[str, str], options: dict[str, float]) -> None:
    held = Held()

    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        held.holds = True
        try:
            return await client.post("/score", json=HONEY | {"options": options}, headers=headers)
        finally:
            held.released.set()

    answer = run(test, world(nli=held))
    assert (answer.status_code, answer.json()["code"]) == (504, "deadline")
    assert answer.json()["detail"].count("was not finished") == 1, "a sentence for all metrics"
    assert answer.json()["result"]["status"] == "deadline"
    assert "the header Groundwire-Deadline-Ms" in answer.json()["detail"]


def test_the_servers_deadlines_hold_without_the_clients() -> None:
    held = Held()

    async def test(client: httpx.AsyncClient, front: Front) -> list[httpx.Response]:
        held.holds = True
        try:
            later = {"Groundwire-Deadline-Ms": "90000"}
            return [await client.post("/score", json=HONEY), await client.post("/score", json=HONEY, headers=later)]
        finally:
            held.released.set()

    answers = run(test, world(nli=held), default_deadline_ms=30.0, max_deadline_ms=40.0)
    assert [answer.status_code for answer in answers] == [504, 504]
    limits = [re.search(r"within (\d+) ms", answer.json()["detail"]) for answer in answers]
    assert all(limit is not None and int(limit[1]) <= 40 for limit in limits)


def test_a_wrong_deadline_is_refused() -> None:
    for headers in ({"Groundwire-Deadline-Ms": "soon"}, {"grpc-timeout": "5"}, {"Groundwire-Deadline-Ms": "-1"}):
        assert post(HONEY, headers).status_code == 422


@pytest.mark.anyio
async def test_a_body_that_does_not_come_in_time_is_refused() -> None:
    async with serve() as (_, front):
        connection = Connection(front, "/score", JSON | {"Groundwire-Deadline-Ms": "20"})
        connection.write(b'{"resp')
        assert await connection.read_status() == 408
        await connection.task


@pytest.mark.anyio
async def test_a_full_server_says_when_to_come_again() -> None:
    held = Held()

    async with serve(world(nli=held), max_waiting_tokens=25) as (client, front):
        held.holds = True
        first = asyncio.create_task(client.post("/score", json=HONEY))
        await asyncio.to_thread(held.entered.wait, 30)
        assert (count_requests(front), count_tokens(front)) == (1, 20)
        refused = await client.post("/score", json=HONEY)
        assert (refused.status_code, refused.json()["code"]) == (429, "overloaded")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.json()["detail"].endswith("or start the server with a larger max_waiting_tokens.")
        held.released.set()
        assert (await first).status_code == 200
        assert (await client.post("/score", json=HONEY)).status_code == 200
        await wait_until(lambda: (count_requests(front), count_tokens(front)) == (0, 0))


@pytest.mark.anyio
async def test_a_client_that_leaves_cancels_its_work() -> None:
    held = Held()

    async with serve(world(nli=held)) as (_, front):
        held.holds = True
        connection = Connection(front, "/score", JSON)
        connection.write(json.dumps(HONEY).encode())
        connection.end()
        await asyncio.to_thread(held.entered.wait, 30)
        connection.leave()
        await connection.task
        assert connection.sent.empty(), "nobody reads an answer"  # terms: literal
        await wait_until(lambda: count_tokens(front) == 0)
        held.released.set()
        text = front.service.monitoring.render().decode()
        assert 'groundwire_refusals_total{code="client_closed",route="/score"} 1.0' in text
        assert 'groundwire_requests_total{route="/score",status="499"} 1.0' in text


@pytest.mark.anyio
async def test_a_closed_engine_is_503() -> None:
    async with serve() as (client, front):
        front.service.engine.close()
        for path in ("/healthz", "/readyz"):
            assert (await client.get(path)).status_code == 503
        answer = await client.post("/score", json=HONEY)
        assert (answer.status_code, answer.json()["code"]) == (503, "closed")


def test_a_defect_is_500_without_its_reason() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        front.service.engine.core.score = lambda *arguments: 1 / 0  # type: ignore[method-assign, assignment]
        return await client.post("/score", json=HONEY)

    answer = run(test)
    assert answer.status_code == 500
    assert "division" not in answer.text


@pytest.mark.anyio
async def test_many_callers_get_their_own_scores() -> None:
    async with serve() as (client, _):
        bodies = [HONEY | {"response": f"Honey is {'blue' if i % 3 else 'sweet'} {i}."} for i in range(60)]
        answers = await asyncio.gather(*(client.post("/score", json=body) for body in bodies))
        assert [answer.json()["value"] for answer in answers] == [0.0 if i % 3 else 1.0 for i in range(60)]


@pytest.mark.anyio
async def test_it_can_be_mounted() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    async with serve() as (_, front), connect(Starlette(routes=[Mount("/check", front)])) as client:
        assert (await client.post("/check/score", json=HONEY)).status_code == 200
        answer = await client.post("/check/score", json={})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.response")
        assert (await client.get("/check/nothing")).json()["code"] == "not_found"
        assert (await client.get("/check/healthz")).status_code == 200


def test_a_long_answer_has_the_first_entries_of_each_list_and_counts_the_others() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> None:
        body = {"response": "It is. " * 1_000, "knowledge": HONEY["knowledge"], "metrics": METRICS}
        short, whole, few = [
            (await client.post("/score", json=body | extra)).json()
            for extra in ({}, {"explanations": "all"}, {"fields": ["sentences"]})
        ]
        assert (len(short["sentences"]), short["left_out"]["sentences"]) == (500, 500)
        assert short["left_out"]["metrics.verifiability.explanation.sentences"] == 500
        assert (len(whole["sentences"]), whole["left_out"]) == (1_000, {})
        assert few["left_out"] == short["left_out"]
        assert short["verdict"] == whole["verdict"]

    run(test)
