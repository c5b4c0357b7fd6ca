"""``/score_many``: order, streaming, back-pressure, and lines that cannot be scored."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from groundwire.engine.extend import Core
from groundwire.runtime.calls import Classify
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from groundwire.service import lines as lines_module
from groundwire.service.front import Front
from groundwire.service.lines import IN_FLIGHT, split_lines
from groundwire.service.scoring import select
from tests.support.broken_folds import MESSAGE, break_folds
from tests.support.service import HONEY, NDJSON, Connection, count_requests, count_tokens, run, serve, wait_until
from tests.support.streams import CALIBRATION, ROLES, classify, world


async def post(client: httpx.AsyncClient, lines: list[Any], query: str = "") -> tuple[httpx.Response, list[Any]]:
    content = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    answer = await client.post(f"/score_many{query}", content=content, headers=NDJSON)
    return answer, [json.loads(line) for line in answer.text.splitlines()] if answer.status_code == 200 else []


def test_each_line_has_its_answer_in_order() -> None:
    lines = [
        HONEY | {"id": "a"},
        b"\n",
        b"{nothing\n",
        HONEY | {"response": "Honey is blue.", "id": 7},
        HONEY | {"speaker": "Bob"},
        HONEY | {"response": " ", "id": "empty"},
        HONEY | {"knowledge": "x" * 200, "id": "long"},
        b'{"response": "Honey is sweet.", "knowledge": "Honey."}',
    ]
    answer, answers = run(lambda client, _: post(client, lines), max_knowledge_chars=100)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [line["line"] for line in answers] == [1, 3, 4, 5, 6, 7, 8]
    assert [line.get("id") for line in answers] == ["a", None, 7, None, "empty", "long", None]
    assert [line["score"]["value"] if "score" in line else line["error"]["code"] for line in answers] == [
        1.0, "malformed", 0.0, "invalid", "invalid", "too_large", 1.0,
    ]  # fmt: skip
    assert [line["error"].get("path", "") for line in answers if "error" in line] == [
        "", "$.speaker", "$.response", "$.knowledge",
    ]  # fmt: skip


def test_a_defect_of_the_verdict_ends_no_other_line(monkeypatch: pytest.MonkeyPatch) -> None:
    break_folds(monkeypatch)
    lines = [HONEY, HONEY | {"response": "Honey is broken."}, HONEY]
    _, answers = run(lambda client, _: post(client, lines))
    assert [line["score"]["status"] for line in answers] == ["scored", "failed", "scored"]
    assert [line["score"]["verdict"]["message"] for line in answers] == ["", MESSAGE, ""]


def test_a_defect_ends_its_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: Core, request: Any, *others: Any, **options: Any) -> Any:
        return [][0] if "begin" in request.response else start_score(self, request, *others, **options)

    def select_fields(score: Any, *others: Any, **options: Any) -> Any:
        return [][0] if score.value == 0.0 else select(score, *others, **options)

    start_score = Core.score
    monkeypatch.setattr(Core, "score", start)
    monkeypatch.setattr(lines_module, "select", select_fields)
    lines = [HONEY, HONEY | {"response": "Honey cannot begin."}, HONEY | {"response": "Honey is blue."}, HONEY]
    _, answers = run(lambda client, _: post(client, lines))
    assert [line["error"]["code"] if "error" in line else line["score"]["status"] for line in answers] == [
        "scored", "failed", "failed", "scored",
    ]  # fmt: skip


@pytest.mark.anyio
async def test_the_query_has_metrics_and_options() -> None:
    async with serve() as (client, _):
        _, (line,) = await post(
            client, [HONEY], '?metrics=token_classifier&options={"token_classifier":{"threshold":1}}'
        )
        assert list(line["score"]["metrics"]) == ["token_classifier"]
        assert "threshold=1.0" in line["score"]["signature"]
        for query, path in (
            ('?options={"deadlin":1}', "$.options.deadlin"),
            ("?options={", "$.options"),
            ("?metrics=nil", ""),
            ("?metric=nli", ""),
            ("?metrics=nli&metrics=overlap", ""),
        ):
            answer, _ = await post(client, [HONEY], query)
            assert answer.status_code == 422, query
            assert answer.json().get("path", "") == path
        assert (await client.post("/score_many", json=HONEY)).status_code == 415


@pytest.mark.anyio
async def test_answers_come_before_the_body_is_complete() -> None:
    async with serve() as (_, front):
        connection = Connection(front, "/score_many")
        assert await connection.read_status() == 200
        for number in range(1, 4):
            connection.write_line(HONEY | {"response": f"Honey is sweet {number}."})
            assert (await connection.read_line())["line"] == number
        connection.end()
        assert await connection.read_line() is None
        await connection.task


class Held:
    """A model that answers when it is released; ``most`` is how many calls it had at the same time."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.holds = False
        self.entered = 0

    def __call__(self, call: Classify) -> Outcome:
        if self.holds:
            self.entered += 1
            self.released.wait(30)
        return classify(call)


@pytest.mark.anyio
async def test_no_more_is_read_than_can_be_worked_on() -> None:
    held = Held()

    async with serve(world(nli=held), max_waiting_tokens=1_000_000) as (_, front):
        held.holds = True
        connection = Connection(front, "/score_many")
        for number in range(3 * IN_FLIGHT):
            connection.write_line(HONEY | {"id": number})
        connection.end()
        await wait_until(lambda: count_requests(front) >= IN_FLIGHT)
        for _ in range(20):
            await asyncio.sleep(0)
        assert count_requests(front) <= IN_FLIGHT + 2
        assert connection.taken <= IN_FLIGHT + 4, "two are read ahead"
        held.released.set()
        await connection.task
        await connection.read_status()
        assert [(await connection.read_line())["id"] for _ in range(3 * IN_FLIGHT)] == list(range(3 * IN_FLIGHT))
        await wait_until(lambda: (count_requests(front), count_tokens(front)) == (0, 0))


@pytest.mark.anyio
async def test_bulk_work_leaves_room_for_single_requests() -> None:
    held = Held()

    async with serve(world(nli=held), max_waiting_tokens=100) as (client, front):
        held.holds = True
        connection = Connection(front, "/score_many", query="metrics=nli")
        for _ in range(20):
            connection.write_line(HONEY)
        connection.end()
        await wait_until(lambda: count_requests(front) >= 5)
        for _ in range(20):
            await asyncio.sleep(0)
        assert count_tokens(front) == 50, "half of the tokens"
        single = asyncio.create_task(client.post("/score", json=HONEY | {"metrics": ["token_classifier"]}))
        await wait_until(lambda: count_tokens(front) == 60)
        held.released.set()
        assert (await single).status_code == 200
        await connection.task


@pytest.mark.anyio
async def test_a_line_without_room_ends_at_its_deadline_and_when_its_client_leaves() -> None:
    held = Held()

    async with serve(world(nli=held), max_waiting_tokens=25) as (client, front):
        held.holds = True
        single = asyncio.create_task(client.post("/score", json=HONEY))
        await wait_until(lambda: held.entered > 0)
        connection = Connection(front, "/score_many", NDJSON | {"Groundwire-Deadline-Ms": "50"})
        for _ in range(2):
            connection.write_line(HONEY)
        connection.end()
        assert await connection.read_status() == 200
        for number in (1, 2):
            answer = await connection.read_line()
            assert (answer["line"], answer["error"]["code"]) == (number, "deadline")
        assert await connection.read_line() is None
        await connection.task
        leaving = Connection(front, "/score_many")
        leaving.write_line(HONEY)
        leaving.end()
        leaving.leave()
        await asyncio.wait_for(leaving.task, 30)
        assert not single.done()
        assert count_requests(front) == 1, "no line was begun"
        refusals = front.service.monitoring.render().decode()
        assert 'groundwire_refusals_total{code="client_closed",route="/score_many"} 1.0' in refusals
        held.released.set()
        assert (await single).status_code == 200


def test_lines_wait_for_single_requests() -> None:
    held = Held()
    order: list[str] = []

    def note(call: Classify) -> Outcome:
        order.append(call.hypothesis)
        return held(call)

    async def test(client: httpx.AsyncClient, front: Front) -> None:
        held.holds = True
        order.clear()
        connection = Connection(front, "/score_many", query="metrics=nli")
        for number in range(4):
            connection.write_line(HONEY | {"response": f"Line {number} is sweet."})
        connection.end()
        await wait_until(lambda: held.entered == 1 and count_requests(front) == 4)
        single = asyncio.create_task(client.post("/score", json=HONEY | {"metrics": ["nli"]}))
        await wait_until(lambda: count_requests(front) == 5)
        held.released.set()
        assert (await single).status_code == 200
        await connection.task
        assert order[1] == HONEY["response"], "before the lines that came first"

    runtime = FakeRuntime(ROLES | {"nli": note}, batch=1, calibration=CALIBRATION, concurrent_requests=1)
    run(test, runtime)


@pytest.mark.anyio
async def test_a_client_that_leaves_cancels_its_lines() -> None:
    held = Held()

    async with serve(world(nli=held)) as (_, front):
        held.holds = True
        connection = Connection(front, "/score_many")
        for number in range(10):
            connection.write_line(HONEY | {"response": f"Honey is sweet {number}."})
        await wait_until(lambda: held.entered > 0 and count_requests(front) == 10)
        connection.leave()
        await connection.task
        await wait_until(lambda: (count_requests(front), count_tokens(front)) == (0, 0))
        held.released.set()
        refusals = front.service.monitoring.render().decode()
        assert 'groundwire_refusals_total{code="client_closed",route="/score_many"} 1.0' in refusals


@pytest.mark.anyio
async def test_a_client_that_says_nothing_is_refused_at_the_end() -> None:
    async with serve(max_idle_ms=50.0) as (_, front):
        connection = Connection(front, "/score_many")
        connection.write_line(HONEY)
        await connection.read_status()
        assert (await connection.read_line())["score"]["value"] == 1.0
        assert (await connection.read_line())["error"]["code"] == "body_timeout"
        assert await connection.read_line() is None
        await connection.task


TEXTS = st.binary(max_size=40).map(lambda text: text.translate(bytes(b"\nabc"[i % 4] for i in range(256))))


@pytest.mark.parametrize("limit", [3, 5])
@settings(max_examples=50)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 40)))
def test_lines_do_not_depend_on_how_they_are_cut(limit: int, text: bytes, cuts: list[int]) -> None:
    bounds = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [text[start:end] for start, end in itertools.pairwise(bounds)]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Any:
        return messages.pop(0)

    async def read() -> list[bytes | None]:
        return [line async for line in split_lines(Request({"type": "http"}, receive), limit, 1000.0)]

    *lines, last = text.split(b"\n")
    expected = [None if len(line) > limit else line for line in [*lines, *([last] if last else [])]]
    assert asyncio.run(read()) == expected


def test_an_answer_has_a_bound() -> None:
    async def test(client: httpx.AsyncClient, _: Front) -> list[str]:
        whole = HONEY | {"explanations": "all"}
        answers = [await client.post("/score", json=whole), await client.post("/evidence", json=HONEY)]
        _, (line,) = await post(client, [whole | {"id": "a"}])
        assert (line["line"], line["id"], line["error"]["status"]) == (1, "a", 413)
        assert {answer.status_code for answer in answers} == {413}
        return [problem["detail"] for problem in (*(answer.json() for answer in answers), line["error"])]

    details = run(test, max_answer_bytes=300)
    assert len(set(details)) == 3
    assert all("this server sends up to 300. Send a shorter response" in detail for detail in details)
