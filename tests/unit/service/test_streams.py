"""``/stream``: the events of a response that is checked while it is written, over both kinds of connection."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest

from groundwire.engine import Engine
from groundwire.guard import Guard, ResponseStream
from groundwire.runtime.calls import Classify
from groundwire.runtime.protocol import Outcome
from groundwire.service.front import Front
from tests.support.broken_folds import MESSAGE, break_folds
from tests.support.graph_world import FILMS
from tests.support.service import NDJSON, Connection, Socket, run, serve
from tests.support.streams import KNOWLEDGE, classify, world

FIRST = {"knowledge": KNOWLEDGE}
TEXT = ["Honey is sw", "eet. It is golden. It is", " blue. It is", " sweet."]


def parse(text: str) -> list[tuple[str, Any]]:
    events = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        assert events[-1][1]["type"] == events[-1][0]
    return events


async def post(client: httpx.AsyncClient, *lines: Any) -> httpx.Response:
    content = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return await client.post("/stream", content=content, headers=NDJSON)


def released(events: list[Any]) -> str:
    return "".join(event["text"] for event in events if event["type"] == "release")


def test_events_are_those_of_the_engine() -> None:
    answer = run(lambda client, _: post(client, FIRST, *TEXT))
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = parse(answer.text)
    with Engine(world()) as engine, Guard(engine).open(KNOWLEDGE) as stream:
        expected = [event for piece in TEXT for event in stream.feed(piece)]
        stream.finish()
        expected += stream.last_events
    assert [name for name, _ in events] == [json.loads(event.to_json())["type"] for event in expected]
    assert released([event for _, event in events]) == stream.released == "Honey is sweet. It is golden."
    assert events[-1][0] == "final"
    assert events[-1][1]["score"]["verdict"]["label"] == "inconsistent"


def test_a_defect_of_the_verdict_blocks_and_does_not_cut_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    break_folds(monkeypatch)
    events = parse(run(lambda client, _: post(client, FIRST, "Honey is sweet. It is broken. ", "It is golden.")).text)
    assert released([event for _, event in events]) == "Honey is sweet."
    assert [event["outcome"] for name, event in events if name == "sentence"] == ["consistent", "failed"]
    assert events[-1][0] == "final"
    assert (events[-1][1]["score"]["verdict"]["label"], events[-1][1]["score"]["message"]) == ("unknown", MESSAGE)


def test_a_defect_of_the_verdict_does_not_close_a_websocket(monkeypatch: pytest.MonkeyPatch) -> None:
    break_folds(monkeypatch)

    async def test(_: httpx.AsyncClient, front: Front) -> Any:
        socket = Socket(front)
        assert (await socket.read())["type"] == "websocket.accept"
        socket.write(json.dumps(FIRST))
        socket.write(json.dumps("It is broken. It is sweet."))
        socket.write(json.dumps({"delta": "", "finish": True}))
        while (event := await socket.read_event())["type"] != "final":
            pass
        assert (await socket.read())["code"] == 1000
        await socket.task
        return event

    final = run(test)
    assert (final["score"]["verdict"]["label"], final["score"]["status"], final["released"]) == (
        "unknown",
        "failed",
        "",
    )


def test_a_defect_of_the_guard_is_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: ResponseStream) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(ResponseStream, "afinish", fail)
    events = parse(run(lambda client, _: post(client, FIRST, *TEXT)).text)
    assert [name for name, _ in events][-1] == "error"
    assert events[-1][1]["problem"]["code"] == "failed"


def test_a_policy_decides() -> None:
    policy = {"inconsistent": {"type": "redact", "mark": "***"}, "overflow": {"type": "fallback", "text": "…"}}
    events = parse(run(lambda client, _: post(client, FIRST | {"policy": policy}, *TEXT)).text)
    assert released([event for _, event in events]) == "Honey is sweet. It is golden. *** It is sweet."


@pytest.mark.parametrize(
    ("lines", "status", "path"),
    [
        ([], 400, ""),
        ([b"{\n"], 400, ""),
        ([{"knowledge": "\0"}], 422, "$.knowledge[0]"),
        ([FIRST | {"polcy": {}}], 422, "$.polcy"),
        ([FIRST | {"policy": {"inconsistent": "pass"}}], 422, "$.policy.inconsistent"),
        ([FIRST | {"policy": {"inconsistent": {"type": "refine"}}}], 422, "$.policy.inconsistent"),
        ([FIRST | {"metrics": ["nil"]}], 422, ""),
        ([{"knowledge": "a" * 60_000}], 413, "$.knowledge"),
        ([FIRST | {"triples": [[triple.subject, triple.predicate, ""] for triple in FILMS]}], 422, "$.triples[0]"),
    ],
)
def test_a_wrong_first_line_is_refused(lines: list[Any], status: int, path: str) -> None:
    answer = run(lambda client, _: post(client, *lines))
    assert (answer.status_code, answer.json().get("path", "")) == (status, path)


@pytest.mark.parametrize(
    ("pieces", "code"),
    [([b"{\n"], "malformed"), ([5], "invalid"), (["a\0"], "invalid"), ([], "invalid"), (["x" * 30_000], "invalid")],
)
def test_a_wrong_piece_ends_the_stream(pieces: list[Any], code: str) -> None:
    (name, event), *more = reversed(parse(run(lambda client, _: post(client, FIRST, *pieces)).text))
    assert (name, event["problem"]["code"]) == ("error", code)
    assert not more, "nothing leaves"


@pytest.mark.anyio
async def test_events_come_while_the_text_does() -> None:
    async with serve() as (_, front):
        connection = Connection(front, "/stream")
        connection.write_line(FIRST)
        assert await connection.read_status() == 200
        connection.write_line("Honey is sweet. It")
        first = (await connection.sent.get())["body"].decode()
        assert parse(first)[0][0] == "sentence"
        assert front.service.open_streams == 1
        connection.leave()
        await connection.task
        assert front.service.open_streams == 0
        refusals = front.service.monitoring.render().decode()
        assert 'groundwire_refusals_total{code="client_closed",route="/stream"} 1.0' in refusals


@pytest.mark.anyio
async def test_a_client_that_leaves_cancels_its_check() -> None:
    held, entered, released_ = [False], threading.Event(), threading.Event()

    def hold(call: Classify) -> Outcome:
        if held[0]:
            entered.set()
            released_.wait(30)
        return classify(call)

    async with serve(world(nli=hold)) as (_, front):
        held[0] = True
        connection = Connection(front, "/stream")
        connection.write_line(FIRST)
        connection.write_line("Honey is sweet. It")
        await asyncio.to_thread(entered.wait, 30)
        connection.leave()
        await connection.task
        assert front.service.open_streams == 0
        released_.set()


@pytest.mark.anyio
async def test_a_response_has_its_time() -> None:
    async with serve(max_stream_ms=50.0) as (_, front):
        connection = Connection(front, "/stream")
        connection.write_line(FIRST)
        await connection.read_status()
        ((name, event),) = parse((await connection.sent.get())["body"].decode())
        assert (name, event["problem"]["code"]) == ("error", "deadline")
        await connection.task


@pytest.mark.anyio
async def test_streams_are_bounded() -> None:
    async with serve(max_streams=1) as (client, front):
        connection = Connection(front, "/stream")
        connection.write_line(FIRST)
        await connection.read_status()
        answer = await post(client, FIRST, "Honey.")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        connection.leave()
        await connection.task
        assert (await post(client, FIRST, "Honey is sweet.")).status_code == 200
        backlog = front.service.engine.core.scheduler._backlog
        backlog.add(100_000, 0.0)
        assert (await post(client, FIRST, "Honey is sweet.")).status_code == 429, "the server is full"
        backlog.remove(100_000, 1.0)


@pytest.mark.anyio
async def test_a_socket_has_the_same_events() -> None:
    async with serve() as (_, front):
        socket = Socket(front)
        assert (await socket.read())["type"] == "websocket.accept"
        socket.write(json.dumps(FIRST))
        events: list[Any] = []
        for piece in TEXT[:2]:
            socket.write(json.dumps(piece))
        events.append(await socket.read_event())
        for piece in TEXT[2:]:
            socket.write(json.dumps({"delta": piece}))
        socket.write('{"finish": true}')
        while events[-1]["type"] != "final":
            events.append(await socket.read_event())
        assert released(events) == "Honey is sweet. It is golden."
        assert [event["type"] for event in events].count("blocked") == 1
        assert (await socket.read())["code"] == 1000
        await socket.task
        assert 'route="/stream",status="101"} 1.0' in front.service.monitoring.render().decode()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (["{"], 4400),
        (['{"knowledge": 5}'], 4422),
        ([json.dumps(FIRST), "5"], 4422),
        ([json.dumps(FIRST), '{"finish": true}'], 4422),
        ([json.dumps(FIRST)], 4408),
        ([], 4504),
    ],
)
async def test_a_socket_is_closed_with_the_status(messages: list[str], code: int) -> None:
    async with serve(max_idle_ms=100.0, default_deadline_ms=5_000.0 if messages else 100.0) as (_, front):
        socket = Socket(front)
        await socket.read()
        for message in messages:
            socket.write(message)
        event = await socket.read_event()
        assert (event["type"], event["problem"]["status"]) == ("error", code - 4000)
        closed = await socket.read()
        assert (closed["code"], closed["reason"]) == (code, event["problem"]["code"])
        await socket.task
        assert f'route="/stream",status="{code - 4000}"}} 1.0' in front.service.monitoring.render().decode()


@pytest.mark.anyio
async def test_a_socket_needs_a_token() -> None:
    async with serve(tokens=("a",)) as (_, front):
        refused = Socket(front)
        assert (await refused.read())["status"] == 401
        await refused.task
        socket = Socket(front, {"Authorization": "Bearer a"})
        assert (await socket.read())["type"] == "websocket.accept"
        socket.leave()
        await socket.task


@pytest.mark.anyio
async def test_a_socket_that_is_left_ends() -> None:
    async with serve() as (_, front):
        socket = Socket(front)
        await socket.read()
        socket.write(json.dumps(FIRST))
        socket.write('"Honey is sweet. It"')
        assert (await socket.read_event())["type"] == "sentence"
        assert front.service.open_streams == 1
        socket.leave()
        await socket.task
        assert front.service.open_streams == 0
